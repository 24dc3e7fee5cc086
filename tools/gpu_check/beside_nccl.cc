// Compares an allreduce of device memory through dtrun with NCCL's own, alternating in one run.
//
//   beside_nccl [DEVICE [SECONDS_OF_A_SIZE [SIZE...]]]
//
// Layers: `dtrun`; `bare`, an ordinary communicator; `bare, not blocking`, which leaves the call to NCCL's
// threads; with one rank also `copy`, the runtime's own copy. In each round every layer runs one batch, in
// rotating order. A batch is several calls without a wait, then one wait for the stream; its time is that of
// its slowest rank. Rank 0 prints a line of JSON per row for tools/gpu_check/benches.py. Results are compared
// before anything is measured. With one rank NCCL implements a sum as a copy, and an average as a kernel over
// all elements; both are measured.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "dtrun/dtrun.hpp"
#include "tools/gpu_check/bare_nccl.h"

namespace dtrun::gpu_check {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kBatchSeconds = 0.005;
constexpr int kMostCalls = 100;  // the driver queues about a thousand launches before it blocks
constexpr std::size_t kMostRounds = 200;

double Since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

struct Layer {
  std::string name;
  std::function<void(std::size_t count)> call;
  std::vector<double> enqueue{}, whole{};  // seconds per call
};

class Bench {
 public:
  Bench(const Communicator& world, int device) : world_(world) {
    const Library runtime{"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"};
    runtime.Find("cudaSetDevice", set_device_);
    runtime.Find("cudaMalloc", allocate_);
    runtime.Find("cudaMemcpyAsync", copy_);
    runtime.Find("cudaStreamSynchronize", synchronize_);
    CheckCuda(set_device_(device), "cudaSetDevice");
    dtrun_error error;
    DTRUN_ERROR_INIT(error);
    CheckDtrun(dtrun_comm_connect(world_.get(), DTRUN_DEVICE_CUDA, device, &error), error);
    DTRUN_INIT(stream_);
    CheckDtrun(dtrun_stream_create(world_.get(), DTRUN_DEVICE_CUDA, device, 0, &stream_, &error), error);
    DTRUN_INIT(op_);
    op_.kind = DTRUN_ALLREDUCE;
    op_.dtype = DTRUN_FLOAT32;
    op_.reduce = DTRUN_SUM;
    op_.root = op_.peer = -1;
    layers_.push_back({"dtrun", [this](std::size_t count) { ThroughDtrun(count); }});
    for (const bool blocking : {true, false}) AddBare(blocking);
    if (world_.size() == 1) layers_.push_back({"copy", [this](std::size_t count) { Copy(count); }});
  }

  // Selects the reduction. An average is only for one rank, where it equals the sum.
  void Reduce(bool average) {
    average_ = average;
    op_.reduce = average ? DTRUN_AVG : DTRUN_SUM;
  }

  void Run(std::size_t bytes, double seconds) {
    const std::size_t count = std::max<std::size_t>(bytes / sizeof(float), 1);
    Allocate(count);
    for (Layer& layer : layers_) {
      layer.enqueue.clear();
      layer.whole.clear();
    }
    const double call = Compare(count);
    const int calls = std::clamp(static_cast<int>(kBatchSeconds / std::max(call, 1e-7)), 1, kMostCalls);
    const auto rounds =
        std::clamp(static_cast<std::size_t>(seconds / (calls * call * static_cast<double>(layers_.size()))),
                   std::size_t{8}, kMostRounds);
    for (std::size_t round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < layers_.size(); ++i)
        Sample(layers_[(i + round) % layers_.size()], count, calls);
    }
    if (world_.rank() == 0) Print(count * sizeof(float), calls);
  }

 private:
  static void CheckCuda(cuda::Error error, const char* what) {
    if (error != cuda::kSuccess)
      throw std::runtime_error(std::string(what) + ": error " + std::to_string(error));
  }
  static void CheckDtrun(dtrun_status status, const dtrun_error& error) {
    if (status != DTRUN_OK) throw std::runtime_error(error.message);
  }

  void ThroughDtrun(std::size_t count) {
    dtrun_error error;
    DTRUN_ERROR_INIT(error);
    op_.send = send_;
    op_.recv = recv_;
    op_.count = count;
    CheckDtrun(dtrun_submit_on(world_.get(), &op_, &stream_, nullptr, &error), error);
  }

  void Copy(std::size_t count) {
    CheckCuda(copy_(recv_, send_, count * sizeof(float), cuda::kCopyDeviceToDevice, stream_.native),
              "a copy");
  }

  void AddBare(bool blocking) {
    const char* const name = blocking ? "bare" : "bare, not blocking";
    try {
      auto bare = std::make_shared<BareNccl>(world_.rank(), world_.size(), blocking,
                                             [this](void* data, std::size_t bytes) {
                                               world_.broadcast(static_cast<unsigned char*>(data), bytes, 0);
                                             });
      layers_.push_back({name, [this, bare](std::size_t count) {
                           bare->AllReduce(send_, recv_, count, average_ ? nccl::kAvg : nccl::kSum,
                                           stream_.native);
                         }});
    } catch (const std::exception& error) {
      std::fprintf(stderr, "beside_nccl: rank %d: without '%s': %s\n", world_.rank(), name, error.what());
    }
  }

