// A CUDA runtime over host memory: one device (or as many as a test asks for) whose memory is
// the process's own, streams that are threads, events that they signal.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>

#include "fake_control.h"
#include "fake_stream.h"
#include "plugins/nccl/cuda_abi.h"

namespace {

using dtrun::nccl_fake::CudaControl;
using dtrun::nccl_fake::FakeStream;
namespace cuda = dtrun::nccl_plugin::cuda;

// What is recorded and what has come; shared with the streams that will signal it.
struct EventState {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t recorded = 0;
  std::uint64_t reached = 0;
};
using EventHandle = std::shared_ptr<EventState>;

thread_local int current_device = 0;

CudaControl& Control() {
  static CudaControl control;
  return control;
}

// All streams, the default one among them.
struct Streams {
  std::mutex mutex;
  std::set<FakeStream*> all;
  FakeStream default_stream;
  Streams() { all.insert(&default_stream); }
};
Streams& Device() {
  static Streams streams;
  return streams;
}

FakeStream& Of(void* stream) {
  return stream == nullptr ? Device().default_stream : *static_cast<FakeStream*>(stream);
}

const EventHandle& StateOf(cuda::Event event) { return *static_cast<EventHandle*>(event); }

}  // namespace

// The runtime's own names and types.
extern "C" {

CudaControl* dtrun_fake_cuda() { return &Control(); }

void dtrun_fake_run(void* stream, const void* task) {
  Of(stream).Post(*static_cast<const std::function<void()>*>(task));
}

int cudaGetDeviceCount(int* count) {
  if (Control().device_error != 0) return Control().device_error;
  *count = Control().device_count;
  return *count > 0 ? cuda::kSuccess : cuda::kNoDevice;
}

int cudaGetDevice(int* device) {
  *device = current_device;
  return cuda::kSuccess;
}

int cudaSetDevice(int device) {
  if (device < 0 || device >= Control().device_count) return 101;  // cudaErrorInvalidDevice
  current_device = device;
  return cuda::kSuccess;
}

int cudaDeviceGetPCIBusId(char* text, int size, int device) {
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02x:00.0", device + 1);
  return cuda::kSuccess;
}

int cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cuda::kSuccess;
}

const char* cudaGetErrorString(int error) {
  switch (error) {
    case cuda::kSuccess: return "no error";
    case cuda::kInsufficientDriver: return "CUDA driver version is insufficient for CUDA runtime version";
    case cuda::kNoDevice: return "no CUDA-capable device is detected";
    case cuda::kPeerAccessUnsupported: return "peer access is not supported between these two devices";
    case cuda::kNotReady: return "device not ready";
    case 700: return "an illegal memory access was encountered";
    default: return "unrecognized error code";
  }
}

int cudaGetLastError() { return cuda::kSuccess; }

int cudaPointerGetAttributes(cuda::PointerAttributes* out, const void* pointer) {
  CudaControl& control = Control();
  const std::lock_guard lock(control.mutex);
  *out = {};
  if (control.host_memory.count(pointer) != 0) return cuda::kSuccess;
  out->type = cuda::kMemoryDevice;
  out->device = 0;
  return cuda::kSuccess;
}

int cudaStreamCreateWithFlags(void** stream, unsigned) {
  auto* const made = new FakeStream;
  const std::lock_guard lock(Device().mutex);
  Device().all.insert(made);
  *stream = made;
  return cuda::kSuccess;
}

int cudaStreamDestroy(void* stream) {
  auto* const made = static_cast<FakeStream*>(stream);
  {
    const std::lock_guard lock(Device().mutex);
    Device().all.erase(made);
  }
  delete made;
  return cuda::kSuccess;
}

int cudaStreamWaitEvent(void* stream, cuda::Event event, unsigned) {
  const EventHandle state = StateOf(event);
  std::uint64_t until = 0;
  {
    const std::lock_guard lock(state->mutex);
    until = state->recorded;
  }
  Of(stream).Post([state, until] {
    std::unique_lock lock(state->mutex);
    state->changed.wait(lock, [&] { return state->reached >= until; });
  });
  return cuda::kSuccess;
}

int cudaEventCreateWithFlags(cuda::Event* event, unsigned) {
  *event = new EventHandle(std::make_shared<EventState>());
  return cuda::kSuccess;
}

int cudaEventDestroy(cuda::Event event) {
  delete static_cast<EventHandle*>(event);
  return cuda::kSuccess;
}

int cudaEventRecord(cuda::Event event, void* stream) {
  const EventHandle state = StateOf(event);
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(state->mutex);
    number = ++state->recorded;
  }
  Of(stream).Post([state, number] {
    const std::lock_guard lock(state->mutex);
    state->reached = std::max(state->reached, number);
    state->changed.notify_all();
  });
  return cuda::kSuccess;
}

int cudaEventQuery(cuda::Event event) {
  if (Control().event_error != 0) return Control().event_error;
  const EventHandle state = StateOf(event);
  const std::lock_guard lock(state->mutex);
  return state->reached >= state->recorded ? cuda::kSuccess : cuda::kNotReady;
}

int cudaMalloc(void** out, std::size_t bytes) {
  *out = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *out != nullptr ? cuda::kSuccess : 2;  // cudaErrorMemoryAllocation
}

// CUDA waits for the device. Here the memory goes when all streams have done what they had to do
// by now: ranks that are threads share the device, and would wait for one another.
int cudaFree(void* memory) {
  const std::shared_ptr<void> last(memory, &std::free);
  const std::lock_guard lock(Device().mutex);
  for (FakeStream* const stream : Device().all) stream->Post([last] {});
  return cuda::kSuccess;
}

int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int, void* stream) {
  Of(stream).Post([=] { std::memcpy(to, from, bytes); });
  return cuda::kSuccess;
}

int cudaMemsetAsync(void* to, int value, std::size_t bytes, void* stream) {
  Of(stream).Post([=] { std::memset(to, value, bytes); });
  return cuda::kSuccess;
}

}  // extern "C"
