// Two small models, and some steps of training with DataParallel on any device, for tests and programs of
// theirs.
//
// One thread of a rank calls; on the fake accelerator autograd's thread for the device works along.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/module.h>
#include <torch/optim/sgd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dtrun/torch/data_parallel.h"
#include "sdk/fake/accelerator.h"

namespace dtrun::torch::testing {

using ::torch::Tensor;

// Modules with parameters made on their device: torch 1.13's Module::to does not know devices like this one.
struct DeviceModel : ::torch::nn::Module {
  explicit DeviceModel(c10::Device to) : device(to), generator(at::detail::createCPUGenerator(7)) {}
  virtual Tensor forward(const Tensor& x) = 0;

 protected:
  Tensor parameter(const std::string& name, std::vector<std::int64_t> shape) {
    return register_parameter(name, (::torch::randn(shape, generator) * 0.2).to(device));
  }
  c10::Device device;
  at::Generator generator;
};
struct DeviceMlp : DeviceModel {
  explicit DeviceMlp(c10::Device to)
      : DeviceModel(to),
        a(parameter("a", {48, 64})),
        a_bias(parameter("a_bias", {48})),
        b(parameter("b", {10, 48})),
        b_bias(parameter("b_bias", {10})) {}
  Tensor forward(const Tensor& x) override {
    return ::torch::linear(::torch::relu(::torch::linear(x, a, a_bias)), b, b_bias);
  }
  Tensor a, a_bias, b, b_bias;
};
struct DeviceConv : DeviceModel {
  explicit DeviceConv(c10::Device to)
      : DeviceModel(to),
        filter(parameter("filter", {4, 1, 3, 3})),
        filter_bias(parameter("filter_bias", {4})),
        out(parameter("out", {10, 36})) {}
  Tensor forward(const Tensor& x) override {
    const Tensor seen = ::torch::conv2d(x.view({-1, 1, 8, 8}), filter, filter_bias, 2);
    return ::torch::linear(::torch::relu(seen).flatten(1), out);
  }
  Tensor filter, filter_bias, out;
};
// What a rank has after some steps.
struct Trained {
  std::vector<::torch::Tensor> weights;  // on the host
  std::uint64_t host_waits = 0;          // in those steps, of all fake devices of the process
};

template <class ModelT>
Trained Train(const std::shared_ptr<Collectives>& ranks, c10::Device device) {
  ModelT model(device);
  DataParallel dp(model, ranks, {/*first_bucket_bytes=*/1, /*bucket_bytes=*/4000});
  ::torch::optim::SGD optimizer(model.parameters(), ::torch::optim::SGDOptions(0.2).momentum(0.9));
  auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(ranks->rank()));
  constexpr std::int64_t kSteps = 4, kBatch = 24;
  const Tensor x = ::torch::randn({kSteps * kBatch, 64}, generator).to(device);
  const Tensor y = ::torch::randint(10, {kSteps * kBatch}, generator, ::torch::kInt64).to(device);
  std::vector<char> all(static_cast<std::size_t>(ranks->size()));
  ranks->allgather("", all.data(), 1);
  Trained result;
  result.host_waits = fake::host_waits();
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const auto mine = [&](const Tensor& tensor) {
      return tensor.slice(0, step * kBatch, (step + 1) * kBatch);
    };
    dp.zero_grad();
    ::torch::nn::functional::cross_entropy(model.forward(mine(x)), mine(y)).backward();
    optimizer.step();
  }
  ranks->allgather("", all.data(), 1);
  result.host_waits = fake::host_waits() - result.host_waits;
  ranks->allgather("", all.data(), 1);
  for (const Tensor& parameter : model.parameters())
    result.weights.push_back(parameter.detach().cpu().clone());
  return result;
}

inline bool Equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!a[i].equal(b[i])) return false;
  }
  return a.size() == b.size();
}

}  // namespace dtrun::torch::testing
