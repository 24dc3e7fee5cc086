#include "tools/dtrun-train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sdk/torch/emulated_ranks.h"

namespace dtrun::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using torch::Collectives;
using torch::testing::EmulatedRanks;

// Images whose class is the row that is lit, on a noisy ground.
LabelledImages Rows(std::uint64_t count, std::uint32_t noise) {
  LabelledImages images;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto label = static_cast<std::uint8_t>(i % kClasses);
    images.labels.push_back(label);
    for (int pixel = 0; pixel < kImagePixels; ++pixel) {
      noise = noise * 1664525U + 1013904223U;
      const bool lit = pixel / kImageSide == label * 2;
      images.pixels.push_back(static_cast<std::uint8_t>(lit ? 255 : noise >> 26));
    }
  }
  return images;
}

class TrainerTest : public ::testing::Test {
 protected:
  TrainerTest() {
    SetThreads(1);
    options_.epochs = 2;
    options_.batch = 32;
    options_.learning_rate = 0.02;
  }

  std::vector<EpochResult> Train(int size) {
    std::vector<EpochResult> results;
    EmulatedRanks world(size);
    world.run([&](int rank, const std::shared_ptr<Collectives>& ranks) {
      Trainer trainer(options_, data_, ranks, "");
      while (trainer.epoch() < options_.epochs) {
        const EpochResult result = trainer.RunEpoch(ignore_);
        if (rank == 0) results.push_back(result);
      }
    });
    return results;
  }

  std::string ErrorOf(int size, const std::string& checkpoint = "") {
    try {
      EmulatedRanks(size).run([&](int, const std::shared_ptr<Collectives>& ranks) {
        Trainer trainer(options_, data_, ranks, checkpoint);
        while (trainer.epoch() < options_.epochs) (void)trainer.RunEpoch(ignore_);
      });
    } catch (const std::exception& error) {
      return error.what();
    }
    return "no error";
  }

  Options options_;
  FashionMnist data_{Rows(1000, 1), Rows(301, 2)};
  Trainer::OnStep ignore_ = [](std::uint64_t, double) {};
};

TEST_F(TrainerTest, LearnsRowsFromNoise) {
  const auto results = Train(1);
  EXPECT_LT(results[1].loss, results[0].loss);
  EXPECT_GT(results[1].test_accuracy, 0.99);
  EXPECT_EQ(results[1].samples, 1000U);
}

TEST_F(TrainerTest, AnyNumberOfRanksMakesTheSameSteps) {
  const auto alone = Train(1);
  for (const int size : {2, 4}) {
    const auto together = Train(size);
    for (std::size_t epoch = 0; epoch < alone.size(); ++epoch) {
      EXPECT_NEAR(together[epoch].loss, alone[epoch].loss, 1e-4 * alone[epoch].loss) << size << " ranks";
      EXPECT_NEAR(together[epoch].test_accuracy, alone[epoch].test_accuracy, 1.01 / 301) << size << " ranks";
      EXPECT_EQ(together[epoch].samples, 1000U);
    }
  }
}

TEST_F(TrainerTest, TrainsTheConvolutionalNetwork) {
  options_.model = ModelKind::kCnn;
  data_ = {Rows(200, 1), Rows(50, 2)};
  const auto results = Train(2);
  EXPECT_LT(results[1].loss, results[0].loss);
}

TEST_F(TrainerTest, HasTheModelsOfTheReference) {
  EmulatedRanks world(1);
  EXPECT_EQ(Trainer(options_, data_, world.handle(0), "").parameters(), 235146U);
  options_.model = ModelKind::kCnn;
  EXPECT_EQ(Trainer(options_, data_, world.handle(0), "").parameters(), 206922U);
}

TEST_F(TrainerTest, ResumesBitByBit) {
  EmulatedRanks world(2);
  options_.epochs = 3;
  world.run([&](int rank, const std::shared_ptr<Collectives>& ranks) {
    Trainer first(options_, data_, ranks, "");
    (void)first.RunEpoch(ignore_);
    Trainer second(options_, data_, ranks, rank == 0 ? first.Save() : "");
    EXPECT_EQ(second.epoch(), 1U);
    // The second epoch's loss depends on every weight and momentum of the first.
    while (first.epoch() < options_.epochs) {
      const EpochResult expected = first.RunEpoch(ignore_);
      const EpochResult resumed = second.RunEpoch(ignore_);
      EXPECT_EQ(resumed.loss, expected.loss);
      EXPECT_EQ(resumed.test_accuracy, expected.test_accuracy);
    }
  });
}

TEST_F(TrainerTest, RefusesACheckpointOfOtherSettings) {
  EmulatedRanks world(1);
  const std::string saved = Trainer(options_, data_, world.handle(0), "").Save();
  options_.batch = 64;
  EXPECT_THAT(ErrorOf(1, saved), AllOf(HasSubstr("was made with --model mlp --epochs 2 --batch 32"),
                                       HasSubstr("this run has --model mlp --epochs 2 --batch 64")));
}

TEST_F(TrainerTest, RefusesADamagedCheckpoint) {
  EXPECT_THAT(ErrorOf(1, "not a checkpoint"), HasSubstr("damaged or not one of dtrun-train"));
}

TEST_F(TrainerTest, RefusesABatchThatTheRanksCannotShare) {
  EXPECT_THAT(ErrorOf(3), HasSubstr("--batch 32 is not a multiple of 3 ranks; the next that is: 33"));
}

TEST_F(TrainerTest, StopsWhenTheLossIsNotANumber) {
  options_.learning_rate = 1e5;
  EXPECT_THAT(ErrorOf(1),
              AllOf(HasSubstr("rank 0: the loss is"), HasSubstr("try a smaller --lr than 100000")));
}

TEST_F(TrainerTest, ReportsProgressOfAllRanksTogether) {
  std::vector<std::uint64_t> samples;
  EmulatedRanks(2).run([&](int rank, const std::shared_ptr<Collectives>& ranks) {
    Trainer trainer(options_, data_, ranks, "");
    (void)trainer.RunEpoch([&](std::uint64_t done, double) {
      if (rank == 0) samples.push_back(done);
    });
  });
  EXPECT_EQ(samples.size(), 32U);
  EXPECT_EQ(samples.front(), 32U);
  EXPECT_EQ(samples.back(), 1000U);
}

}  // namespace
}  // namespace dtrun::train
