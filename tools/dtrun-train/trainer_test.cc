#include "tools/dtrun-train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "sdk/torch/emulated_ranks.h"

namespace train {
namespace {

using dtrun::torch::Collectives;
using dtrun::torch::testing::EmulatedRanks;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Images on a noisy background; the class is the bright row.
Images Rows(std::int64_t count, std::int64_t noise) {
  torch::manual_seed(static_cast<std::uint64_t>(noise));
  Images images{torch::rand({count, 1, kSide, kSide}) / 4, torch::arange(count) % kClasses};
  for (std::int64_t i = 0; i < count; ++i)
    images.pixels[i][0][images.labels[i].item<std::int64_t>() * 2].fill_(1);
  return images;
}

class TrainerTest : public ::testing::Test {
 protected:
  TrainerTest() {
    torch::set_num_threads(1);
    options_.epochs = 2;
    options_.batch = 32;
    options_.learning_rate = 0.02;
  }

  std::vector<Epoch> Train(int size) {
    std::vector<Epoch> results;
    EmulatedRanks world(size);
    world.run([&](int rank, const std::shared_ptr<Collectives>& ranks) {
      Trainer trainer(options_, train_, test_, ranks, "");
      while (trainer.epoch() < options_.epochs) {
        const Epoch result = trainer.RunEpoch(ignore_);
        if (rank == 0) results.push_back(result);
      }
    });
    return results;
  }

  std::string ErrorOf(int size, const std::string& checkpoint = "") {
    try {
      EmulatedRanks(size).run([&](int, const std::shared_ptr<Collectives>& ranks) {
        Trainer trainer(options_, train_, test_, ranks, checkpoint);
        while (trainer.epoch() < options_.epochs) (void)trainer.RunEpoch(ignore_);
      });
    } catch (const std::exception& error) {
      return error.what();
    }
    return "no error";
  }

