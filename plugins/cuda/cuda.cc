// The device plugin `cuda`: memory, streams, events and copies, over the libcudart that this process has or
// finds.
//
// Core owns the object; members as dtrun/abi/device.h says, any thread. An event belongs to its owner and is
// used by one thread at a time.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "cuda_api.h"
#include "dtrun/plugin.hpp"

namespace dtrun::cuda {
namespace {

using sdk::Failure;

std::string PlaceText(const dtrun_mem_params& params) {
  return params.device_kind == DTRUN_DEVICE_HOST ? "the host"
                                                 : "device " + std::to_string(params.device_index);
}

class CudaEvent {
 public:
  // Of `device`, which is current.
  CudaEvent(const CudaApi& api, int device) : api_(api), device_(device) {
    api.Check(api.event_create_with_flags(&event_, kEventDisableTiming), "create an event");
  }
  ~CudaEvent() { api_.event_destroy(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  Event get() const { return event_; }
  int device() const { return device_; }

 private:
  const CudaApi& api_;
  const int device_;
  Event event_ = nullptr;
};

class CudaDevice final : public sdk::Device<CudaEvent> {
 public:
  static constexpr int kDeviceKind = DTRUN_DEVICE_CUDA;
  CudaDevice(const sdk::Host&, const sdk::Options&) : api_("", "") {}

  int Count() override {
    return api_.DeviceCount("this process has no CUDA device",
                            "check the driver with nvidia-smi and CUDA_VISIBLE_DEVICES");
  }
  int Current() override {
    int device = 0;
    api_.Check(api_.get_device(&device), "tell the current device");
    return device;
  }

  std::string Describe(int device_index) override {
    const int count = Count();
    if (device_index < 0 || device_index >= count) Checked(device_index);  // throws
    const auto properties = std::make_unique<DeviceProperties>();
    api_.Check(api_.get_device_properties(properties.get(), device_index),
               "describe device " + std::to_string(device_index));
    properties->name[sizeof properties->name - 1] = '\0';
    return std::string(static_cast<const char*>(properties->name)) + ", " + api_.BusId(device_index) +
           ", driver for CUDA " + CudaVersionText(api_.DriverVersion());
  }

  sdk::MemoryPlace MemoryOf(const void* pointer) override {
    const OnDevice on(api_, AnyDevice());
    PointerAttributes attributes;
    api_.Check(api_.pointer_get_attributes(&attributes, pointer), "finding the device of a pointer");
    if (attributes.type == kMemoryDevice) return {DTRUN_DEVICE_CUDA, attributes.device};
    if (attributes.type == kMemoryManaged) return {DTRUN_DEVICE_CUDA, -1};
    return {};
  }

  void* MemAlloc(const dtrun_mem_params& params) override {
    const bool host = params.device_kind == DTRUN_DEVICE_HOST;
    if (!host && params.device_kind != DTRUN_DEVICE_CUDA) {
      throw Failure(DTRUN_UNSUPPORTED, "the plugin of CUDA devices has no memory of device kind " +
                                           std::to_string(params.device_kind));
    }
    const OnDevice on(api_, host ? AnyDevice() : Checked(params.device_index));
    void* memory = nullptr;
    const Error error = host ? api_.host_allocate(&memory, params.bytes, kHostPortable | kHostMapped)
                             : api_.allocate(&memory, params.bytes);
    if (error == kOutOfMemory) {
      throw Failure(DTRUN_OUT_OF_MEMORY, "cuda cannot allocate " + std::to_string(params.bytes) +
                                             " bytes of " + PlaceText(params) +
                                             (host ? " as pinned memory" : "") + ": " + api_.Text(error) +
                                             (host ? "; check `ulimit -l` and the memory that is free"
                                                   : "; nvidia-smi shows which processes use its memory"))
          .Vendor("cuda", error);
    }
    api_.Check(error, "allocate " + std::to_string(params.bytes) + " bytes of " + PlaceText(params));
    if (reinterpret_cast<std::uintptr_t>(memory) % params.alignment != 0) {
      MemFree(params, memory);
      throw Failure(DTRUN_UNSUPPORTED, "cuda does not align memory to " + std::to_string(params.alignment) +
                                           " bytes; ask for less");
    }
    return memory;
  }

  void MemFree(const dtrun_mem_params& params, void* memory) override {
    const bool host = params.device_kind == DTRUN_DEVICE_HOST;
    const Error error = api_.Handled(host ? api_.host_release(memory) : api_.release(memory));
    if (error == kUnloading) return;  // the process ends, and has freed it
    api_.Check(error, "free memory of " + PlaceText(params));
  }

  void* StreamCreate(const dtrun_stream_params& params) override {
    if (params.priority != 0 && params.priority != 1) {
      throw Failure(DTRUN_UNSUPPORTED,
                    "a stream's priority is 0 or 1, not " + std::to_string(params.priority));
    }
    const OnDevice on(api_, Checked(params.device_index));
    Stream stream = nullptr;
    if (params.priority == 0) {
      api_.Check(api_.stream_create_with_flags(&stream, kStreamNonBlocking), "create a stream");
      return stream;
    }
    int least = 0;
    int greatest = 0;  // both 0 where the device has no priorities
    api_.Check(api_.stream_priority_range(&least, &greatest), "tell the priorities of streams");
    api_.Check(api_.stream_create_with_priority(&stream, kStreamNonBlocking, greatest),
               "create a stream of priority " + std::to_string(greatest));
    return stream;
  }

  void StreamDestroy(const dtrun_stream& stream) override {
    const Error error = api_.Handled(api_.stream_destroy(stream.native));
    if (error != kUnloading) api_.Check(error, "destroy a stream");
  }
  bool StreamCapturing(const dtrun_stream& stream) override {
    const OnDevice on(api_, DeviceOf(stream));
    int status = kCaptureNone;
    api_.Check(api_.stream_is_capturing(stream.native, &status), "tell whether a stream is captured");
    return status != kCaptureNone;
  }
  void Copy(void* to, const void* from, std::uint64_t bytes, const dtrun_stream& stream) override {
    if (bytes == 0) return;
    const OnDevice on(api_, DeviceOf(stream));
    api_.Check(api_.memcpy_async(to, from, bytes, kCopyDefault, stream.native),
               "copy " + std::to_string(bytes) + " bytes");
  }
  std::unique_ptr<CudaEvent> EventCreate(int device_index) override {
    const OnDevice on(api_, Checked(device_index));
    return std::make_unique<CudaEvent>(api_, device_index);
  }

  void EventRecord(CudaEvent& event, const dtrun_stream& stream) override {
    const int device = DeviceOf(stream);
    if (event.device() != device) {
      throw Failure(DTRUN_INVALID_ARGUMENT, "an event of device " + std::to_string(event.device()) +
                                                " cannot be recorded on a stream of device " +
                                                std::to_string(device));
    }
    const OnDevice on(api_, device);
    api_.Check(api_.event_record(event.get(), stream.native), "record an event");
  }

  bool EventTest(CudaEvent& event) override {
    return api_.Reached(event.get(), "tell whether an event has been reached");
  }
  void EventWait(CudaEvent& event, const dtrun_stream& stream) override {
    const OnDevice on(api_, DeviceOf(stream));
    api_.Check(api_.stream_wait_event(stream.native, event.get(), 0), "let a stream wait for an event");
  }
  void CounterWait(const std::uint32_t* counter, std::uint32_t value, const dtrun_stream& stream) override {
    const OnDevice on(api_, DeviceOf(stream));
    void* seen = nullptr;  // where the device sees the counter
    api_.Check(api_.host_get_device_pointer(&seen, const_cast<std::uint32_t*>(counter), 0),
               "reach the counter of a wait, which must be in memory that mem_alloc gave for the host");
    driver_.WaitValue(stream.native, reinterpret_cast<DevicePointer>(seen), value);
  }

 private:
  // Throws unless there is such a device; remembers it as one that is in use.
  int Checked(int device_index) {
    const int count = Count();
    if (device_index >= 0 && device_index < count) {
      used_last_.store(device_index, std::memory_order_relaxed);
      return device_index;
    }
    throw Failure(DTRUN_INVALID_ARGUMENT, "there is no CUDA device " + std::to_string(device_index) +
                                              ": this process has " + std::to_string(count) +
                                              ", counted from 0; check the index and CUDA_VISIBLE_DEVICES");
  }

  // Counting would be too slow here: a stream of no device is refused by CUDA.
  int DeviceOf(const dtrun_stream& stream) {
    if (stream.device_kind != DTRUN_DEVICE_CUDA) {
      throw Failure(DTRUN_INVALID_ARGUMENT, "a stream of device kind " + std::to_string(stream.device_kind) +
                                                " was given to the plugin of CUDA devices");
    }
    if (used_last_.load(std::memory_order_relaxed) != stream.device_index)
      return Checked(stream.device_index);
    return stream.device_index;
  }

  // The device for what belongs to none: the one used last, since making another one current would open it
  // and take memory of it.
  int AnyDevice() {
    const int last = used_last_.load(std::memory_order_relaxed);
    return last >= 0 ? last : Current();
  }

  const CudaApi api_;
  const CudaDriver driver_;
  std::atomic<int> used_last_{-1};
};

}  // namespace
}  // namespace dtrun::cuda

DTRUN_SDK_PLUGIN(dtrun::cuda::CudaDevice, .name = "cuda", .version = DTRUN_VERSION, .vendor = "dtrun",
                 .license = "Apache-2.0", .summary = "memory, streams and events of NVIDIA GPUs")
