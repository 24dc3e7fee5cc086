#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "core/output/output.h"
#include "core/output/testing.h"

namespace dtrun::output {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Pair;

class RankOutputTest : public ::testing::Test {
 protected:
  std::unique_ptr<RankOutput> Open(int rank, int world_size, Prefix prefix, Console& console,
                                   std::optional<Routes> routes = {}) {
    auto output =
        RankOutput::Open({folder_.path()}, {rank, world_size, "node1"},
                         {.prefix = prefix, .colour = ColourWhen::kNever}, console, std::move(routes));
    EXPECT_TRUE(output.ok()) << output.error().text;
    return std::move(*output);
  }
  std::string Log(const char* name) const { return ReadFile(folder_.path() / name); }

  TempFolder folder_;
  FakeConsole pipe_{false};
  FakeConsole terminal_{true};
};

TEST_F(RankOutputTest, PutsTheRankInFrontOfEachLine) {
  const struct {
    int rank;
    int world_size;
    Prefix prefix;
    const char* expected;
  } cases[] = {{0, 1, Prefix::kAuto, "x"},          {0, 1, Prefix::kRank, "[0] x"},
               {3, 4, Prefix::kNone, "x"},          {3, 10, Prefix::kAuto, "[3] x"},
               {3, 11, Prefix::kAuto, "[ 3] x"},    {10, 11, Prefix::kAuto, "[10] x"},
               {7, 1024, Prefix::kRank, "[   7] x"}};
  for (const auto& each : cases) {
    FakeConsole console(false);
    Open(each.rank, each.world_size, each.prefix, console)->Feed(Stream::kOut, "x\n");
    EXPECT_THAT(console.Texts(), ElementsAre(each.expected));
  }
}

TEST_F(RankOutputTest, PutsTheHostBesideTheRank) {
  Open(3, 11, Prefix::kHost, pipe_)->Feed(Stream::kOut, "x\n");
  EXPECT_THAT(pipe_.Texts(), ElementsAre("[ 3 node1] x"));
}

TEST_F(RankOutputTest, PutsTheTimeInFrontOfEachLine) {
  auto output = RankOutput::Open({folder_.path()}, {1, 2}, {.timestamps = true}, pipe_);
  (*output)->Feed(Stream::kOut, "x\n");
  EXPECT_THAT(pipe_.Texts(),
              ElementsAre(MatchesRegex(
                  "[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3} \\[1\\] x")));
}

TEST_F(RankOutputTest, ColoursThePrefixOnlyWhereColoursAreWanted) {
  for (const auto& [when, expected] :
       {std::pair(ColourWhen::kAlways, "\033[35m[1]\033[0m x"), std::pair(ColourWhen::kNever, "[1] x")}) {
    FakeConsole console(false);
    (*RankOutput::Open({folder_.path()}, {1, 2}, {.colour = when}, console))->Feed(Stream::kOut, "x\n");
    EXPECT_THAT(console.Texts(), ElementsAre(expected));
  }
}

TEST_F(RankOutputTest, ShowsTheRanksOfTheStyleAndKeepsAll) {
  const Style style{.ranks = std::vector{0, 2}};
  for (int rank = 0; rank < 3; ++rank)
    (*RankOutput::Open({folder_.path()}, {rank, 3}, style, pipe_))->Feed(Stream::kErr, "x\n");
  EXPECT_THAT(pipe_.Texts(), ElementsAre("[0] x", "[2] x"));
  EXPECT_EQ(Log("rank-1.err"), "x\n");
}

TEST_F(RankOutputTest, LogsTheBytesAsTheyCame) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  const auto output = Open(2, 4, Prefix::kAuto, pipe_);
  output->Feed(Stream::kOut, bytes);
  output->Feed(Stream::kErr, "\r 10%\r 20%");
  output->Feed(Stream::kOut, bytes);
  output->Close(Stream::kOut);
  EXPECT_EQ(Log("rank-2.out"), bytes + bytes);
  EXPECT_EQ(Log("rank-2.err"), "\r 10%\r 20%");
}