  Options options_;
  Images train_ = Rows(1000, 1), test_ = Rows(301, 2);
  Trainer::OnStep ignore_ = [](std::uint64_t, double) {};
};

TEST_F(TrainerTest, LearnsRowsFromNoise) {
  const auto results = Train(1);
  EXPECT_LT(results[1].loss, results[0].loss);
  EXPECT_GT(results[1].accuracy, 0.99);
  EXPECT_EQ(results[1].samples, 1000U);
}

TEST_F(TrainerTest, LearnsWithSixteenBits) {
  options_.dtype = "bfloat16";
  const auto results = Train(1);
  EXPECT_LT(results[1].loss, results[0].loss);
  EXPECT_GT(results[1].accuracy, 0.9);
}

TEST_F(TrainerTest, AnyNumberOfRanksMakesTheSameSteps) {
  const auto alone = Train(1);
  for (const int size : {2, 4}) {
    const auto together = Train(size);
    for (std::size_t epoch = 0; epoch < alone.size(); ++epoch) {
      EXPECT_NEAR(together[epoch].loss, alone[epoch].loss, 1e-4 * alone[epoch].loss) << size << " ranks";
      EXPECT_NEAR(together[epoch].accuracy, alone[epoch].accuracy, 1.01 / 301) << size << " ranks";
      EXPECT_EQ(together[epoch].samples, 1000U);
    }
  }
}

TEST_F(TrainerTest, TrainsTheConvolutionalNetwork) {
  options_.model = "cnn";
  train_ = Rows(200, 1);
  test_ = Rows(50, 2);
  const auto results = Train(2);
  EXPECT_LT(results[1].loss, results[0].loss);
}

TEST_F(TrainerTest, HasTheModelsOfTheReference) {
  EmulatedRanks world(1);
  EXPECT_EQ(Trainer(options_, train_, test_, world.handle(0), "").parameters(), 235146);
  options_.model = "cnn";
  EXPECT_EQ(Trainer(options_, train_, test_, world.handle(0), "").parameters(), 206922);
}

TEST_F(TrainerTest, ResumesBitByBit) {
  EmulatedRanks world(2);
  options_.epochs = 3;
  world.run([&](int rank, const std::shared_ptr<Collectives>& ranks) {
    Trainer first(options_, train_, test_, ranks, "");
    (void)first.RunEpoch(ignore_);
    Trainer second(options_, train_, test_, ranks, rank == 0 ? first.Save() : "");
    EXPECT_EQ(second.epoch(), 1U);
    // The second epoch's loss depends on every weight and momentum of the first.
    while (first.epoch() < options_.epochs) {
      const Epoch expected = first.RunEpoch(ignore_);
      const Epoch resumed = second.RunEpoch(ignore_);
      EXPECT_EQ(resumed.loss, expected.loss);
      EXPECT_EQ(resumed.accuracy, expected.accuracy);
    }
  });
}

TEST_F(TrainerTest, RefusesACheckpointOfOtherSettings) {
  EmulatedRanks world(1);
  const std::string saved = Trainer(options_, train_, test_, world.handle(0), "").Save();
  options_.batch = 64;
  EXPECT_THAT(ErrorOf(1, saved), AllOf(HasSubstr("was made with --model mlp --batch 32"),
                                       HasSubstr("this run has --model mlp --batch 64")));
}

TEST_F(TrainerTest, RefusesADamagedCheckpoint) {
  EXPECT_THAT(ErrorOf(1, "not a checkpoint"), HasSubstr("damaged or not one of dtrun-train"));
}

TEST_F(TrainerTest, RefusesABatchThatTheRanksCannotShare) {
  EXPECT_THAT(ErrorOf(3), HasSubstr("--batch 32 is not a multiple of 3 ranks; the next one is: 33"));
}

TEST_F(TrainerTest, StopsWhenTheLossIsNotANumber) {
  options_.learning_rate = 1e5;
  EXPECT_THAT(ErrorOf(1),
              AllOf(HasSubstr("rank 0: the loss is"), HasSubstr("try a smaller --lr than 100000")));
}

TEST_F(TrainerTest, ReportsProgressOfAllRanksTogether) {
  std::vector<std::uint64_t> samples;
  EmulatedRanks(2).run([&](int rank, const std::shared_ptr<Collectives>& ranks) {
    Trainer trainer(options_, train_, test_, ranks, "");
    (void)trainer.RunEpoch([&](std::uint64_t done, double) {
      if (rank == 0) samples.push_back(done);
    });
  });
  EXPECT_EQ(samples.size(), 32U);
  EXPECT_EQ(samples.front(), 32U);
  EXPECT_EQ(samples.back(), 1000U);
}

TEST(ChooseDevice, IsTheCpuOrAnErrorWhereLibtorchSeesNoGpu) {
  if (torch::cuda::device_count() > 0) GTEST_SKIP() << "there is a GPU";
  EXPECT_TRUE(ChooseDevice("auto", 1).is_cpu());
  EXPECT_TRUE(ChooseDevice("cpu", 1).is_cpu());
  for (const char* wanted : {"cuda", "cuda:0"}) {
    try {
      (void)ChooseDevice(wanted, 0);
      FAIL() << wanted;
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(),
                  AllOf(HasSubstr(wanted), HasSubstr("sees no GPU"), HasSubstr("--device cpu")));
    }
  }
}

TEST(OneCycle, StartsLowPeaksAtAThirdAndEndsNearZero) {
  EXPECT_NEAR(OneCycle(0.5, 0, 1001), 0.02, 1e-12);
  EXPECT_NEAR(OneCycle(0.5, 300, 1001), 0.5, 1e-12);
  EXPECT_NEAR(OneCycle(0.5, 1000, 1001), 2e-6, 1e-12);
  EXPECT_NEAR(OneCycle(0.5, 0, 1), 2e-6, 1e-12) << "a single step";
}

class ReadIdxTest : public ::testing::Test {
 protected:
  ReadIdxTest() {
    if (::mkdtemp(folder_.data()) == nullptr) std::abort();
    path_ = folder_ + "/a.gz";
  }
  ~ReadIdxTest() override { std::filesystem::remove_all(folder_); }

