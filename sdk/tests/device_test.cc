// The C table that dtrun/plugin/device.hpp makes, without a device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "dtrun/plugin.hpp"
#include "dtrun/plugin/names.hpp"
#include "sdk/conformance/host.h"

namespace dtrun::sdk {
namespace {

int events = 0;

struct CountedEvent {
  CountedEvent() { ++events; }
  ~CountedEvent() { --events; }
};

// Every method throws, or gives nothing, once `broken`.
class FragileDevice final : public Device<CountedEvent> {
 public:
  static constexpr int kDeviceKind = DTRUN_DEVICE_OTHER;
  FragileDevice(const Host&, const Options&) {}

  int Count() override { return broken ? throw Failure(DTRUN_FAILED_PRECONDITION, "no device") : 3; }
  int Current() override { return broken ? throw std::runtime_error("lost") : 2; }
  MemoryPlace MemoryOf(const void* pointer) override {
    if (pointer == nullptr) return {};
    return {kDeviceKind, 1};
  }
  void* MemAlloc(const dtrun_mem_params&) override { return broken ? nullptr : this; }
  void MemFree(const dtrun_mem_params&, void*) override { throw std::runtime_error("it is not mine"); }
  void* StreamCreate(const dtrun_stream_params&) override { return this; }
  void StreamDestroy(const dtrun_stream&) override {}
  void Copy(void*, const void*, std::uint64_t, const dtrun_stream&) override { throw 42; }
  std::unique_ptr<CountedEvent> EventCreate(int) override {
    return broken ? nullptr : std::make_unique<CountedEvent>();
  }
  void EventRecord(CountedEvent&, const dtrun_stream&) override {}
  bool EventTest(CountedEvent&) override { return !broken; }
  void EventWait(CountedEvent&, const dtrun_stream&) override {}
  void CounterWait(const std::uint32_t*, std::uint32_t, const dtrun_stream&) override {
    throw Failure(DTRUN_UNSUPPORTED, "it cannot wait so");
  }

  bool broken = false;
};

class DeviceTable : public ::testing::Test {
 protected:
  dtrun_instance* self() { return reinterpret_cast<dtrun_instance*>(&instance_); }
  FragileDevice& device() { return instance_.object; }
  std::string text() const { return error_.message; }

  const dtrun_device& table_ = internal::kDeviceTable<FragileDevice>;
  internal::Instance<FragileDevice> instance_{conformance::Host(DTRUN_KIND_DEVICE), nullptr};
  dtrun_error error_ = [] {
    dtrun_error error;
    DTRUN_ERROR_INIT(error);
    return error;
  }();
};

TEST_F(DeviceTable, HasWhatTheAuthorOverrides) {
  static constexpr dtrun_plugin kPlugin = MakePlugin<FragileDevice>({});
  EXPECT_EQ(kPlugin.kind, DTRUN_KIND_DEVICE);
  EXPECT_EQ(kPlugin.backend, nullptr);
  EXPECT_EQ(kPlugin.launcher, nullptr);
  ASSERT_EQ(kPlugin.device, &table_);
  EXPECT_EQ(table_.kind, DTRUN_DEVICE_OTHER);
  EXPECT_EQ(table_.describe, nullptr);
  EXPECT_EQ(table_.stream_capturing, nullptr);
  EXPECT_NE(table_.counter_wait, nullptr);
}

TEST_F(DeviceTable, GivesWhatMethodsReturn) {
  std::int32_t number = 0;
  EXPECT_EQ(table_.count(self(), &number, &error_), DTRUN_OK);
  EXPECT_EQ(number, 3);
  EXPECT_EQ(table_.current(self(), &number, &error_), DTRUN_OK);
  EXPECT_EQ(number, 2);
  dtrun_memory place;
  DTRUN_INIT(place);
  EXPECT_EQ(table_.memory_of(self(), nullptr, &place, &error_), DTRUN_OK);
  EXPECT_EQ(place.device_kind, DTRUN_DEVICE_HOST);
  EXPECT_EQ(place.device_index, -1);
  dtrun_stream_params params;
  DTRUN_INIT(params);
  params.device_index = 1;
  dtrun_stream stream;
  DTRUN_INIT(stream);
  EXPECT_EQ(table_.stream_create(self(), &params, &stream, &error_), DTRUN_OK);
  EXPECT_EQ(stream.device_kind, DTRUN_DEVICE_OTHER);
  EXPECT_EQ(stream.device_index, 1);
  EXPECT_EQ(stream.native, &device());
  dtrun_event* event = nullptr;
  EXPECT_EQ(table_.event_create(self(), 0, &event, &error_), DTRUN_OK);
  EXPECT_EQ(events, 1);
  EXPECT_EQ(table_.event_test(self(), event, &error_), DTRUN_OK);
  device().broken = true;
  EXPECT_EQ(table_.event_test(self(), event, &error_), DTRUN_PENDING);
  table_.event_destroy(self(), event);
  EXPECT_EQ(events, 0);
}

TEST_F(DeviceTable, TurnsWhatIsThrownIntoAStatus) {
  device().broken = true;
  std::int32_t number = 7;
  EXPECT_EQ(table_.count(self(), &number, &error_), DTRUN_FAILED_PRECONDITION);
  EXPECT_EQ(text(), "no device");
  EXPECT_EQ(table_.current(self(), &number, &error_), DTRUN_INTERNAL);
  EXPECT_EQ(text(), "lost");
  EXPECT_EQ(number, 7);
  dtrun_stream stream;
  DTRUN_INIT(stream);
  EXPECT_EQ(table_.copy(self(), nullptr, nullptr, 0, &stream, &error_), DTRUN_INTERNAL);
  EXPECT_EQ(table_.counter_wait(self(), nullptr, 0, &stream, &error_), DTRUN_UNSUPPORTED);
  dtrun_mem_params params;
  DTRUN_INIT(params);
  void* memory = this;
  EXPECT_EQ(table_.mem_alloc(self(), &params, &memory, &error_), DTRUN_OUT_OF_MEMORY);
  EXPECT_EQ(memory, this);
  dtrun_event* event = nullptr;
  EXPECT_EQ(table_.event_create(self(), 0, &event, &error_), DTRUN_INTERNAL);
  table_.mem_free(self(), &params, nullptr);  // a line of the log
}

TEST_F(DeviceTable, RefusesFlagsThatMustBeUnderstood) {
  dtrun_stream stream;
  DTRUN_INIT(stream);
  stream.flags = 1u << 20;
  EXPECT_EQ(table_.event_record(self(), nullptr, &stream, &error_), DTRUN_UNSUPPORTED);
  EXPECT_THAT(text(), ::testing::HasSubstr("dtrun_stream has flags"));
}

TEST(DeviceKind, HasAName) {
  EXPECT_EQ(DeviceKindText(DTRUN_DEVICE_HOST), "host");
  EXPECT_EQ(DeviceKindText(DTRUN_DEVICE_CUDA), "cuda");
  EXPECT_EQ(DeviceKindText(DTRUN_DEVICE_LEVEL_ZERO), "level_zero");
  EXPECT_EQ(DeviceKindText(DTRUN_DEVICE_OTHER), "device kind 32");
  EXPECT_EQ(DeviceKindText(-1), "device kind -1");
}

}  // namespace
}  // namespace dtrun::sdk