TEST_F(RankOutputTest, StartsWithEmptyLogsThatNobodyElseReads) {
  Open(0, 1, Prefix::kAuto, pipe_)->Feed(Stream::kOut, "earlier run\n");
  const mode_t mask = umask(0);
  unlink((folder_.path() / "rank-0.err").c_str());
  const auto output = Open(0, 1, Prefix::kAuto, pipe_);
  umask(mask);
  EXPECT_EQ(Log("rank-0.out"), "");
  struct stat info {};
  ASSERT_EQ(stat((folder_.path() / "rank-0.err").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(RankOutputTest, NamesTheLogThatCannotBeMade) {
  const auto output = RankOutput::Open({folder_.path() / "missing"}, {5, 8}, {}, pipe_);
  ASSERT_FALSE(output.ok());
  EXPECT_EQ(output.error().text, "cannot create '" + (folder_.path() / "missing/rank-5.out").string() +
                                     "': open '" + (folder_.path() / "missing").string() +
                                     "': no such file or directory; choose a folder that can be written "
                                     "with [logs] dir");
}

TEST_F(RankOutputTest, GivesUpAllLogsOfARankWithOneAndGoesOnWithTheConsole) {
  const auto output = Open(1, 2, Prefix::kAuto, pipe_);
  output->Feed(Stream::kErr, "before\n");
  EXPECT_FALSE(output->cut());
  const FileSizeLimit limit(14);
  output->Feed(Stream::kOut, "more than fits\n");
  output->Feed(Stream::kOut, "two\n");
  output->Feed(Stream::kErr, "three\n");
  EXPECT_TRUE(output->cut());
  const std::string log = (folder_.path() / "rank-1.out").string();
  EXPECT_THAT(pipe_.lines,
              ElementsAre(Pair(Stream::kErr, "[1] before"),
                          Pair(Stream::kErr, "dtrun: cannot write '" + log +
                                                 "': file too large; rank 1's output continues here only"),
                          Pair(Stream::kOut, "[1] more than fits"), Pair(Stream::kOut, "[1] two"),
                          Pair(Stream::kErr, "[1] three")));
  EXPECT_EQ(Log("rank-1.err"), "before\n");
}

TEST_F(RankOutputTest, WritesThroughNoLink) {
  const std::string log = (folder_.path() / "rank-1.out").string();
  const std::string mine = (folder_.path() / "mine").string();
  std::ofstream(mine) << "precious";
  ASSERT_EQ(symlink(mine.c_str(), log.c_str()), 0);
  Open(1, 2, Prefix::kAuto, pipe_)->Feed(Stream::kOut, "one\n");
  EXPECT_EQ(Log("mine"), "precious");
  EXPECT_EQ(Log("rank-1.out"), "one\n");
}

TEST_F(RankOutputTest, SurvivesTheFileSizeLimit) {
  const auto output = Open(0, 1, Prefix::kAuto, pipe_);
  const FileSizeLimit limit(5);
  output->Feed(Stream::kOut, "123\n567\n");
  EXPECT_THAT(pipe_.Texts(), ElementsAre(HasSubstr("rank-0.out': file too large; rank 0's"), "123", "567"));
  EXPECT_EQ(Log("rank-0.out"), "123\n5");
}

TEST_F(RankOutputTest, CallsTheConsoleOncePerFeed) {
  const auto output = Open(0, 2, Prefix::kAuto, pipe_);
  output->Feed(Stream::kOut, "a\nb\n\nc");
  EXPECT_EQ(pipe_.calls, 1);
  EXPECT_THAT(pipe_.Texts(), ElementsAre("[0] a", "[0] b", "[0] "));
  output->Feed(Stream::kOut, "d");
  EXPECT_EQ(pipe_.calls, 1);
}

TEST_F(RankOutputTest, MarksTheLaterPiecesOfALongLine) {
  const auto output = Open(0, 2, Prefix::kAuto, pipe_);
  output->Feed(Stream::kOut, std::string(70'000, 'x'));
  output->Close(Stream::kOut);
  EXPECT_THAT(pipe_.Texts(),
              ElementsAre("[0] " + std::string(65'536, 'x'), "[0] … " + std::string(70'000 - 65'536, 'x')));
}

TEST_F(RankOutputTest, ShowsABarOnATerminalUntilItsLineEnds) {
  const auto output = Open(1, 2, Prefix::kAuto, terminal_);
  output->Feed(Stream::kErr, "\r 10% \xe2\x96");
  output->Feed(Stream::kErr, "\x88\r 20%");
  output->Feed(Stream::kOut, "line\n");
  output->Feed(Stream::kErr, "\r 30%\n");
  EXPECT_THAT(terminal_.states, ElementsAre(Pair(1, "[1]  10% "), Pair(1, "[1]  20%"), Pair(1, "")));
  EXPECT_THAT(terminal_.Texts(), ElementsAre("[1] line", "[1]  30%"));
}

TEST_F(RankOutputTest, PassesStatesOfABarToAPipeNowAndThen) {
  using namespace std::chrono_literals;
  for (const auto& [between, expected] :
       {std::pair(0ms, std::vector<std::string>{"[1]  10%", "[1]  30%", "[1]  50%"}),
        std::pair(std::chrono::milliseconds(1h), std::vector<std::string>{"[1]  10%", "[1]  50%"})}) {
    FakeConsole console(false);
    auto opened = RankOutput::Open({folder_.path()}, {1, 2},
                                   {.colour = ColourWhen::kNever, .between_states = between}, console);
    const auto output = *std::move(opened);
    output->Feed(Stream::kErr, "\r 10%");
    output->Idle();
    output->Idle();  // nothing new
    output->Feed(Stream::kErr, "\r 20%\r 30%");
    output->Idle();
    output->Feed(Stream::kErr, "\r 40%\r 50%\n");
    output->Idle();
    EXPECT_EQ(console.Texts(), expected);
  }
}

TEST_F(RankOutputTest, ClearsABarThatWasWiped) {
  const auto output = Open(1, 2, Prefix::kAuto, terminal_);
  output->Feed(Stream::kErr, "\r 10%");
  output->Feed(Stream::kErr, "\r\033[2K\r");
  output->Close(Stream::kErr);
  EXPECT_THAT(terminal_.states, ElementsAre(Pair(1, "[1]  10%"), Pair(1, "")));
  EXPECT_THAT(terminal_.lines, IsEmpty());
}

TEST_F(RankOutputTest, ShowsAPromptOnlyWhenItIsLeftUnfinished) {
  const auto output = Open(0, 1, Prefix::kAuto, terminal_);
  output->Feed(Stream::kOut, "line\nname?");
  EXPECT_THAT(terminal_.states, IsEmpty());
  output->Idle();
  EXPECT_THAT(terminal_.states, IsEmpty()) << "its line began after the last Idle";
  output->Idle();
  output->Idle();
  output->Feed(Stream::kOut, " Ann");
  output->Feed(Stream::kOut, "\nage?");
  EXPECT_THAT(terminal_.states, ElementsAre(Pair(0, "name?"), Pair(0, "name? Ann"), Pair(0, "")));
  output->Idle();
  output->Idle();
  output->Close(Stream::kOut);
  EXPECT_THAT(terminal_.states.back(), Pair(0, ""));
  EXPECT_THAT(terminal_.Texts(), ElementsAre("line", "name? Ann", "age?"));
}

TEST_F(RankOutputTest, ShowsTheOtherStreamsBarAgainAfterOneEnds) {
  const auto output = Open(0, 1, Prefix::kAuto, terminal_);
  output->Feed(Stream::kErr, "\rerr");
  output->Feed(Stream::kOut, "\rout");
  output->Close(Stream::kOut);
  EXPECT_THAT(terminal_.states, ElementsAre(Pair(0, "err"), Pair(0, "out"), Pair(0, "err")));
}

TEST_F(RankOutputTest, KeepsEveryByteForPipesAndLogs) {
  const std::string bytes = "\033[2K\033[31mred\033[0m\033[A\033]0;title\a\n";
  Open(0, 1, Prefix::kAuto, pipe_)->Feed(Stream::kOut, bytes);
  EXPECT_THAT(pipe_.Texts(), ElementsAre(bytes.substr(0, bytes.size() - 1)));
  EXPECT_EQ(Log("rank-0.out"), bytes);
}

TEST_F(RankOutputTest, KeepsTheLastLinesOfBothStreams) {
  const auto output = Open(0, 2, Prefix::kAuto, pipe_);
  output->Feed(Stream::kOut, "one\ntwo\n");
  output->Feed(Stream::kErr, "\r 10%\rthree\nfo");
  output->Feed(Stream::kOut, "five\n");
  EXPECT_THAT(output->Tail(3), ElementsAre("two", "three", "five"));
  output->Close(Stream::kErr);
  EXPECT_THAT(output->Tail(2), ElementsAre("five", "fo"));
}

TEST_F(RankOutputTest, KeepsAndShowsEachStreamAsItsRouteSays) {
  Routes routes;
  routes.out.file = folder_.path() / "kept.log";
  routes.out.shown = false;
  routes.err.prefix = "<e> ";
  auto output = Open(1, 2, Prefix::kRank, pipe_, routes);
  output->Feed(Stream::kOut, "hidden\n");
  output->Feed(Stream::kErr, "shown\n");
  EXPECT_THAT(pipe_.lines, ElementsAre(Pair(Stream::kErr, "<e> shown")));
  EXPECT_EQ(Log("kept.log"), "hidden\n");
  EXPECT_THAT(output->Tail(5), ElementsAre("hidden", "shown"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "rank-1.out"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "rank-1.err"));
}

TEST_F(RankOutputTest, DoesNotDrawTheStateOfAStreamThatIsNotShown) {
  Routes routes;
  routes.out.shown = false;
  auto output = Open(0, 1, Prefix::kNone, terminal_, routes);
  output->Feed(Stream::kOut, "10%\r20%\r");
  output->Idle();
  EXPECT_THAT(terminal_.states, IsEmpty());
}

TEST_F(RankOutputTest, CopiesTheLinesThatAreWantedAndAppendsWhatOtherRanksSaid) {
  for (int rank : {0, 1}) {
    Routes routes;
    routes.out.prefix = "[" + std::to_string(rank) + "]:";
    routes.out.wanted = {"loss", "epoch"};
    routes.out.wanted_file = folder_.path() / "wanted.log";
    Open(rank, 2, Prefix::kNone, pipe_, routes)->Feed(Stream::kOut, "epoch 1\nnoise\nloss and epoch\n");
  }
  EXPECT_EQ(Log("wanted.log"), "[0]:epoch 1\n[0]:loss and epoch\n[1]:epoch 1\n[1]:loss and epoch\n");
}

}  // namespace
}  // namespace dtrun::output
