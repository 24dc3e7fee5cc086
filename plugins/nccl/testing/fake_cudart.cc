// A CUDA runtime over host memory: one device (or as many as a test asks for) with memory that is
// the process's own, streams that are threads, events that they signal. Any thread, as the real one.
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

#include "fake_control.h"
#include "fake_devices.h"
#include "fake_stream.h"
#include "plugins/cuda/cuda_abi.h"

namespace {

using dtrun::nccl_fake::Allocate;
using dtrun::nccl_fake::Block;
using dtrun::nccl_fake::BlockOf;
using dtrun::nccl_fake::Captured;
using dtrun::nccl_fake::Control;
using dtrun::nccl_fake::CudaControl;
using dtrun::nccl_fake::current_device;
using dtrun::nccl_fake::Device;
using dtrun::nccl_fake::DriverCall;
using dtrun::nccl_fake::FakeStream;
using dtrun::nccl_fake::GiveBack;
using dtrun::nccl_fake::NotWhileCapturing;
using dtrun::nccl_fake::Of;
using dtrun::nccl_fake::PeerFault;
namespace cuda = dtrun::cuda;

// What is recorded and what has come; shared with the streams that will signal it.
struct EventState {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t recorded = 0;
  std::uint64_t reached = 0;
  bool captured = false;  // recorded in a stream that was captured: it is a place in a graph
  int device = 0;
};
using EventHandle = std::shared_ptr<EventState>;

PeerFault FaultOf(int from, int to) {
  CudaControl& control = Control();
  const std::lock_guard lock(control.mutex);
  const auto found = control.peers.find({from, to});
  return found == control.peers.end() ? PeerFault::kNone : found->second;
}

thread_local int last_error = cuda::kSuccess;

// What a call returns; the thread keeps an error until it is read.
int Told(int error) {
  if (error != cuda::kSuccess) last_error = error;
  return error;
}

const EventHandle& StateOf(cuda::Event event) { return *static_cast<EventHandle*>(event); }

}  // namespace

// The runtime's own names and types.
extern "C" {

CudaControl* dtrun_fake_cuda() { return &Control(); }

void dtrun_fake_run(void* stream, const void* task) {
  Of(stream).Post(*static_cast<const FakeStream::Task*>(task));
}

void dtrun_fake_make(void* stream, const void* maker) {
  Of(stream).PostMade(*static_cast<const FakeStream::Maker*>(maker));
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
  *version = Control().driver_version;
  return cuda::kSuccess;
}

int cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cuda::kSuccess;
}

int cudaGetDeviceProperties(cuda::DeviceProperties* properties, int device) {
  std::snprintf(properties->name, sizeof properties->name, "Fake GPU %d", device);
  return cuda::kSuccess;
}

const char* cudaGetErrorString(int error) {
  switch (error) {
    case cuda::kSuccess: return "no error";
    case 1: return "invalid argument";
    case cuda::kOutOfMemory: return "out of memory";
    case 101: return "invalid device ordinal";
    case cuda::kInvalidHandle: return "invalid resource handle";
    case cuda::kInsufficientDriver: return "CUDA driver version is insufficient for CUDA runtime version";
    case cuda::kNoDevice: return "no CUDA-capable device is detected";
    case cuda::kPeerAccessUnsupported: return "peer access is not supported between these two devices";
    case cuda::kNotReady: return "device not ready";
    case 700: return "an illegal memory access was encountered";
    case cuda::kCaptureUnsupported: return "operation not permitted when stream is capturing";
    case cuda::kCaptureIsolation: return "dependency created on uncaptured work in another stream";
    default: return "unrecognized error code";
  }
}

int cudaGetLastError() { return std::exchange(last_error, cuda::kSuccess); }

