#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/output/testing.h"
#include "tools/dtrun/torchrun/arguments.h"
#include "tools/dtrun/torchrun/front.h"

namespace dtrun::torchrun {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Arguments GivenWords(std::vector<std::string> words) {
  words.push_back("train.py");
  const auto parsed = Parse(Program::kTorchrun, words, {});
  EXPECT_TRUE(parsed.ok()) << parsed.error().text;
  return parsed.ok() ? parsed->arguments : Arguments{};
}

// "file shown prefix" for stdout and stderr of rank 5, local rank 1.
std::string Described(const std::vector<std::string>& words) {
  const output::Routes routes = RoutesOf(GivenWords(words), "/a", 5, {0, 1, "here"});
  std::string text;
  for (const output::Route& route : {routes.out, routes.err}) {
    text += text.empty() ? "" : " | ";
    text += (route.file.empty() ? "-" : route.file.string()) + (route.shown ? " shown" : " hidden") +
            (route.prefix ? " '" + *route.prefix + "'" : "");
  }
  return text;
}

TEST(Routes, FollowRedirectsTeeAndTheFilterOfRanks) {
  EXPECT_EQ(Described({}), "- shown | - shown");
  EXPECT_EQ(Described({"-r", "3"}), "/a/1/stdout.log hidden | /a/1/stderr.log hidden");
  EXPECT_EQ(Described({"-r", "0:3,1:2"}), "- shown | /a/1/stderr.log hidden");
  EXPECT_EQ(Described({"-t", "1"}), "/a/1/stdout.log shown '[default1]:' | - shown");
  EXPECT_EQ(Described({"-t", "1", "-r", "3", "--role", "x"}),
            "/a/1/stdout.log shown '[x1]:' | /a/1/stderr.log hidden");
  EXPECT_EQ(Described({"-t", "1", "--local-ranks-filter", "0"}),
            "/a/1/stdout.log hidden '[default1]:' | - hidden");
  EXPECT_EQ(Described({"--local-ranks-filter", "0,1"}), "- shown | - shown");
  EXPECT_EQ(Described({"-t", "2", "--log-line-prefix-template", "<$hostname $rank>"}),
            "- shown | /a/1/stderr.log shown '<here 5>'");
}

TEST(Routes, CopyWantedLinesOfStreamsThatAreTeedAndShown) {
  const std::vector<std::string> words = {
      "--tee", "1", "--duplicate-stdout-filters", "loss,acc", "--duplicate-stderr-filters", "x"};
  const output::Routes routes = RoutesOf(GivenWords(words), "/a", 0, {0, 0, "here"});
  EXPECT_THAT(routes.out.wanted, ElementsAre("loss", "acc"));
  EXPECT_EQ(routes.out.wanted_file, "/a/filtered_stdout.log");
  EXPECT_EQ(routes.err.wanted_file, "");
}

TEST(Routes, KeepNothingWithoutAFolder) {
  const output::Routes routes = RoutesOf(GivenWords({"-r", "3"}), {}, 0, {0, 0, "here"});
  EXPECT_EQ(routes.out.file, "");
  EXPECT_TRUE(routes.out.shown);
}

TEST(Router, MakesAFolderForEachRankAndAttempt) {
  const output::TempFolder folder;
  // Two ranks on the first node, two on the second.
  const auto router = [](const std::filesystem::path& logs, int rank) {
    return RouteRank(GivenWords({"-r", "1"}), true, logs, rank, {rank / 2, rank % 2, "here"});
  };
  EXPECT_EQ(router(folder.path(), 0)->out.file, folder.path() / "attempt_0/0/stdout.log");
  EXPECT_EQ(router(folder.path(), 1)->out.file, folder.path() / "attempt_0/1/stdout.log");
  EXPECT_EQ(router(folder.path(), 3)->out.file, folder.path() / "attempt_0/node_1/1/stdout.log");
  EXPECT_EQ(router(folder.path() / "generation-2", 1)->out.file, folder.path() / "attempt_2/1/stdout.log");
  EXPECT_TRUE(std::filesystem::is_directory(folder.path() / "attempt_2/1"));
}

TEST(Router, SaysWhichFolderCannotBeMade) {
  const output::TempFolder folder;
  std::ofstream(folder.path() / "attempt_0") << "in the way";
  const auto routes = RouteRank(GivenWords({}), true, folder.path(), 0, {});
  ASSERT_FALSE(routes.ok());
  EXPECT_THAT(routes.error().text, HasSubstr("attempt_0/0'"));
  EXPECT_THAT(routes.error().text, HasSubstr("--log-dir"));
}

}  // namespace
}  // namespace dtrun::torchrun
