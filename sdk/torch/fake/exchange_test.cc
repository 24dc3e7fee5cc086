// DeviceExchange alone: gradients that several streams write, and memory that ends before its work.
#include <c10/core/StreamGuard.h>
#include <gtest/gtest.h>

#include "dtrun/torch/device_exchange.h"
#include "sdk/torch/fake/emulated_devices.h"

namespace dtrun::torch {
namespace {

using testing::EmulatedDevices;
using ::torch::Tensor;

class ExchangeTest : public ::testing::Test {
 protected:
  ExchangeTest() { ::torch::set_num_threads(1); }
  ~ExchangeTest() override {
    fake::set_delays({});
    fake::settle();
  }
  static c10::Stream NewStream(c10::Device device) {
    return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
  }
};

TEST_F(ExchangeTest, FollowsEveryStreamThatWroteAndIsFollowedByTheCallers) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    fake::set_delays({seed, 1000, 0});
    EmulatedDevices world(2);
    world.run([](int rank, const std::shared_ptr<Collectives>& ranks) {
      const ::torch::NoGradGuard no_gradient;
      const c10::Device device = fake::device(rank);
      DeviceExchange exchange(ranks, device);
      const Tensor buffer = exchange.buffer(::torch::kFloat32, 8);
      exchange.begin();
      const auto write = [&](std::int64_t from, float value) {
        const c10::StreamGuard guard(NewStream(device));
        c10::Event zeroed(device.type());  // as autograd orders its streams
        zeroed.record(c10::Stream(c10::Stream::DEFAULT, device));
        zeroed.block(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
        buffer.slice(0, from, from + 4).fill_(value + static_cast<float>(rank));
        exchange.wrote();
      };
      write(0, 1);
      write(4, 5);
      exchange.start(buffer.data_ptr(), 8, DTRUN_FLOAT32);
      const c10::StreamGuard caller(NewStream(device));
      exchange.finish();
      const Tensor seen = buffer.clone();
      EXPECT_TRUE(seen.slice(0, 0, 4).cpu().equal(::torch::full({4}, 1.5)));
      EXPECT_TRUE(seen.slice(0, 4, 8).cpu().equal(::torch::full({4}, 5.5)));
      exchange.end();
    });
  }
}

TEST_F(ExchangeTest, FreesMemoryBehindTheAveragesThatNobodyWaitedFor) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    fake::set_delays({seed, 1000, 0});
    EmulatedDevices world(2);
    world.run([](int rank, const std::shared_ptr<Collectives>& ranks) {
      const ::torch::NoGradGuard no_gradient;
      const c10::Device device = fake::device(rank);
      const auto options = ::torch::TensorOptions(device);
      {
        DeviceExchange exchange(ranks, device);
        const Tensor buffer = exchange.buffer(::torch::kFloat32, 8);
        exchange.begin();
        exchange.wrote();
        for (int i = 0; i < 5; ++i) exchange.start(buffer.data_ptr(), 8, DTRUN_FLOAT32);
        exchange.end();
      }
      const Tensor next = ::torch::full({8}, 7.0, options);  // in the same memory
      EXPECT_TRUE(next.cpu().equal(::torch::full({8}, 7.0)));
    });
  }
}

}  // namespace
}  // namespace dtrun::torch