int cudaPointerGetAttributes(cuda::PointerAttributes* out, const void* pointer) {
  const DriverCall call;
  CudaControl& control = Control();
  *out = {};
  {
    const std::lock_guard lock(control.mutex);
    if (control.host_memory.count(pointer) != 0) return cuda::kSuccess;
    if (control.managed_memory.count(pointer) != 0) {
      out->type = cuda::kMemoryManaged;
      out->device = 0;
      return cuda::kSuccess;
    }
  }
  const Block block = BlockOf(pointer);
  if (block.bytes == 0 && control.knows_memory) return cuda::kSuccess;
  out->type = block.device < 0 && block.bytes > 0 ? cuda::kMemoryHost : cuda::kMemoryDevice;
  out->device = std::max(block.device, 0);
  return cuda::kSuccess;
}

int cudaStreamCreateWithPriority(void** stream, unsigned, int priority) {
  const DriverCall call;
  const std::lock_guard lock(Device().mutex);
  *stream = Device().Make(current_device);
  Control().last_priority = priority;
  ++Control().streams;
  return cuda::kSuccess;
}

int cudaStreamCreateWithFlags(void** stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cuda::kSuccess;
}

int cudaStreamDestroy(void* stream) {
  const DriverCall call;
  auto* const made = static_cast<FakeStream*>(stream);
  {
    const std::lock_guard lock(Device().mutex);
    if (Device().all.erase(made) == 0) return cuda::kInvalidHandle;
  }
  --Control().streams;
  made->Retire();
  return cuda::kSuccess;
}

int cudaStreamWaitEvent(void* stream, cuda::Event event, unsigned) {
  const DriverCall call;
  const EventHandle state = StateOf(event);
  std::uint64_t until = 0;
  bool in_graph = false;
  {
    const std::lock_guard lock(state->mutex);
    until = state->recorded;
    in_graph = state->captured;
  }
  if (Captured(Of(stream), in_graph ? 0 : cuda::kCaptureIsolation))
    return Told(in_graph ? cuda::kSuccess : cuda::kCaptureIsolation);
  if (in_graph) return cuda::kNotSupported;  // it would take the stream into the capture
  Of(stream).Post([state, until] {
    std::unique_lock lock(state->mutex);
    state->changed.wait(lock, [&] { return state->reached >= until; });
  });
  return cuda::kSuccess;
}

int cudaEventCreateWithFlags(cuda::Event* event, unsigned) {
  const DriverCall call;
  auto* const made = new EventHandle(std::make_shared<EventState>());
  (*made)->device = current_device;
  ++Control().events;
  *event = made;
  return cuda::kSuccess;
}

int cudaEventDestroy(cuda::Event event) {
  const DriverCall call;
  delete static_cast<EventHandle*>(event);
  --Control().events;
  return cuda::kSuccess;
}

