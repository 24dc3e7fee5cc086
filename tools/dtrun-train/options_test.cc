#include "tools/dtrun-train/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace dtrun::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::variant<Options, Exit> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "dtrun-train");
  return ParseOptions(static_cast<int>(arguments.size()), arguments.data(), "version text");
}

TEST(ParseOptions, HasDefaults) {
  const auto options = std::get<Options>(Parse({}));
  EXPECT_EQ(options.model, ModelKind::kMlp);
  EXPECT_EQ(options.epochs, 5U);
  EXPECT_EQ(options.batch, 128U);
  EXPECT_EQ(options.data, "/usr/share/datasets/fashion-mnist");
}

TEST(ParseOptions, TakesEveryOption) {
  const auto options = std::get<Options>(
      Parse({"--model", "cnn", "--epochs", "3", "--batch=64", "--lr", "0.05", "--momentum", "0.8", "--seed",
             "7", "--data", "/d", "--checkpoint", "c", "--resume", "r", "--threads", "2"}));
  EXPECT_EQ(options.model, ModelKind::kCnn);
  EXPECT_EQ(options.epochs, 3U);
  EXPECT_EQ(options.batch, 64U);
  EXPECT_EQ(options.learning_rate, 0.05);
  EXPECT_EQ(options.momentum, 0.8);
  EXPECT_EQ(options.seed, 7U);
  EXPECT_EQ(options.data, "/d");
  EXPECT_EQ(options.checkpoint, "c");
  EXPECT_EQ(options.resume, "r");
  EXPECT_EQ(options.threads, 2);
}

TEST(ParseOptions, EndsUsageErrorsWithCodeTwo) {
  const std::vector<std::vector<const char*>> wrong = {
      {"--model", "rnn"}, {"--epochs", "0"}, {"--batch", "-1"}, {"--lr", "0"},
      {"--threads", "x"}, {"--nope"},        {"word"}};
  for (const auto& arguments : wrong) {
    const auto exit = std::get<Exit>(Parse(arguments));
    EXPECT_EQ(exit.code, 2) << arguments[0];
    EXPECT_THAT(exit.text, AllOf(HasSubstr("dtrun-train: "), HasSubstr(arguments[0]))) << exit.text;
  }
}

TEST(ParseOptions, PrintsHelpAndVersionAsSuccess) {
  const auto help = std::get<Exit>(Parse({"--help"}));
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.text,
              AllOf(HasSubstr("--checkpoint FILE"), HasSubstr("--data FOLDER"), HasSubstr("mlp|cnn")));
  const auto version = std::get<Exit>(Parse({"--version"}));
  EXPECT_EQ(version.code, 0);
  EXPECT_THAT(version.text, HasSubstr("version text"));
}

}  // namespace
}  // namespace dtrun::train
