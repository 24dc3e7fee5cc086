// How much of the averaging of gradients hides behind backward, on the fake accelerator, where every operator
// takes 300 us and the link takes as long for all gradients as backward does. Prints, in milliseconds: the
// step without averages, the averages alone, both, and the part of the averages that is hidden.
//
//   device_overlap_bench [LAYERS]
#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/modules/linear.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "dtrun/torch/data_parallel.h"
#include "sdk/torch/fake/emulated_devices.h"

namespace dtrun::torch::testing {
namespace {

using ::torch::Tensor;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kWidth = 64;
constexpr int kRanks = 2;

double Since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct Layers : ::torch::nn::Module {
  Layers(int count, c10::Device device) {
    auto generator = at::detail::createCPUGenerator(1);
    for (int i = 0; i < count; ++i) {
      weights.push_back(register_parameter(std::to_string(i),
                                           (::torch::randn({kWidth, kWidth}, generator) / 8).to(device)));
    }
  }
  Tensor forward(Tensor x) const {
    for (const Tensor& weight : weights) x = ::torch::relu(::torch::mm(x, weight));
    return x.sum();
  }
  std::vector<Tensor> weights;
};

struct Times {
  double compute = 1e9, averages = 1e9, both = 1e9;  // the least of some rounds
};

Times Measure(int layers, double bytes_per_us) {
  Times times;
  EmulatedDevices world(kRanks, bytes_per_us);
  world.run([&](int rank, const std::shared_ptr<Collectives>& ranks) {
    Layers model(layers, fake::device(rank));
    const auto bucket = static_cast<std::uint64_t>(kWidth * kWidth * 4);
    DataParallel dp(model, ranks, {bucket, bucket});
    const Tensor x = ::torch::ones({8, kWidth}).to(fake::device(rank));
    const auto stream = ranks->stream_on(DTRUN_DEVICE_OTHER, rank);
    const auto timed = [&](auto&& work, fake::Stream& last) {
      char all[kRanks];
      ranks->allgather("", all, 1);
      const auto start = Clock::now();
      work();
      last.wait_on_host();
      return Since(start);
    };
    fake::Stream& compute = fake::default_stream(rank);
    // Only backward: what the averages can hide behind.
    const auto backward = [&](bool averaging) {
      dp.zero_grad();
      const Tensor loss = model.forward(x);
      compute.wait_on_host();
      if (averaging) return timed([&] { loss.backward(); }, compute);
      auto guard = dp.no_sync();
      return timed([&] { loss.backward(); }, compute);
    };
    for (int round = 0; round < 4; ++round) {
      const double alone = backward(false);
      const double averages = timed(
          [&] {
            for (const Tensor& weight : model.weights) {
              ranks->average_on(*stream, weight.grad().data_ptr(), static_cast<std::uint64_t>(weight.numel()),
                                DTRUN_FLOAT32);
            }
          },
          *static_cast<fake::Stream*>(stream->native));
      const double both = backward(true);
      if (rank != 0 || round == 0) continue;  // the first learns the operators' shapes
      times.compute = std::min(times.compute, alone);
      times.averages = std::min(times.averages, averages);
      times.both = std::min(times.both, both);
    }
  });
  return times;
}

}  // namespace
}  // namespace dtrun::torch::testing

int main(int argc, char** argv) {
  using namespace dtrun::torch::testing;  // NOLINT(google-build-using-namespace)
  const int layers = argc > 1 ? std::atoi(argv[1]) : 24;
  dtrun::fake::set_delays({0, 0, 300});
  const Times without = Measure(layers, 0);
  const double bytes = static_cast<double>(layers) * kWidth * kWidth * 4;
  const Times times = Measure(layers, bytes / ((without.compute - without.averages) * 1000));
  std::printf("backward %.1f  averages %.1f  both %.1f  hidden %.2f\n", times.compute, times.averages,
              times.both,
              (times.compute + times.averages - times.both) / std::min(times.compute, times.averages));
}
