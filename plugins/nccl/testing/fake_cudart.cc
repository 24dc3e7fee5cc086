// A CUDA runtime over host memory: one device (or as many as a test asks for) whose memory is
// the process's own, streams that are threads, events that they signal. Any thread, as the real one.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <sstream>
#include <string>

#include "fake_control.h"
#include "fake_stream.h"
#include "plugins/cuda/cuda_abi.h"

namespace {

using dtrun::nccl_fake::CudaControl;
using dtrun::nccl_fake::FakeStream;
using dtrun::nccl_fake::PeerFault;
namespace cuda = dtrun::cuda;

// What is recorded and what has come; shared with the streams that will signal it.
struct EventState {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t recorded = 0;
  std::uint64_t reached = 0;
  int device = 0;
};
using EventHandle = std::shared_ptr<EventState>;

thread_local int current_device = 0;

PeerFault FaultNamed(const std::string& name) {
  constexpr const char* kNames[] = {"none", "refused", "unsupported", "corrupt", "slow", "hang", "crash"};
  for (int i = 0; i < static_cast<int>(std::size(kNames)); ++i) {
    if (name == kNames[i]) return static_cast<PeerFault>(i);
  }
  std::fprintf(stderr, "DTRUN_FAKE_PEERS: no fault '%s'\n", name.c_str());
  std::abort();
}

// Whether it is meant for this host: "node1/0>1=hang" is for node1. Takes the name off.
bool IsForHere(std::string* one) {
  const std::size_t slash = one->find('/');
  if (slash == std::string::npos) return true;
  char here[256] = {};
  gethostname(here, sizeof here - 1);
  const bool same = one->compare(0, slash, here) == 0;
  one->erase(0, slash + 1);
  return same;
}

void ReadEnvironment(CudaControl& control) {
  if (const char* const count = std::getenv("DTRUN_FAKE_DEVICES")) control.device_count = std::atoi(count);
  if (const char* const delays = std::getenv("DTRUN_FAKE_DELAYS")) {
    char* rest = nullptr;
    control.delay_seed = std::strtoull(delays, &rest, 10);
    if (*rest == ':') control.delay_us = std::atoi(rest + 1);
  }
  if (const char* const memory = std::getenv("DTRUN_FAKE_MEMORY"))
    control.knows_memory = std::string(memory) == "known";
  if (const char* const bytes = std::getenv("DTRUN_FAKE_HOST_BYTES"))
    control.host_bytes_left = std::atoll(bytes);
  if (const char* const bytes = std::getenv("DTRUN_FAKE_DEVICE_BYTES"))
    control.device_bytes_left = std::atoll(bytes);
  const char* const peers = std::getenv("DTRUN_FAKE_PEERS");
  std::istringstream in(peers == nullptr ? "" : peers);
  for (std::string one; std::getline(in, one, ',');) {
    int from = 0;
    int to = 0;
    char name[16] = {};
    if (IsForHere(&one) && std::sscanf(one.c_str(), "%d>%d=%15s", &from, &to, name) == 3)
      control.SetPeer(from, to, FaultNamed(name));
  }
}

CudaControl& Control() {
  static CudaControl control;
  static const bool read = [] { return ReadEnvironment(control), true; }();
  static_cast<void>(read);
  return control;
}

PeerFault FaultOf(int from, int to) {
  CudaControl& control = Control();
  const std::lock_guard lock(control.mutex);
  const auto found = control.peers.find({from, to});
  return found == control.peers.end() ? PeerFault::kNone : found->second;
}

// What cudaMalloc and cudaHostAlloc have given.
struct Block {
  std::size_t bytes = 0;
  int device = -1;  // -1: of the host
};

// All streams, the default ones among them, and all memory.
struct Devices {
  std::mutex mutex;
  std::set<FakeStream*> all;
  std::map<int, FakeStream*> default_streams;
  std::uint64_t made = 0;
  std::map<std::uintptr_t, Block> blocks;

