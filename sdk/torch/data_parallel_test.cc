// The gradient arena, the engine and DataParallel; what they refuse is in data_parallel_refusal_test.cc. One
// program of both, compiled together: each unit that includes torch costs a minute of compilation.
#include "dtrun/torch/data_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/optim/sgd.h>

#include "sdk/torch/emulated_ranks.h"
#include "sdk/torch/small_models.h"

namespace dtrun::torch {
namespace {

using testing::DataParallelTest;
using ::testing::ElementsAre;
using testing::EmulatedRanks;
using testing::Mlp;
using testing::Probe;
using testing::Seeded;
using ::torch::Tensor;

std::vector<Tensor> Gradients(const ::torch::nn::Module& module) {
  std::vector<Tensor> gradients;
  for (const Tensor& parameter : module.parameters()) gradients.push_back(parameter.grad().clone());
  return gradients;
}

TEST_F(DataParallelTest, TwoRanksGetTheGradientThatOneRankGetsFromTheWholeBatch) {
  const Tensor x = (::torch::manual_seed(1), ::torch::randn({128, 784}));
  const Tensor y = ::torch::randint(10, {128}, ::torch::kInt64);
  auto alone = Seeded<Mlp>(2);
  DataParallel whole(*alone, EmulatedRanks(1).handle(0));
  ::torch::nn::functional::cross_entropy(alone->forward(x), y).backward();
  const std::vector<Tensor> expected = Gradients(*alone);

  EmulatedRanks world(2);
  std::vector<std::vector<Tensor>> got(2);
  world.run([&](int rank, const std::shared_ptr<Collectives>& ranks) {
    auto model = Seeded<Mlp>(static_cast<std::uint64_t>(rank == 0 ? 2 : 99));  // rank 0's weights win
    DataParallel dp(*model, ranks, {.first_bucket_bytes = 1000, .bucket_bytes = 100000});
    const auto mine = ::torch::arange(rank, 128, 2);
    dp.zero_grad();
    ::torch::nn::functional::cross_entropy(model->forward(x.index_select(0, mine)), y.index_select(0, mine))
        .backward();
    got[static_cast<std::size_t>(rank)] = Gradients(*model);
  });
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(got[0][i].equal(got[1][i])) << "parameter " << i;
    const double error = (got[0][i] - expected[i]).norm().item<double>() / expected[i].norm().item<double>();
    EXPECT_LE(error, 1e-6) << "parameter " << i;
  }
}

TEST_F(DataParallelTest, StartsBucketsDuringBackwardInTheSameOrderOnAllRanks) {
  EmulatedRanks world(2);
  world.run([](int, const std::shared_ptr<Collectives>& ranks) {
    auto model = Seeded<Mlp>(1);
    DataParallel dp(*model, ranks, {.first_bucket_bytes = 1, .bucket_bytes = 1});
    EXPECT_EQ(dp.engine()->buckets(), 6U);
    model->forward(::torch::ones({2, 784})).sum().backward();
    EXPECT_EQ(dp.engine()->stats().passes, 1U);
    EXPECT_EQ(dp.engine()->stats().early, 6U);
    EXPECT_EQ(dp.engine()->stats().late, 0U);
  });
  EXPECT_THAT(world.averages(0), ElementsAre(10, 1280, 128, 256 * 128, 256, 784 * 256));
  EXPECT_EQ(world.averages(1), world.averages(0));
}

TEST_F(DataParallelTest, ClosesABucketWhenItReachesItsSize) {
  EmulatedRanks world(2);
  world.run([](int, const std::shared_ptr<Collectives>& ranks) {
    auto model = Seeded<Mlp>(1);
    DataParallel dp(*model, ranks, {.first_bucket_bytes = 100, .bucket_bytes = 140000});
    model->forward(::torch::ones({2, 784})).sum().backward();
  });
  EXPECT_THAT(world.averages(0), ElementsAre(10 + 1280, 128 + 256 * 128 + 256 + 784 * 256));
}

TEST_F(DataParallelTest, CountsAParameterWithoutGradientAsZeroAtTheEndOfBackward) {
  EmulatedRanks world(2);
  world.run([](int rank, const std::shared_ptr<Collectives>& ranks) {
    Probe probe;
    DataParallel dp(probe, ranks, {.first_bucket_bytes = 1, .bucket_bytes = 1});
    // Only rank 0 uses `spare`; its bucket is the first, so rank 1 must hold back the other.
    Tensor loss = (probe.used * 2).sum();
    if (rank == 0) loss = loss + (probe.spare * 6).sum();
    loss.backward();
    EXPECT_TRUE(probe.used.grad().equal(::torch::full({4}, 2.0)));
    EXPECT_TRUE(probe.spare.grad().equal(::torch::full({4}, 3.0)));
    EXPECT_EQ(dp.engine()->stats().late, rank == 0 ? 0U : 2U);
  });
}

TEST_F(DataParallelTest, ReducesOnlyTheSumOfAnAccumulation) {
  EmulatedRanks world(2);
  world.run([](int rank, const std::shared_ptr<Collectives>& ranks) {
    Probe probe;
    DataParallel dp(probe, ranks);
    {
      auto guard = dp.no_sync();
      (probe.used * (1 + rank)).sum().backward();
      (probe.spare * 8).sum().backward();
    }
    EXPECT_EQ(dp.engine()->stats().passes, 0U);
    (probe.used * 10).sum().backward();
    EXPECT_EQ(dp.engine()->stats().passes, 1U);
    EXPECT_TRUE(probe.used.grad().equal(::torch::full({4}, 11.5)));
    EXPECT_TRUE(probe.spare.grad().equal(::torch::full({4}, 8.0)));
  });
  EXPECT_THAT(world.averages(0), ElementsAre(8));
}

TEST_F(DataParallelTest, KeepsGradientsInPlaceAndTakesBackReplacedOnes) {
  EmulatedRanks world(2);
  world.run([](int rank, const std::shared_ptr<Collectives>& ranks) {
    Probe probe;
    DataParallel dp(probe, ranks);
    void* const home = probe.used.grad().data_ptr();
    (probe.used * 2).sum().backward();
    EXPECT_EQ(probe.used.grad().data_ptr(), home);

    probe.used.mutable_grad() = ::torch::full({4}, 100.0 * rank);
    (probe.used * 1).sum().backward();
    EXPECT_TRUE(probe.used.grad().equal(::torch::full({4}, 51.0)));
    EXPECT_EQ(probe.used.grad().data_ptr(), home);

    probe.used.mutable_grad() = Tensor();
    dp.zero_grad();
    EXPECT_TRUE(probe.used.grad().equal(::torch::zeros({4})));
    EXPECT_EQ(probe.used.grad().data_ptr(), home);
  });
}

TEST_F(DataParallelTest, WorksWithTheOptimizersOwnZeroGrad) {
  EmulatedRanks world(2);
  world.run([](int, const std::shared_ptr<Collectives>& ranks) {
    Probe probe;
    DataParallel dp(probe, ranks);
    ::torch::optim::SGD optimizer(probe.parameters(), 1.0);
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      (probe.used * 2).sum().backward();
      EXPECT_TRUE(probe.used.grad().equal(::torch::full({4}, 2.0)));
      optimizer.step();
    }
    EXPECT_TRUE(probe.used.equal(::torch::full({4}, -6.0)));
  });
}

