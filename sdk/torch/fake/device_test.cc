// DataParallel on the fake accelerator: the numbers of the host under random delays, without a wait of the
// host, and what happens when one wait of a stream is missing.
//
// DTRUN_FAKE_SEEDS=1000 tries that many seeds instead of a few.
#include <c10/core/StreamGuard.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/utils.h>
#include <torch/version.h>

#include <cstdlib>

#include "sdk/torch/fake/emulated_devices.h"
#include "sdk/torch/fake/training.h"

namespace dtrun::torch {
namespace {

using testing::DeviceConv;
using testing::DeviceMlp;
using testing::EmulatedDevices;
using testing::EmulatedRanks;
using testing::Equal;
using testing::Train;
using testing::Trained;
using Tensors = std::vector<::torch::Tensor>;
using ::testing::HasSubstr;
using ::torch::Tensor;

class DeviceTest : public ::testing::Test {
 protected:
  DeviceTest() { ::torch::set_num_threads(1); }
  ~DeviceTest() override {
    fake::set_delays({});
    fake::ignore(fake::Ignored::none);
    fake::settle();
  }
  static void DelayWork(std::uint64_t seed) { fake::set_delays({seed, 400, 0}); }
};

std::uint64_t Seeds() {
  const char* wanted = std::getenv("DTRUN_FAKE_SEEDS");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 20;
}

struct Probe : ::torch::nn::Module {
  explicit Probe(c10::Device on)
      : used(register_parameter("used", ::torch::zeros({4}, ::torch::TensorOptions(on)))),
        spare(register_parameter("spare", ::torch::zeros({4}, ::torch::TensorOptions(on)))) {}
  Tensor used, spare;
};

// Rank 0's weights.
template <class ModelT>
Tensors OnTheHost() {
  EmulatedRanks world(2);
  Tensors weights;
  world.run([&](int rank, const std::shared_ptr<Collectives>& ranks) {
    const Trained mine = Train<ModelT>(ranks, ::torch::kCPU);
    if (rank == 0) weights = mine.weights;
  });
  return weights;
}
template <class ModelT>
Trained OnDevices() {
  EmulatedDevices world(2);
  Trained result;
  world.run([&](int rank, const std::shared_ptr<Collectives>& ranks) {
    const Trained mine = Train<ModelT>(ranks, fake::device(rank));
    if (rank == 0) result = mine;
  });
  return result;
}

template <class ModelT>
void TryManySeeds() {
  const Tensors expected = OnTheHost<ModelT>();
  for (std::uint64_t seed = 1; seed <= Seeds(); ++seed) {
    fake::set_delays({seed, 400, 0});
    ASSERT_TRUE(Equal(OnDevices<ModelT>().weights, expected)) << "with seed " << seed;
  }
}

TEST_F(DeviceTest, AnMlpHasTheWeightsOfTheHostWhateverTheDelays) { TryManySeeds<DeviceMlp>(); }
TEST_F(DeviceTest, AConvolutionHasTheWeightsOfTheHostWhateverTheDelays) { TryManySeeds<DeviceConv>(); }

TEST_F(DeviceTest, TheHostWaitsForNothingInAStep) {
  DelayWork(1);
  EXPECT_EQ(OnDevices<DeviceMlp>().host_waits, 0u);
}

TEST_F(DeviceTest, TrainsOnAStreamOfTheCallers) {
  if (TORCH_VERSION_MAJOR < 2) GTEST_SKIP() << "its autograd knows streams of CUDA only";
  const Tensors expected = OnTheHost<DeviceMlp>();
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    DelayWork(seed);
    EmulatedDevices world(2);
    world.run([&](int rank, const std::shared_ptr<Collectives>& ranks) {
      const c10::impl::VirtualGuardImpl guard(fake::device(rank).type());
      const c10::StreamGuard side(guard.getStreamFromGlobalPool(fake::device(rank)));
      EXPECT_TRUE(Equal(Train<DeviceMlp>(ranks, fake::device(rank)).weights, expected));
    });
  }
}

// Without it the seeds would prove nothing.
TEST_F(DeviceTest, AMissingWaitOfTheAveragesShows) {
  const Tensors expected = OnTheHost<DeviceMlp>();
  DelayWork(1);
  fake::ignore(fake::Ignored::waits_of_made_streams);
  EXPECT_FALSE(Equal(OnDevices<DeviceMlp>().weights, expected));
}
TEST_F(DeviceTest, AMissingWaitOfTheOptimizerShows) {
  const Tensors expected = OnTheHost<DeviceMlp>();
  DelayWork(1);
  fake::ignore(fake::Ignored::waits_of_default_streams);
  EXPECT_FALSE(Equal(OnDevices<DeviceMlp>().weights, expected));
}

TEST_F(DeviceTest, CountsParametersWithoutGradientAndAccumulates) {
  DelayWork(2);
  EmulatedDevices world(2);
  world.run([](int rank, const std::shared_ptr<Collectives>& ranks) {
    Probe probe(fake::device(rank));
    const Tensor used = probe.used, spare = probe.spare;
    DataParallel dp(probe, ranks, {.first_bucket_bytes = 1, .bucket_bytes = 1});
    {
      auto guard = dp.no_sync();
      (used * (1 + rank)).sum().backward();
    }
    Tensor loss = (used * 10).sum();
    if (rank == 0) loss = loss + (spare * 6).sum();
    loss.backward();
    EXPECT_TRUE(used.grad().cpu().equal(::torch::full({4}, 11.5)));
    EXPECT_TRUE(spare.grad().cpu().equal(::torch::full({4}, 3.0)));
    EXPECT_EQ(dp.engine()->stats().passes, 1u);
  });
}

TEST_F(DeviceTest, AveragesMixedTypesAndSharedParameters) {
  DelayWork(3);
  EmulatedDevices world(2);
  world.run([](int rank, const std::shared_ptr<Collectives>& ranks) {
    const auto on = ::torch::TensorOptions(fake::device(rank));
    ::torch::nn::Module module;
    const Tensor a = module.register_parameter("a", ::torch::zeros({3}, on.dtype(::torch::kFloat64)));
    const Tensor b = module.register_parameter("b", ::torch::zeros({5}, on.dtype(::torch::kBFloat16)));
    module.register_parameter("again", a);
    DataParallel dp(module, ranks);
    ((a * rank).sum() + (a * rank).sum() + (b * rank).sum().to(::torch::kFloat64)).backward();
    EXPECT_TRUE(a.grad().cpu().equal(::torch::full({3}, 1.0, ::torch::kFloat64)));
    EXPECT_TRUE(b.grad().cpu().equal(::torch::full({5}, 0.5, ::torch::kBFloat16)));
  });
}

TEST_F(DeviceTest, BroadcastsParametersAndBuffersOfRankZero) {
  DelayWork(4);
  EmulatedDevices world(2);
  world.run([](int rank, const std::shared_ptr<Collectives>& ranks) {
    const auto on = ::torch::TensorOptions(fake::device(rank));
    ::torch::nn::Module module;
    const Tensor weight = module.register_parameter("weight", ::torch::full({2, 3}, rank + 1.0, on).t());
    const Tensor mean = module.register_buffer("mean", ::torch::full({4}, rank + 1.0, on));
    DataParallel dp(module, ranks);
    EXPECT_TRUE(weight.cpu().equal(::torch::ones({3, 2})));
    EXPECT_TRUE(mean.cpu().equal(::torch::ones({4})));
    mean.fill_(rank + 7);
    dp.broadcast_buffers();
    EXPECT_TRUE(mean.cpu().equal(::torch::full({4}, 7.0)));
  });
}

TEST_F(DeviceTest, LeavesGradientsThatOutliveIt) {
  DelayWork(5);
  EmulatedDevices world(2);
  world.run([](int rank, const std::shared_ptr<Collectives>& ranks) {
    Probe probe(fake::device(rank));
    const Tensor used = probe.used;
    {
      DataParallel dp(probe, ranks);
      (used * (2 + 2 * rank)).sum().backward();
    }
    const Tensor reuse = ::torch::full({8}, 9.0, ::torch::TensorOptions(fake::device(rank)));
    EXPECT_TRUE(used.grad().cpu().equal(::torch::full({4}, 3.0)));
    EXPECT_TRUE(reuse.cpu().equal(::torch::full({8}, 9.0)));
  });
}

std::string RefusalOf(::torch::nn::Module& module, const std::shared_ptr<Collectives>& ranks) {
  try {
    DataParallel dp(module, ranks);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "no failure";
}

TEST_F(DeviceTest, RefusesParametersOnTwoDevices) {
  EmulatedDevices world(2);
  world.run([](int, const std::shared_ptr<Collectives>& ranks) {
    ::torch::nn::Module module;
    module.register_parameter("here", ::torch::zeros({1}, ::torch::TensorOptions(fake::device(0))));
    module.register_parameter("there", ::torch::zeros({1}, ::torch::TensorOptions(fake::device(1))));
    EXPECT_THAT(RefusalOf(module, ranks), HasSubstr("parameter 'there' is on " + fake::device(1).str() +
                                                    " and 'here' on " + fake::device(0).str()));
  });
}

TEST_F(DeviceTest, RefusesRanksWithDifferentKindsOfDevices) {
  EmulatedDevices world(2);
  world.run([](int rank, const std::shared_ptr<Collectives>& ranks) {
    Probe probe(rank == 1 ? fake::device(1) : c10::Device(::torch::kCPU));
    EXPECT_THAT(RefusalOf(probe, ranks),
                HasSubstr("rank 0 has parameters on cpu where rank 1 has parameters on " +
                          c10::DeviceTypeName(fake::device(0).type(), true)));
  });
}

TEST_F(DeviceTest, RefusesRanksThatAverageHostMemoryOnly) {
  EmulatedRanks world(2);
  world.run([](int rank, const std::shared_ptr<Collectives>& ranks) {
    Probe probe(fake::device(rank));
    EXPECT_THAT(RefusalOf(probe, ranks), HasSubstr("these ranks average host memory only"));
  });
}

}  // namespace
}  // namespace dtrun::torch