int cudaEventRecord(cuda::Event event, void* stream) {
  const DriverCall call;
  const EventHandle state = StateOf(event);
  if (Of(stream).device != state->device) return cuda::kInvalidHandle;
  std::uint64_t number = 0;
  const bool captured = Captured(Of(stream));
  {
    const std::lock_guard lock(state->mutex);
    state->captured = captured;
    if (captured) return cuda::kSuccess;
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
  const DriverCall call;
  if (Control().event_error != 0) return Control().event_error;
  if (const int error = NotWhileCapturing(); error != cuda::kSuccess) return error;
  const EventHandle state = StateOf(event);
  const std::lock_guard lock(state->mutex);
  if (state->captured) return Told(cuda::kCapturedEvent);
  return Told(state->reached >= state->recorded ? cuda::kSuccess : cuda::kNotReady);
}

int cudaMalloc(void** out, std::size_t bytes) {
  const DriverCall call(true);
  if (const int error = NotWhileCapturing(); error != cuda::kSuccess) return error;
  return Allocate(out, bytes, current_device);
}

int cudaHostAlloc(void** out, std::size_t bytes, unsigned flags) {
  const DriverCall call(true);
  if ((flags & cuda::kHostPortable) == 0 || (flags & cuda::kHostMapped) == 0) return 1;  // not wanted here
  return Allocate(out, bytes, -1);
}

int cudaFreeHost(void* memory) {
  const DriverCall call(true);
  const Block block = BlockOf(memory, true);
  if (block.bytes == 0) return 1;  // cudaErrorInvalidValue
  GiveBack(Control().host_bytes_left, block.bytes);
  const std::shared_ptr<void> last(memory, &std::free);
  const std::lock_guard lock(Device().mutex);
  for (FakeStream* const stream : Device().all) stream->PostNow([last] {});
  return cuda::kSuccess;
}

int cudaHostGetDevicePointer(void** out, void* memory, unsigned) {
  const DriverCall call;
  const Block block = BlockOf(memory);
  if (block.bytes == 0 || block.device >= 0) return 1;
  *out = memory;
  return cuda::kSuccess;
}

// CUDA waits for the device, as this does with `locks`. Else the memory goes when all streams have done what
// they had to do by now: ranks that are threads share the device, and would wait for one another.
int cudaFree(void* memory) {
  const DriverCall call(true);
  if (const int error = NotWhileCapturing(); error != cuda::kSuccess) return error;
  const Block block = BlockOf(memory, true);
  GiveBack(Control().device_bytes_left, block.bytes);
  const std::shared_ptr<void> last(memory, &std::free);
  const std::lock_guard lock(Device().mutex);
  for (FakeStream* const stream : Device().all) stream->PostNow([last] {});
  return cuda::kSuccess;
}

int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int, void* stream) {
  const DriverCall call;
  Of(stream).Post([=] { std::memcpy(to, from, bytes); });
  return cuda::kSuccess;
}

int cudaMemsetAsync(void* to, int value, std::size_t bytes, void* stream) {
  const DriverCall call;
  Of(stream).Post([=] { std::memset(to, value, bytes); });
  return cuda::kSuccess;
}

int cudaLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  Of(stream).Post([=] { function(data); });
  return cuda::kSuccess;
}

int cudaDeviceSynchronize() {
  if (const int error = NotWhileCapturing(); error != cuda::kSuccess) return error;
  ++Control().host_waits;
  std::list<std::promise<void>> done;  // of each stream
  {
    const std::lock_guard lock(Device().mutex);
    for (FakeStream* const stream : Device().all)
      stream->PostNow([&last = done.emplace_back()] { last.set_value(); });
  }
  for (std::promise<void>& last : done) last.get_future().wait();
  return cuda::kSuccess;
}

int cudaStreamSynchronize(void* stream) {
  if (Captured(Of(stream), cuda::kCaptureUnsupported)) return cuda::kCaptureUnsupported;
  if (const int error = NotWhileCapturing(); error != cuda::kSuccess) return error;
  ++Control().host_waits;
  std::promise<void> done;
  Of(stream).Post([&done] { done.set_value(); });
  done.get_future().wait();
  return cuda::kSuccess;
}

int cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  *can = FaultOf(peer, device) == PeerFault::kRefused ? 0 : 1;
  return cuda::kSuccess;
}

int cudaDeviceEnablePeerAccess(int peer, unsigned) {
  const bool refused = FaultOf(peer, current_device) == PeerFault::kUnsupported;
  return Told(refused ? cuda::kPeerAccessUnsupported : cuda::kSuccess);
}

int cudaMemcpyPeerAsync(void* to, int reader, const void* from, int owner, std::size_t bytes, void* stream) {
  const PeerFault fault = FaultOf(owner, reader);
  Of(stream).Post([=] {
    if (fault == PeerFault::kHang) pause();
    if (fault == PeerFault::kCrash) std::abort();
    if (fault == PeerFault::kSlow)
      usleep(250'000);  // slow beside a busy host too; five times this is below the limit of a pair
    std::memcpy(to, from, bytes);
    if (fault == PeerFault::kCorrupt) static_cast<unsigned char*>(to)[bytes / 2] ^= 1u;
  });
  return cuda::kSuccess;
}

}  // extern "C"
