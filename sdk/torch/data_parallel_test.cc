// The gradient arena, the engine and DataParallel in one program: each file that includes
// torch costs a minute of compilation.
#include "dtrun/torch/data_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/functional/activation.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <cstring>
#include <mutex>

#include "sdk/torch/emulated_ranks.h"

namespace dtrun::torch {
namespace {

using ::testing::ElementsAre;
using testing::EmulatedRanks;
using ::testing::HasSubstr;
using ::torch::Tensor;

// Once: a matcher that fails runs its callable again to explain itself.
template <class Call>
std::string FailureOf(Call&& call) {
  try {
    call();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "no failure";
}

// The shape of dtrun-train's mlp: three layers, six parameters.
struct Mlp : ::torch::nn::Module {
  explicit Mlp(std::int64_t in = 784, std::int64_t hidden = 256, std::int64_t out = 10)
      : a(register_module("a", ::torch::nn::Linear(in, hidden))),
        b(register_module("b", ::torch::nn::Linear(hidden, 128))),
        c(register_module("c", ::torch::nn::Linear(128, out))) {}
  Tensor forward(const Tensor& x) { return c(::torch::relu(b(::torch::relu(a(x))))); }
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

std::vector<Tensor> Gradients(const ::torch::nn::Module& module) {
  std::vector<Tensor> gradients;
  for (const Tensor& parameter : module.parameters()) gradients.push_back(parameter.grad().clone());
  return gradients;
}

// Weight w of shape [1, 4]; the loss of input x has the gradient x for every weight.
struct Probe : ::torch::nn::Module {
  Probe()
      : used(register_parameter("used", ::torch::zeros({4}))),
        spare(register_parameter("spare", ::torch::zeros({4}))) {}
  Tensor used, spare;
};

class DataParallelTest : public ::testing::Test {
 protected:
  void SetUp() override { ::torch::set_num_threads(1); }
};

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

TEST_F(DataParallelTest, NamesTheFirstParameterThatDiffersBetweenRanks) {
  EmulatedRanks world(3);
  world.run([](int rank, const std::shared_ptr<Collectives>& ranks) {
    auto model = Seeded<Mlp>(1, 784, rank == 2 ? 200 : 256);
    EXPECT_THAT(
        FailureOf([&] { DataParallel(*model, ranks); }),
        HasSubstr("rank 0 has 'a.weight' Float [256, 784] where rank 2 has 'a.weight' Float [200, 784]"));
  });
}

TEST_F(DataParallelTest, NamesAParameterThatOneRankLacks) {
  EmulatedRanks world(2);
  world.run([](int rank, const std::shared_ptr<Collectives>& ranks) {
    ::torch::nn::Module module;
    module.register_parameter("a", ::torch::zeros({1}));
    if (rank == 0) module.register_parameter("extra", ::torch::zeros({1}));
    EXPECT_THAT(FailureOf([&] { DataParallel(module, ranks); }),
                HasSubstr("rank 0 has 'extra' Float [1] where rank 1 has"));
  });
}

TEST_F(DataParallelTest, RefusesBucketSizesThatDiffer) {
  EmulatedRanks world(2);
  world.run([](int rank, const std::shared_ptr<Collectives>& ranks) {
    Probe probe;
    EXPECT_THAT(FailureOf([&] { DataParallel(probe, ranks, {.bucket_bytes = rank + std::uint64_t{1}}); }),
                HasSubstr("bytes where rank 1 has buckets of"));
  });
}

TEST_F(DataParallelTest, RefusesAModuleWithNothingToTrain) {
  ::torch::nn::Module module;
  EmulatedRanks world(1);
  EXPECT_THAT(FailureOf([&] { DataParallel(module, world.handle(0)); }),
              HasSubstr("no parameter that requires a gradient"));
}

TEST_F(DataParallelTest, RefusesBackwardThatBuildsAGraph) {
  EmulatedRanks world(2);
  world.run([](int, const std::shared_ptr<Collectives>& ranks) {
    Probe probe;
    DataParallel dp(probe, ranks);
    EXPECT_THAT(FailureOf([&] { (probe.used * probe.used).sum().backward({}, true, true); }),
                HasSubstr("create_graph=true reached parameter 'used'"));
    // The gradient's graph holds the parameter, which holds the gradient.
    probe.used.mutable_grad() = Tensor();
  });
}

// Its backward runs another one, that of 4 * inner. `inner` is hidden from autograd, or its
// gradient would wait for this node.
struct Nested : ::torch::autograd::Function<Nested> {
  static Tensor forward(::torch::autograd::AutogradContext* context, const Tensor& x, Tensor* inner) {
    context->saved_data["inner"] = reinterpret_cast<std::int64_t>(inner);
    return x.clone();
  }
  static ::torch::autograd::variable_list backward(::torch::autograd::AutogradContext* context,
                                                   const ::torch::autograd::variable_list& gradients) {
    const ::torch::AutoGradMode with_graph(true);
    const auto* inner =
        reinterpret_cast<Tensor*>(context->saved_data["inner"].toInt());  // NOLINT(performance-no-int-to-ptr)
    (*inner * 4).sum().backward();
    return {gradients[0], Tensor()};
  }
};

TEST_F(DataParallelTest, CountsABackwardInsideABackward) {
  EmulatedRanks world(2);
  world.run([](int rank, const std::shared_ptr<Collectives>& ranks) {
    Probe probe;
    DataParallel dp(probe, ranks);
    Nested::apply(probe.used * (2 * rank), &probe.spare).sum().backward();
    EXPECT_TRUE(probe.used.grad().equal(::torch::full({4}, 1.0)));
    EXPECT_TRUE(probe.spare.grad().equal(::torch::full({4}, 4.0)));
  });
}

TEST_F(DataParallelTest, RefusesASecondGradientInOnePass) {
  EmulatedRanks world(2);
  world.run([](int, const std::shared_ptr<Collectives>& ranks) {
    Probe probe;
    DataParallel dp(probe, ranks);
    // Backward visits what was computed last first: `spare` opens the pass, then the
    // inner backward reaches it again.
    const Tensor early = Nested::apply(probe.used * 1, &probe.spare);
    const Tensor late = probe.spare * 2;
    EXPECT_THAT(FailureOf([&] { (early.sum() + late.sum()).backward(); }),
                HasSubstr("parameter 'spare' got a second gradient in one backward pass"));
  });
}

struct Thrower : ::torch::autograd::Function<Thrower> {
  static Tensor forward(::torch::autograd::AutogradContext*, const Tensor& x) { return x.clone(); }
  static ::torch::autograd::variable_list backward(::torch::autograd::AutogradContext*,
                                                   const ::torch::autograd::variable_list&) {
    throw std::runtime_error("out of luck");
  }
};

TEST_F(DataParallelTest, RefusesToGoOnAfterAnExceptionInBackward) {
  EmulatedRanks world(2);
  world.run([](int, const std::shared_ptr<Collectives>& ranks) {
    Probe probe;
    DataParallel dp(probe, ranks);
    const Tensor early = Thrower::apply(probe.used * 1);
    const Tensor late = probe.spare * 2;
    EXPECT_THROW((early.sum() + late.sum()).backward(), std::runtime_error);
    EXPECT_THAT(FailureOf([&] { (probe.used * 2).sum().backward(); }),
                HasSubstr("the previous backward pass ended with an exception"));
  });
}

// A world of two whose other rank always holds what this one holds.
class DuplicateRanks final : public Collectives {
 public:
  explicit DuplicateRanks(bool broken = false) : broken_(broken) {}
  int rank() const override { return 0; }
  int size() const override { return 2; }
  std::unique_ptr<Pending> average_async(void*, std::uint64_t, std::int32_t dtype) override {
    if (broken_) detail::fail(DTRUN_REMOTE_FAILURE, "rank 1 went away");
    dtypes.push_back(dtype);
    return std::make_unique<Done>();
  }
  void broadcast(void*, std::uint64_t, int) override {}
  void allgather(const void* send, void* recv, std::uint64_t bytes) override {
    std::memcpy(recv, send, bytes);
    std::memcpy(static_cast<char*>(recv) + bytes, send, bytes);
  }
  std::vector<std::int32_t> dtypes;

 private:
  struct Done final : Pending {
    void wait() override {}
  };
  bool broken_;
};

TEST_F(DataParallelTest, HandsTheFailureOfAnAllreduceToTheCallerOfBackward) {
  Probe probe;
  DataParallel dp(probe, std::make_shared<DuplicateRanks>(/*broken=*/true));
  EXPECT_THAT(FailureOf([&] { (probe.used.sum() + probe.spare.sum()).backward(); }),
              HasSubstr("rank 1 went away"));
}

TEST_F(DataParallelTest, AveragesEveryFloatingPointType) {
  ::torch::nn::Module module;
  Tensor loss = ::torch::zeros({});
  for (const auto type : {::torch::kFloat64, ::torch::kFloat32, ::torch::kBFloat16, ::torch::kFloat16}) {
    loss =
        loss +
        module.register_parameter(c10::toString(type), ::torch::ones({2}, type)).to(::torch::kFloat32).sum();
  }
  auto ranks = std::make_shared<DuplicateRanks>();
  DataParallel dp(module, ranks);
  loss.backward();
  EXPECT_THAT(ranks->dtypes, ElementsAre(DTRUN_FLOAT16, DTRUN_BFLOAT16, DTRUN_FLOAT32, DTRUN_FLOAT64));
  for (const Tensor& parameter : module.parameters()) {
    EXPECT_TRUE(parameter.grad().equal(::torch::ones_like(parameter))) << parameter.scalar_type();
  }
}

TEST_F(DataParallelTest, RefusesTypesThatCannotBeAveraged) {
  ::torch::nn::Module module;
  module.register_parameter("phase", ::torch::ones({2}, ::torch::kComplexFloat));
  EXPECT_THAT(FailureOf([&] { DataParallel(module, std::make_shared<DuplicateRanks>()); }),
              HasSubstr("parameter 'phase' is ComplexFloat [2]: gradients of this type cannot be averaged"));
}

}  // namespace
}  // namespace dtrun::torch