TEST_F(DataParallelTest, FiresOnceForAParameterThatTwoModulesShare) {
  EmulatedRanks world(2);
  world.run([](int, const std::shared_ptr<Collectives>& ranks) {
    ::torch::nn::Module tied;
    const Tensor weight = tied.register_parameter("encoder", ::torch::zeros({4}));
    tied.register_parameter("decoder", weight);
    DataParallel dp(tied, ranks);
    ((weight * 1).sum() + (weight * 2).sum()).backward();
    EXPECT_TRUE(weight.grad().equal(::torch::full({4}, 3.0)));
  });
  EXPECT_THAT(world.averages(0), ElementsAre(4));
}

TEST_F(DataParallelTest, KeepsElementTypesInBucketsOfTheirOwn) {
  EmulatedRanks world(2);
  world.run([](int rank, const std::shared_ptr<Collectives>& ranks) {
    ::torch::nn::Module mixed;
    const Tensor a = mixed.register_parameter("a", ::torch::zeros({3}, ::torch::kFloat64));
    const Tensor b = mixed.register_parameter("b", ::torch::zeros({5}));
    const Tensor c = mixed.register_parameter("c", ::torch::zeros({7}, ::torch::kFloat64));
    DataParallel dp(mixed, ranks);
    ((a.sum() + c.sum()) * rank + b.sum() * rank).backward();
    EXPECT_TRUE(a.grad().equal(::torch::full({3}, 0.5, ::torch::kFloat64)));
    EXPECT_TRUE(b.grad().equal(::torch::full({5}, 0.5)));
    EXPECT_TRUE(c.grad().equal(::torch::full({7}, 0.5, ::torch::kFloat64)));
  });
  EXPECT_THAT(world.averages(0), ElementsAre(3 + 7, 5));
}