  // REQUIRES the lock.
  FakeStream* Make(int device) {
    auto* const stream = new FakeStream(Control(), device, made++);
    all.insert(stream);
    return stream;
  }
};
Devices& Device() {
  // A process that was forked has none of its parent's threads.
  static Devices* devices = nullptr;
  static pid_t owner = 0;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (owner != getpid()) {
    devices = new Devices;
    owner = getpid();
  }
  return *devices;
}

FakeStream& Of(void* stream) {
  if (stream != nullptr) return *static_cast<FakeStream*>(stream);
  Devices& devices = Device();
  const std::lock_guard lock(devices.mutex);
  FakeStream*& found = devices.default_streams[current_device];
  if (found == nullptr) found = devices.Make(current_device);
  return *found;
}

// Takes `bytes` of what is left; false when that is less.
bool Take(std::atomic<std::int64_t>& left, std::size_t bytes) {
  std::int64_t now = left;
  while (now >= 0) {
    if (now < static_cast<std::int64_t>(bytes)) return false;
    if (left.compare_exchange_weak(now, now - static_cast<std::int64_t>(bytes))) return true;
  }
  return true;
}

void GiveBack(std::atomic<std::int64_t>& left, std::size_t bytes) {
  std::int64_t now = left;
  while (now >= 0 && !left.compare_exchange_weak(now, now + static_cast<std::int64_t>(bytes))) {
  }
}

int Allocate(void** out, std::size_t bytes, int device) {
  constexpr std::size_t kPage = 4096;
  const std::size_t align = device < 0 ? kPage : 256;
  std::atomic<std::int64_t>& left = device < 0 ? Control().host_bytes_left : Control().device_bytes_left;
  if (!Take(left, bytes)) return cuda::kOutOfMemory;
  void* const memory = std::aligned_alloc(align, (bytes + align - 1) / align * align);
  if (memory == nullptr) return cuda::kOutOfMemory;
  const std::lock_guard lock(Device().mutex);
  Device().blocks[reinterpret_cast<std::uintptr_t>(memory)] = {bytes, device};
  *out = memory;
  return cuda::kSuccess;
}

// The block that `pointer` is in, which it no longer is where `forget`; bytes 0 when there is none.
Block BlockOf(const void* pointer, bool forget = false) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  Devices& devices = Device();
  const std::lock_guard lock(devices.mutex);
  auto found = devices.blocks.upper_bound(address);
  if (found == devices.blocks.begin()) return {};
  --found;
  if (address - found->first >= std::max<std::size_t>(found->second.bytes, 1)) return {};
  const Block block = found->second;
  if (forget) devices.blocks.erase(found);
  return block;
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
    default: return "unrecognized error code";
  }
}

int cudaGetLastError() { return cuda::kSuccess; }

int cudaPointerGetAttributes(cuda::PointerAttributes* out, const void* pointer) {
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

int cudaStreamIsCapturing(void* stream, int* status) {
  CudaControl& control = Control();
  const std::lock_guard lock(control.mutex);
  *status = control.capturing.count(stream) != 0 ? 1 : cuda::kCaptureNone;
  return cuda::kSuccess;
}

int cudaStreamDestroy(void* stream) {
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
  auto* const made = new EventHandle(std::make_shared<EventState>());
  (*made)->device = current_device;
  ++Control().events;
  *event = made;
  return cuda::kSuccess;
}

int cudaEventDestroy(cuda::Event event) {
  delete static_cast<EventHandle*>(event);
  --Control().events;
  return cuda::kSuccess;
}

int cudaEventRecord(cuda::Event event, void* stream) {
  const EventHandle state = StateOf(event);
  if (Of(stream).device != state->device) return cuda::kInvalidHandle;
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

int cudaMalloc(void** out, std::size_t bytes) { return Allocate(out, bytes, current_device); }

int cudaHostAlloc(void** out, std::size_t bytes, unsigned flags) {
  if ((flags & cuda::kHostPortable) == 0 || (flags & cuda::kHostMapped) == 0)
    return 1;  // nobody wants that here
  return Allocate(out, bytes, -1);
}

int cudaFreeHost(void* memory) {
  const Block block = BlockOf(memory, true);
  if (block.bytes == 0) return 1;  // cudaErrorInvalidValue
  GiveBack(Control().host_bytes_left, block.bytes);
  const std::shared_ptr<void> last(memory, &std::free);
  const std::lock_guard lock(Device().mutex);
  for (FakeStream* const stream : Device().all) stream->Post([last] {});
  return cuda::kSuccess;
}

int cudaHostGetDevicePointer(void** out, void* memory, unsigned) {
  const Block block = BlockOf(memory);
  if (block.bytes == 0 || block.device >= 0) return 1;
  *out = memory;
  return cuda::kSuccess;
}

// CUDA waits for the device. Here the memory goes when all streams have done what they had to do
// by now: ranks that are threads share the device, and would wait for one another.
int cudaFree(void* memory) {
  const Block block = BlockOf(memory, true);
  GiveBack(Control().device_bytes_left, block.bytes);
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

int cudaStreamSynchronize(void* stream) {
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
  return FaultOf(peer, current_device) == PeerFault::kUnsupported ? cuda::kPeerAccessUnsupported
                                                                  : cuda::kSuccess;
}

int cudaMemcpyPeerAsync(void* to, int reader, const void* from, int owner, std::size_t bytes, void* stream) {
  const PeerFault fault = FaultOf(owner, reader);
  Of(stream).Post([=] {
    if (fault == PeerFault::kHang) pause();
    if (fault == PeerFault::kCrash) std::abort();
    if (fault == PeerFault::kSlow) usleep(300'000);  // slow beside the copies of a busy host too
    std::memcpy(to, from, bytes);
    if (fault == PeerFault::kCorrupt) static_cast<unsigned char*>(to)[bytes / 2] ^= 1u;
  });
  return cuda::kSuccess;
}

}  // extern "C"