  static std::string Idx(const std::vector<std::uint32_t>& dims, const std::string& data) {
    std::string content;
    const auto number = [&](std::uint32_t n) {
      for (int shift = 24; shift >= 0; shift -= 8) content += static_cast<char>(n >> shift);
    };
    number(0x0800U | static_cast<std::uint32_t>(dims.size()));
    for (const std::uint32_t dim : dims) number(dim);
    return content + data;
  }
  static void Write(const std::string& path, const std::string& content) {
    const gzFile file = gzopen(path.c_str(), "wb1");
    ASSERT_NE(file, nullptr);
    ASSERT_EQ(gzwrite(file, content.data(), static_cast<unsigned>(content.size())),
              static_cast<int>(content.size()));
    ASSERT_EQ(gzclose(file), Z_OK);
  }
  std::string ErrorOf(const std::vector<std::int64_t>& item) const {
    try {
      (void)ReadIdx(path_, item);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "no error";
  }

  std::string folder_ = (std::filesystem::temp_directory_path() / "dtrun-train-XXXXXX").string();
  std::string path_;
};

TEST_F(ReadIdxTest, ReadsDimensionsAndBytes) {
  Write(path_, Idx({2, 1, 3}, "abcdef"));
  const Tensor read = ReadIdx(path_, {1, 3});
  EXPECT_EQ(read.sizes(), (std::vector<std::int64_t>{2, 1, 3}));
  EXPECT_EQ(read[1][0][2].item<int>(), 'f');
}

TEST_F(ReadIdxTest, NamesAMissingFileAndThePackageThatHasIt) {
  EXPECT_THAT(ErrorOf({}), AllOf(HasSubstr("open '" + path_ + "': No such file or directory"),
                                 HasSubstr("apt-get install dataset-fashion-mnist")));
}

TEST_F(ReadIdxTest, RefusesWhatIsNotTheFile) {
  std::ofstream(path_).flush();
  EXPECT_THAT(ErrorOf({}),
              AllOf(HasSubstr("'" + path_ + "': it does not start with 2049"), HasSubstr("--reinstall")));
  Write(path_, Idx({4}, "abcd"));
  EXPECT_THAT(ErrorOf({2, 2}), HasSubstr("it does not start with 2051"));
  Write(path_, Idx({10}, "abcd"));
  EXPECT_THAT(ErrorOf({}), HasSubstr("4 bytes after the header, which announces 10"));
  Write(path_, Idx({3}, "abcd"));
  EXPECT_THAT(ErrorOf({}), HasSubstr("4 bytes after the header, which announces 3"));
  Write(path_, Idx({0xFFFFFFFFU}, ""));
  EXPECT_THAT(ErrorOf({}), HasSubstr("0 bytes after the header, which announces 4294967295"));
  Write(path_, Idx({0}, ""));
  EXPECT_THAT(ErrorOf({}), HasSubstr("0 bytes after the header, which announces 0"));
  Write(path_, Idx({1, 32, 32}, std::string(1024, 'x')));
  EXPECT_THAT(ErrorOf({28, 28}), HasSubstr("a side of 32 pixels, not 28"));
}

TEST_F(ReadIdxTest, RefusesATruncatedOrDamagedStream) {
  std::string noise;
  for (unsigned i = 0; i < 5000; ++i) noise += static_cast<char>((i * 2654435761U) >> 13);
  Write(path_, Idx({5000}, noise));
  const std::uintmax_t size = std::filesystem::file_size(path_);
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-8, std::ios::end);  // the checksum
  file.write("\x12\x34\x56\x78", 4);
  file.close();
  EXPECT_THAT(ErrorOf({}), HasSubstr("incorrect data check"));
  std::filesystem::resize_file(path_, size / 2);
  EXPECT_THAT(ErrorOf({}), HasSubstr("unexpected end of file"));
}

TEST_F(ReadIdxTest, RefusesLabelsThatDoNotFitTheImages) {
  const auto error = [&](std::uint32_t labels, const std::string& values) -> std::string {
    Write(folder_ + "/t10k-images-idx3-ubyte.gz", Idx({2, 28, 28}, std::string(2 * 28 * 28, 'x')));
    Write(folder_ + "/t10k-labels-idx1-ubyte.gz", Idx({labels}, values));
    try {
      const Images images = ReadImages(folder_, "t10k");
      return images.pixels.size(0) == 2 && images.labels[1].item<int>() == 9 ? "no error" : "wrong data";
    } catch (const std::exception& problem) {
      return problem.what();
    }
  };
  EXPECT_EQ(error(2, "\x04\x09"), "no error");
  EXPECT_THAT(error(3, "\x01\x02\x03"), HasSubstr("2 images and 3 labels"));
  EXPECT_THAT(error(2, "\x01\x0a"),
              HasSubstr("labels up to 10; expected equally many, and labels from 0 to 9"));
}

}  // namespace
}  // namespace train