TEST_F(DataParallelTest, HandlesParametersThatAreNotContiguous) {
  EmulatedRanks world(2);
  world.run([](int rank, const std::shared_ptr<Collectives>& ranks) {
    ::torch::nn::Module module;
    const Tensor weight =
        module.register_parameter("w", ::torch::full({3, 2}, rank + 1.0).t().detach().requires_grad_());
    DataParallel dp(module, ranks);
    EXPECT_TRUE(weight.equal(::torch::ones({2, 3})));
    const Tensor factor = ::torch::arange(6.0).reshape({2, 3}) * (rank * 2);
    (weight * factor).sum().backward();
    EXPECT_TRUE(weight.grad().equal(::torch::arange(6.0).reshape({2, 3})));
    EXPECT_EQ(weight.grad().strides(), weight.strides());
  });
}

TEST_F(DataParallelTest, BroadcastsBuffersOfRankZero) {
  EmulatedRanks world(2);
  world.run([](int rank, const std::shared_ptr<Collectives>& ranks) {
    ::torch::nn::BatchNorm1d norm(4);
    norm->running_mean.fill_(rank + 1);
    norm->num_batches_tracked.fill_(rank + 5);
    DataParallel dp(*norm, ranks);
    EXPECT_TRUE(norm->running_mean.equal(::torch::ones({4})));
    EXPECT_EQ(norm->num_batches_tracked.item<std::int64_t>(), 5);
    norm->running_mean.fill_(rank + 7);
    dp.broadcast_buffers();
    EXPECT_TRUE(norm->running_mean.equal(::torch::full({4}, 7.0)));
  });
}

TEST_F(DataParallelTest, AWorldOfOneHooksAndAllocatesNothing) {
  Probe probe;
  EmulatedRanks world(1);
  DataParallel dp(probe, world.handle(0));
  EXPECT_EQ(dp.engine(), nullptr);
  EXPECT_TRUE(::torch::autograd::impl::grad_accumulator(probe.used)->post_hooks().empty());
  EXPECT_FALSE(probe.used.grad().defined());
  {
    auto guard = dp.no_sync();
    (probe.used * 2).sum().backward();
  }
  EXPECT_TRUE(probe.used.grad().equal(::torch::full({4}, 2.0)));
  dp.zero_grad();
  EXPECT_FALSE(probe.used.grad().defined());
}

TEST_F(DataParallelTest, UnhooksWhenItEnds) {
  EmulatedRanks world(2);
  world.run([](int, const std::shared_ptr<Collectives>& ranks) {
    Probe probe;
    { DataParallel dp(probe, ranks); }
    (probe.used * 2).sum().backward();
    EXPECT_TRUE(probe.used.grad().equal(::torch::full({4}, 2.0)));
  });
  EXPECT_TRUE(world.averages(0).empty());
}

}  // namespace
}  // namespace dtrun::torch
