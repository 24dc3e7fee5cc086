// Graphs of the fake CUDA runtime: a stream that is captured records what it is given, and a launch of the
// graph posts that again. One stream is captured at a time in a graph; forks to others are refused. Any
// thread, as the real one.
#include <utility>

#include "fake_devices.h"
#include "plugins/cuda/cuda_abi.h"

namespace dtrun::nccl_fake {
namespace {

struct Graph {
  std::vector<FakeStream::Maker> nodes;
};

// cudaStreamCaptureMode of what this thread does beside captures.
thread_local int thread_mode = cuda::kCaptureGlobal;

}  // namespace

int NotWhileCapturing() {
  if (thread_mode == cuda::kCaptureRelaxed) return cuda::kSuccess;
  Devices& devices = Device();
  const std::lock_guard lock(devices.mutex);
  int error = cuda::kSuccess;
  for (auto& [stream, capture] : devices.captures) {
    const bool own = capture->owner == std::this_thread::get_id();
    if (own ? capture->mode == cuda::kCaptureRelaxed
            : thread_mode != cuda::kCaptureGlobal || capture->mode != cuda::kCaptureGlobal)
      continue;
    capture->invalid = true;
    error = cuda::kCaptureUnsupported;
  }
  return error;
}

bool Captured(const FakeStream& stream, int error) {
  Devices& devices = Device();
  const std::lock_guard lock(devices.mutex);
  const auto found = devices.captures.find(&stream);
  if (found == devices.captures.end()) return false;
  if (error != cuda::kSuccess) found->second->invalid = true;
  return true;
}

}  // namespace dtrun::nccl_fake

using dtrun::nccl_fake::Capture;
using dtrun::nccl_fake::Control;
using dtrun::nccl_fake::Device;
using dtrun::nccl_fake::Devices;
using dtrun::nccl_fake::FakeStream;
using dtrun::nccl_fake::Graph;
using dtrun::nccl_fake::Of;
namespace cuda = dtrun::cuda;

// The runtime's own names and types.
extern "C" {

int cudaThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, dtrun::nccl_fake::thread_mode);
  return cuda::kSuccess;
}

int cudaStreamIsCapturing(void* stream, int* status) {
  bool asked = false;
  {
    const std::lock_guard lock(Control().mutex);
    asked = Control().capturing.count(stream) != 0;
  }
  *status = asked || dtrun::nccl_fake::Captured(Of(stream)) ? 1 : cuda::kCaptureNone;
  return cuda::kSuccess;
}

int cudaStreamBeginCapture(void* stream, int mode) {
  if (stream == nullptr) return cuda::kCaptureUnsupported;
  FakeStream& of = Of(stream);
  Devices& devices = Device();
  const std::lock_guard lock(devices.mutex);
  std::unique_ptr<Capture>& capture = devices.captures[&of];
  if (capture != nullptr) return cuda::kCaptureUnsupported;
  capture = std::make_unique<Capture>();
  capture->mode = mode;
  capture->owner = std::this_thread::get_id();
  of.Record(&capture->nodes);
  return cuda::kSuccess;
}

int cudaStreamEndCapture(void* stream, void** out) {
  FakeStream& of = Of(stream);
  std::unique_ptr<Capture> capture;
  {
    Devices& devices = Device();
    const std::lock_guard lock(devices.mutex);
    const auto found = devices.captures.find(&of);
    if (found == devices.captures.end()) return 1;  // cudaErrorInvalidValue
    capture = std::move(found->second);
    devices.captures.erase(found);
    of.Record(nullptr);
  }
  *out = nullptr;
  if (capture->invalid) return cuda::kCaptureInvalid;
  *out = new Graph{std::move(capture->nodes)};
  return cuda::kSuccess;
}

int cudaGraphInstantiateWithFlags(void** out, void* graph, unsigned long long) {
  *out = new Graph(*static_cast<Graph*>(graph));
  return cuda::kSuccess;
}

int cudaGraphLaunch(void* executable, void* stream) {
  FakeStream& of = Of(stream);
  for (const FakeStream::Maker& node : static_cast<Graph*>(executable)->nodes) of.PostMade(node);
  return cuda::kSuccess;
}

int cudaGraphDestroy(void* graph) {
  delete static_cast<Graph*>(graph);
  return cuda::kSuccess;
}

int cudaGraphExecDestroy(void* executable) { return cudaGraphDestroy(executable); }

}  // extern "C"