  void Allocate(std::size_t count) {
    if (count <= room_) return;
    // Smaller buffers are kept until the process ends: sizes grow.
    CheckCuda(allocate_(&send_, count * sizeof(float)), "cudaMalloc");
    CheckCuda(allocate_(&recv_, count * sizeof(float)), "cudaMalloc");
    room_ = count;
    std::vector<float> numbers(count);
    for (std::size_t i = 0; i < count; ++i)
      numbers[i] = static_cast<float>(i % 7 + static_cast<std::size_t>(world_.rank()));
    CheckCuda(copy_(send_, numbers.data(), count * sizeof(float), cuda::kCopyHostToDevice, stream_.native),
              "a copy");
    Wait();
  }

  void Wait() { CheckCuda(synchronize_(stream_.native), "cudaStreamSynchronize"); }

  // Warms up every layer and compares the results. Returns the time per call of the slowest layer.
  double Compare(std::size_t count) {
    const auto size = static_cast<std::size_t>(world_.size());
    double slowest = 0;
    for (Layer& layer : layers_) {
      std::vector<float> got(count, -1);
      CheckCuda(copy_(recv_, got.data(), count * sizeof(float), cuda::kCopyHostToDevice, stream_.native),
                "a copy");
      for (int i = 0; i < 3; ++i) layer.call(count);
      Wait();
      const auto start = Clock::now();
      for (int i = 0; i < 3; ++i) layer.call(count);
      Wait();
      slowest = std::max(slowest, Since(start) / 3);
      CheckCuda(copy_(got.data(), recv_, count * sizeof(float), cuda::kCopyDeviceToHost, stream_.native),
                "a copy");
      Wait();
      for (std::size_t i = 0; i < count; ++i) {
        const auto want = static_cast<float>(size * (i % 7) + size * (size - 1) / 2);
        if (got[i] == want) continue;
        throw std::runtime_error("'" + layer.name + "' is wrong at element " + std::to_string(i));
      }
    }
    world_.allreduce(&slowest, 1, dtrun::Reduce::max);
    return slowest;
  }

  void Sample(Layer& layer, std::size_t count, int calls) {
    world_.barrier();
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) layer.call(count);
    const double enqueued = Since(start);
    Wait();
    double times[] = {enqueued / calls, Since(start) / calls};
    world_.allreduce(times, 2, dtrun::Reduce::max);
    layer.enqueue.push_back(times[0]);
    layer.whole.push_back(times[1]);
  }

  void Print(std::size_t bytes, int calls) const {
    for (const Layer& layer : layers_) {
      std::printf(
          "{\"bytes\": %zu, \"reduce\": \"%s\", \"layer\": \"%s\", \"ranks\": %d, \"calls\": %d, "
          "\"samples\": %zu, \"median_us\": %.3f, \"min_us\": %.3f, \"enqueue_us\": %.3f}\n",
          bytes, average_ ? "avg" : "sum", layer.name.c_str(), world_.size(), calls, layer.whole.size(),
          Median(layer.whole) * 1e6, *std::min_element(layer.whole.begin(), layer.whole.end()) * 1e6,
          Median(layer.enqueue) * 1e6);
    }
    std::fflush(stdout);
  }

  Communicator world_;
  dtrun_stream stream_;
  dtrun_op op_;
  bool average_ = false;
  std::vector<Layer> layers_;
  void* send_ = nullptr;
  void* recv_ = nullptr;
  std::size_t room_ = 0;
  cuda::Error (*set_device_)(int) = nullptr;
  cuda::Error (*allocate_)(void**, std::size_t) = nullptr;
  cuda::Error (*copy_)(void*, const void*, std::size_t, int, cuda::Stream) = nullptr;
  cuda::Error (*synchronize_)(cuda::Stream) = nullptr;
};

int Main(int argc, char** argv) {
  const Session session;
  Bench bench(session.world(), argc > 1 ? std::atoi(argv[1]) : 0);
  const double seconds = argc > 2 ? std::atof(argv[2]) : 1;
  std::vector<std::size_t> sizes;
  for (int i = 3; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  if (sizes.empty()) sizes = {8, 4096, 65536, 1 << 20, 8 << 20, 64 << 20, 256 << 20};
  for (const std::size_t size : sizes) {
    bench.Run(size, seconds);
    if (session.world().size() > 1) continue;
    bench.Reduce(true);
    bench.Run(size, seconds);
    bench.Reduce(false);
  }
  return 0;
}

}  // namespace
}  // namespace dtrun::gpu_check

int main(int argc, char** argv) {
  try {
    return dtrun::gpu_check::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "beside_nccl: %s\n", error.what());
    return 1;
  }
}
