#include "fake_devices.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <iterator>
#include <sstream>
#include <string>

#include "plugins/cuda/cuda_abi.h"

namespace dtrun::nccl_fake {
namespace {

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

// As with NVIDIA's driver: its library then reports no device.
bool MayNotOpen(const char* path) {
  const int descriptor = open(path, O_RDWR | O_CLOEXEC);
  if (descriptor >= 0) close(descriptor);
  return descriptor < 0;
}

void ReadEnvironment(CudaControl& control) {
  if (const char* const count = std::getenv("DTRUN_FAKE_DEVICES")) control.device_count = std::atoi(count);
  if (std::getenv("DTRUN_FAKE_FILES") != nullptr && MayNotOpen("/dev/nvidiactl")) control.device_count = 0;
  if (const char* const driver = std::getenv("DTRUN_FAKE_DRIVER")) {
    control.driver_version = std::atoi(driver);
    control.device_error = 35;  // cudaErrorInsufficientDriver
  }
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
  if (const char* const locks = std::getenv("DTRUN_FAKE_LOCKS")) control.locks = std::atoi(locks) != 0;
  if (const char* const queues = std::getenv("DTRUN_FAKE_QUEUES")) control.queues = std::atoi(queues);
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

// Takes `bytes` of what is left; false when that is less.
bool Take(std::atomic<std::int64_t>& left, std::size_t bytes) {
  std::int64_t now = left;
  while (now >= 0) {
    if (now < static_cast<std::int64_t>(bytes)) return false;
    if (left.compare_exchange_weak(now, now - static_cast<std::int64_t>(bytes))) return true;
  }
  return true;
}

}  // namespace

thread_local int current_device = 0;

CudaControl& Control() {
  static CudaControl control;
  static const bool read = [] { return ReadEnvironment(control), true; }();
  static_cast<void>(read);
  return control;
}

FakeStream* Devices::Make(int device) {
  const int most = Control().queues;
  if (most == 0) {
    auto* const stream = new FakeStream(Control(), device, made++);
    all.insert(stream);
    return stream;
  }
  FakeStream*& queue = queues[{device, static_cast<int>(made++ % static_cast<std::uint64_t>(most))}];
  if (queue == nullptr) queue = new FakeStream(Control(), device, made);
  auto* const stream = new FakeStream(*queue);
  all.insert(stream);
  return stream;
}

DriverCall::DriverCall(bool synchronizes) {
  static auto& mutex = *new std::recursive_mutex;
  if (!Control().locks) return;
  lock_ = std::unique_lock(mutex);
  if (!synchronizes) return;
  std::vector<std::future<void>> ends;
  {
    const std::lock_guard lock(Device().mutex);
    for (FakeStream* const stream : Device().all) {
      auto end = std::make_shared<std::promise<void>>();
      ends.push_back(end->get_future());
      stream->PostNow([end] { end->set_value(); });
    }
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (const std::future<void>& end : ends) {
    if (end.wait_until(until) == std::future_status::ready) continue;
    std::fprintf(stderr, "fake CUDA: a call has waited 20 s for the device, which waits for another call\n");
    std::abort();
  }
}

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

Block BlockOf(const void* pointer, bool forget) {
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

}  // namespace dtrun::nccl_fake
