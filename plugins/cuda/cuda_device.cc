#include "cuda_device.h"

#include <cstdint>

namespace dtrun::cuda {
namespace {

using sdk::Failure;

std::string PlaceText(const dtrun_mem_params& params) {
  return params.device_kind == DTRUN_DEVICE_HOST ? "the host"
                                                 : "device " + std::to_string(params.device_index);
}

}  // namespace

CudaEvent::CudaEvent(const CudaApi& api, int device) : api_(api), device_(device) {
  api.Check(api.event_create_with_flags(&event_, kEventDisableTiming), "create an event");
}

CudaEvent::~CudaEvent() { api_.event_destroy(event_); }

CudaDevice::CudaDevice(const sdk::Host&, const sdk::Options&) : api_("", "") {}

int CudaDevice::Count() {
  return api_.DeviceCount("this process has no CUDA device",
                          "check the driver with nvidia-smi and CUDA_VISIBLE_DEVICES");
}

int CudaDevice::Current() {
  int device = 0;
  api_.Check(api_.get_device(&device), "tell the current device");
  return device;
}

int CudaDevice::Checked(int device_index) {
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
int CudaDevice::DeviceOf(const dtrun_stream& stream) {
  if (stream.device_kind != DTRUN_DEVICE_CUDA) {
    throw Failure(DTRUN_INVALID_ARGUMENT, "a stream of device kind " + std::to_string(stream.device_kind) +
                                              " was given to the plugin of CUDA devices");
  }
  if (used_last_.load(std::memory_order_relaxed) != stream.device_index) return Checked(stream.device_index);
  return stream.device_index;
}

int CudaDevice::AnyDevice() {
  const int last = used_last_.load(std::memory_order_relaxed);
  return last >= 0 ? last : Current();
}

std::string CudaDevice::Describe(int device_index) {
  const int count = Count();
  if (device_index < 0 || device_index >= count) Checked(device_index);  // throws
  const auto properties = std::make_unique<DeviceProperties>();
  api_.Check(api_.get_device_properties(properties.get(), device_index),
             "describe device " + std::to_string(device_index));
  properties->name[sizeof properties->name - 1] = '\0';
  return std::string(static_cast<const char*>(properties->name)) + ", " + api_.BusId(device_index) +
         ", driver for CUDA " + CudaVersionText(api_.DriverVersion());
}

sdk::MemoryPlace CudaDevice::MemoryOf(const void* pointer) {
  const OnDevice on(api_, AnyDevice());
  PointerAttributes attributes;
  api_.Check(api_.pointer_get_attributes(&attributes, pointer), "finding the device of a pointer");
  if (attributes.type == kMemoryDevice) return {DTRUN_DEVICE_CUDA, attributes.device};
  if (attributes.type == kMemoryManaged) return {DTRUN_DEVICE_CUDA, -1};
  return {};
}

void* CudaDevice::MemAlloc(const dtrun_mem_params& params) {
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
    throw Failure(DTRUN_OUT_OF_MEMORY, "cuda cannot allocate " + std::to_string(params.bytes) + " bytes of " +
                                           PlaceText(params) + (host ? " as pinned memory" : "") + ": " +
                                           api_.Text(error) +
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

void CudaDevice::MemFree(const dtrun_mem_params& params, void* memory) {
  const bool host = params.device_kind == DTRUN_DEVICE_HOST;
  const Error error = api_.Handled(host ? api_.host_release(memory) : api_.release(memory));
  if (error == kUnloading) return;  // the process ends, and has freed it
  api_.Check(error, "free memory of " + PlaceText(params));
}

void* CudaDevice::StreamCreate(const dtrun_stream_params& params) {
  if (params.priority != 0 && params.priority != 1) {
    throw Failure(DTRUN_UNSUPPORTED, "a stream's priority is 0 or 1, not " + std::to_string(params.priority));
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

void CudaDevice::StreamDestroy(const dtrun_stream& stream) {
  const Error error = api_.Handled(api_.stream_destroy(stream.native));
  if (error != kUnloading) api_.Check(error, "destroy a stream");
}

bool CudaDevice::StreamCapturing(const dtrun_stream& stream) {
  const OnDevice on(api_, DeviceOf(stream));
  int status = kCaptureNone;
  api_.Check(api_.stream_is_capturing(stream.native, &status), "tell whether a stream is captured");
  return status != kCaptureNone;
}

void CudaDevice::Copy(void* to, const void* from, std::uint64_t bytes, const dtrun_stream& stream) {
  if (bytes == 0) return;
  const OnDevice on(api_, DeviceOf(stream));
  api_.Check(api_.memcpy_async(to, from, bytes, kCopyDefault, stream.native),
             "copy " + std::to_string(bytes) + " bytes");
}

std::unique_ptr<CudaEvent> CudaDevice::EventCreate(int device_index) {
  const OnDevice on(api_, Checked(device_index));
  return std::make_unique<CudaEvent>(api_, device_index);
}

void CudaDevice::EventRecord(CudaEvent& event, const dtrun_stream& stream) {
  const int device = DeviceOf(stream);
  if (event.device() != device) {
    throw Failure(DTRUN_INVALID_ARGUMENT, "an event of device " + std::to_string(event.device()) +
                                              " cannot be recorded on a stream of device " +
                                              std::to_string(device));
  }
  const OnDevice on(api_, device);
  api_.Check(api_.event_record(event.get(), stream.native), "record an event");
}

bool CudaDevice::EventTest(CudaEvent& event) {
  return api_.Reached(event.get(), "tell whether an event has been reached");
}

void CudaDevice::EventWait(CudaEvent& event, const dtrun_stream& stream) {
  const OnDevice on(api_, DeviceOf(stream));
  api_.Check(api_.stream_wait_event(stream.native, event.get(), 0), "let a stream wait for an event");
}

void CudaDevice::CounterWait(const std::uint32_t* counter, std::uint32_t value, const dtrun_stream& stream) {
  const OnDevice on(api_, DeviceOf(stream));
  void* seen = nullptr;  // where the device sees the counter
  api_.Check(api_.host_get_device_pointer(&seen, const_cast<std::uint32_t*>(counter), 0),
             "reach the counter of a wait, which must be in memory that mem_alloc gave for the host");
  driver_.WaitValue(stream.native, reinterpret_cast<DevicePointer>(seen), value);
}

}  // namespace dtrun::cuda
