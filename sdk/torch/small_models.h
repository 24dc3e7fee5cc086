// Small models to train with DataParallel, and the fixture of its tests.
#pragma once

#include <gtest/gtest.h>
#include <torch/nn/functional/activation.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <cstdint>
#include <memory>
#include <mutex>

namespace dtrun::torch::testing {

// The shape of dtrun-train's mlp: three layers, six parameters.
struct Mlp : ::torch::nn::Module {
  explicit Mlp(std::int64_t in = 784, std::int64_t hidden = 256, std::int64_t out = 10)
      : a(register_module("a", ::torch::nn::Linear(in, hidden))),
        b(register_module("b", ::torch::nn::Linear(hidden, 128))),
        c(register_module("c", ::torch::nn::Linear(128, out))) {}
  ::torch::Tensor forward(const ::torch::Tensor& x) { return c(::torch::relu(b(::torch::relu(a(x))))); }
  ::torch::nn::Linear a, b, c;
};

// Seeds are process-wide, so ranks that are threads make their models one at a time.
template <class Model, class... Args>
std::unique_ptr<Model> Seeded(std::uint64_t seed, Args... args) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  ::torch::manual_seed(seed);
  return std::make_unique<Model>(args...);
}

// Weight w of shape [1, 4]; the loss of input x has the gradient x for every weight.
struct Probe : ::torch::nn::Module {
  Probe()
      : used(register_parameter("used", ::torch::zeros({4}))),
        spare(register_parameter("spare", ::torch::zeros({4}))) {}
  ::torch::Tensor used, spare;
};

class DataParallelTest : public ::testing::Test {
 protected:
  void SetUp() override { ::torch::set_num_threads(1); }
};

}  // namespace dtrun::torch::testing
