// The devices of the fake CUDA runtime: their streams, and which device owns a memory. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "fake_control.h"
#include "fake_stream.h"

namespace dtrun::nccl_fake {

extern thread_local int current_device;

// As the environment says at first.
CudaControl& Control();

// What cudaMalloc and cudaHostAlloc have given.
struct Block {
  std::size_t bytes = 0;
  int device = -1;  // -1: of the host
};

// A stream that is being captured.
struct Capture {
  int mode = 0;  // cudaStreamCaptureMode
  std::thread::id owner;
  bool invalid = false;
  std::vector<FakeStream::Maker> nodes;
};

// All streams, the default ones among them, and all memory.
struct Devices {
  std::mutex mutex;
  std::set<FakeStream*> all;
  std::map<int, FakeStream*> default_streams;
  std::map<std::pair<int, int>, FakeStream*> queues;  // that streams share, by device and number
  std::uint64_t made = 0;
  std::map<std::uintptr_t, Block> blocks;
  std::map<const FakeStream*, std::unique_ptr<Capture>> captures;

  // REQUIRES the lock.
  FakeStream* Make(int device);
};
// Of this process.
Devices& Device();

// Null is the default stream of the calling thread's device.
FakeStream& Of(void* stream);

// A call of the runtime, for as long as it lives. `synchronizes`: it begins when every stream has done what
// it had to do by then.
class DriverCall {
 public:
  explicit DriverCall(bool synchronizes = false);

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

// For a call that may not be made while a stream is captured, as the modes of the captures and of the thread
// have it: then it ends them, and gives cudaErrorStreamCaptureUnsupported. Else success.
int NotWhileCapturing();
// Whether `stream` is captured; with `error` not success that ends the capture.
bool Captured(const FakeStream& stream, int error = 0);

// Memory of a device, or of the host for -1; a cudaError_t.
int Allocate(void** out, std::size_t bytes, int device);
// `left` grows again, where it is a limit.
void GiveBack(std::atomic<std::int64_t>& left, std::size_t bytes);
// The block that `pointer` is in, which it no longer is where `forget`; bytes 0 when there is none.
Block BlockOf(const void* pointer, bool forget = false);

}  // namespace dtrun::nccl_fake
