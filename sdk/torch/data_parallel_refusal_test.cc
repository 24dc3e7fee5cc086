// What DataParallel refuses, and how failures reach the caller of backward.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstring>

#include "dtrun/torch/data_parallel.h"
#include "sdk/torch/emulated_ranks.h"
#include "sdk/torch/small_models.h"

namespace dtrun::torch {
namespace {

using testing::DataParallelTest;
using ::testing::ElementsAre;
using testing::EmulatedRanks;
using ::testing::HasSubstr;
using testing::Mlp;
using testing::Probe;
using testing::Seeded;
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

// A world of two; the other rank always has the same values as this one.
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
