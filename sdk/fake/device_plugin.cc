// The fake accelerator as a dtrun device: memory, streams, events and copies over accelerator.h, each a call
// of its driver. Any thread.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "dtrun/plugin.hpp"
#include "sdk/fake/accelerator.h"

namespace dtrun::fake {
namespace {

class Device final : public sdk::Device<Event> {
 public:
  static constexpr int kDeviceKind = DTRUN_DEVICE_OTHER;
  Device(const sdk::Host&, const sdk::Options&) {}

  int Count() override { return kDevices; }
  int Current() override { return 0; }
  std::string Describe(int index) override {
    return "a fake accelerator in host memory, number " + std::to_string(index);
  }

  sdk::MemoryPlace MemoryOf(const void* pointer) override {
    const DriverCall call;
    const int index = device_of(pointer);
    if (index < 0) return {};
    return {kDeviceKind, index};
  }
  void* MemAlloc(const dtrun_mem_params& params) override {
    const DriverCall call(true);
    return allocate(params.device_kind == DTRUN_DEVICE_HOST ? -1 : params.device_index, params.bytes);
  }
  void MemFree(const dtrun_mem_params&, void* memory) override {
    const DriverCall call(true);
    release(memory);
  }

  void* StreamCreate(const dtrun_stream_params& params) override {
    if (params.device_index < 0 || params.device_index >= kDevices) {
      throw sdk::Failure(DTRUN_INVALID_ARGUMENT,
                         "there is no fake device " + std::to_string(params.device_index));
    }
    const DriverCall call;
    return make_stream(params.device_index);
  }
  void StreamDestroy(const dtrun_stream& stream) override {
    const DriverCall call;
    if (stream.native != nullptr) destroy_stream(&Of(stream));
  }
  void Copy(void* to, const void* from, std::uint64_t bytes, const dtrun_stream& stream) override {
    const DriverCall call;
    Of(stream).post([=] { std::memcpy(to, from, bytes); });
  }

  std::unique_ptr<Event> EventCreate(int) override { return std::make_unique<Event>(); }
  void EventRecord(Event& event, const dtrun_stream& stream) override {
    const DriverCall call;
    event.record(Of(stream));
  }
  bool EventTest(Event& event) override {
    const DriverCall call;
    return event.reached();
  }
  void EventWait(Event& event, const dtrun_stream& stream) override {
    const DriverCall call;
    event.block(Of(stream));
  }

  void CounterWait(const std::uint32_t* counter, std::uint32_t value, const dtrun_stream& stream) override {
    const DriverCall call;
    Of(stream).mark([=] {
      while (__atomic_load_n(counter, __ATOMIC_ACQUIRE) < value) {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    });
  }

 private:
  static Stream& Of(const dtrun_stream& stream) {
    return stream.native != nullptr ? *static_cast<Stream*>(stream.native)
                                    : default_stream(stream.device_index);
  }
};

}  // namespace
}  // namespace dtrun::fake

DTRUN_SDK_PLUGIN(dtrun::fake::Device, .name = "fake", .version = "1.0", .vendor = "dtrun tests",
                 .license = "Apache-2.0", .summary = "a device over host memory, for tests")
