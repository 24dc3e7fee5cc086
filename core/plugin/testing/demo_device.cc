// A device plugin over host memory that completes work when it is queued; with DTRUN_TEST_NO_DEVICE set it
// has no device.
#include <cstdlib>
#include <cstring>

#include "dtrun/plugin.hpp"

namespace {

using dtrun::sdk::Failure;

class DemoDevice final : public dtrun::sdk::Device<int> {
 public:
  static constexpr int kDeviceKind = DTRUN_DEVICE_OTHER + 1;
  DemoDevice(const dtrun::sdk::Host&, const dtrun::sdk::Options&) {}

  int Count() override {
    if (std::getenv("DTRUN_TEST_NO_DEVICE") != nullptr)
      throw Failure(DTRUN_FAILED_PRECONDITION, "the demo is switched off; unset DTRUN_TEST_NO_DEVICE");
    return 2;
  }
  int Current() override { return 0; }
  std::string Describe(int device_index) override { return "demo number " + std::to_string(device_index); }
  dtrun::sdk::MemoryPlace MemoryOf(const void*) override { return {}; }
  void* MemAlloc(const dtrun_mem_params& params) override {
    return std::aligned_alloc(params.alignment, params.bytes);
  }
  void MemFree(const dtrun_mem_params&, void* memory) override { std::free(memory); }
  void* StreamCreate(const dtrun_stream_params&) override { return this; }
  void StreamDestroy(const dtrun_stream&) override {}
  void Copy(void* to, const void* from, std::uint64_t bytes, const dtrun_stream&) override {
    std::memcpy(to, from, bytes);
  }
  std::unique_ptr<int> EventCreate(int) override { return std::make_unique<int>(0); }
  void EventRecord(int&, const dtrun_stream&) override {}
  bool EventTest(int&) override { return true; }
  void EventWait(int&, const dtrun_stream&) override {}
  void CounterWait(const std::uint32_t*, std::uint32_t, const dtrun_stream&) override {
    throw Failure(DTRUN_UNSUPPORTED, "the demo waits for nothing");
  }
};

constexpr dtrun::sdk::PluginInfo kInfo = [] {
  dtrun::sdk::PluginInfo info;
  info.name = "demo";
  info.version = "1.2.3";
  info.vendor = "dtrun tests";
  info.license = "MIT";
  info.summary = "a device that is the host";
  return info;
}();
constexpr dtrun_plugin kPlugin = dtrun::sdk::MakePlugin<DemoDevice>(kInfo);

}  // namespace

dtrun_status dtrun_plugin_entry_v1(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) {
  return dtrun::sdk::Enter(kPlugin, host, out, err);
}
