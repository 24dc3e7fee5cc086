#include "core/output/backlog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/output/testing.h"

namespace dtrun::output {
namespace {

using ::testing::MatchesRegex;

constexpr std::size_t kSmall = 1000;

std::string Numbered(int i) { return "line " + std::to_string(i); }

// All content in order, without the streams of the chunks.
std::string PopAll(Backlog* backlog) {
  std::string all;
  Chunk chunk;
  while (backlog->Pop(&chunk)) all += chunk.bytes;
  return all;
}

class BacklogTest : public ::testing::Test {
 protected:
  TempFolder folder_;
};

TEST_F(BacklogTest, GivesLinesBackInOrderWithTheirStreams) {
  Backlog backlog(folder_.path());
  backlog.Push(Stream::kOut, "a");
  backlog.Push(Stream::kOut, "b\nc");
  backlog.Push(Stream::kErr, "d");
  backlog.Push(Stream::kOut, "");
  Chunk chunk;
  ASSERT_TRUE(backlog.Pop(&chunk));
  EXPECT_EQ(chunk.stream, Stream::kOut);
  EXPECT_EQ(chunk.bytes, "a\nb\nc\n");
  ASSERT_TRUE(backlog.Pop(&chunk));
  EXPECT_EQ(chunk.stream, Stream::kErr);
  EXPECT_EQ(chunk.bytes, "d\n");
  ASSERT_TRUE(backlog.Pop(&chunk));
  EXPECT_EQ(chunk.bytes, "\n");
  EXPECT_TRUE(backlog.empty());
  EXPECT_EQ(backlog.bytes(), 0u);
  EXPECT_FALSE(backlog.Pop(&chunk));
}

TEST_F(BacklogTest, LeavesOutAStreamAndCountsItsLines) {
  Backlog backlog(folder_.path(), kSmall);
  constexpr int kLines = 30'000;
  std::string expected;
  for (int i = 0; i < kLines; ++i) {
    backlog.Push(i % 3 == 0 ? Stream::kErr : Stream::kOut, Numbered(i));
    if (i % 3 == 0) expected += Numbered(i) + "\n";
  }
  backlog.LeaveOut(Stream::kOut);
  EXPECT_EQ(PopAll(&backlog), expected);
  backlog.Push(Stream::kOut, "a\nb");
  EXPECT_EQ(backlog.lines_left_out(), kLines / 3u * 2u + 2u);
  EXPECT_TRUE(backlog.empty());
}

TEST_F(BacklogTest, KeepsOrderThroughTheFileWhilePushesAndPopsMix) {
  Backlog backlog(folder_.path(), kSmall);
  std::string expected;
  std::string got;
  int next = 0;
  Chunk chunk;
  for (int round = 0; round < 300; ++round) {
    // Three times: grows for two thirds of the rounds, then shrinks to nothing.
    const int pushes = round % 100 < 66 ? 3000 : 100;
    for (int i = 0; i < pushes; ++i, ++next) {
      backlog.Push(next % 7 == 0 ? Stream::kErr : Stream::kOut, Numbered(next));
      expected += Numbered(next) + "\n";
    }
    for (int i = 0; i < (round % 100 < 66 ? 100 : 10'000) && backlog.Pop(&chunk); ++i) {
      for (std::size_t at = 0; at < chunk.bytes.size(); at = chunk.bytes.find('\n', at) + 1) {
        const int number = std::stoi(chunk.bytes.substr(at + 5, 9));
        ASSERT_EQ(chunk.stream, number % 7 == 0 ? Stream::kErr : Stream::kOut);
      }
      got += chunk.bytes;
    }
    ASSERT_LT(backlog.bytes(), kSmall + 80'000);
  }
  got += PopAll(&backlog);
  EXPECT_TRUE(got == expected);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << "the overflow file has a name";
}

TEST_F(BacklogTest, TakesALineLargerThanItsMemory) {
  Backlog backlog(folder_.path(), kSmall);
  const std::string big(8'000'000, 'x');
  backlog.Push(Stream::kOut, big);
  backlog.Push(Stream::kOut, "after");
  EXPECT_TRUE(PopAll(&backlog) == big + "\nafter\n");
}

TEST_F(BacklogTest, LeavesLinesOutWithOneNoticeWhenTheDiskIsFull) {
  const FileSizeLimit limit(200'000);
  Backlog backlog(folder_.path(), kSmall);
  for (int i = 0; i < 100'000; ++i) backlog.Push(Stream::kOut, Numbered(i));
  const std::string all = PopAll(&backlog);
  EXPECT_TRUE(backlog.empty());
  int shown = 0;
  std::size_t at = 0;
  for (; all.compare(at, Numbered(shown).size() + 1, Numbered(shown) + "\n") == 0; ++shown) {
    at += Numbered(shown).size() + 1;
  }
  EXPECT_GT(shown, 10'000);
  std::size_t missing = 0;
  for (int i = shown; i < 100'000; ++i) missing += Numbered(i).size() + 1;
  EXPECT_EQ(all.substr(at), "dtrun: " + std::to_string(100'000 - shown) + " lines of " +
                                std::to_string(missing) +
                                " bytes not shown here, as they cannot wait in a file in '" +
                                folder_.path().string() + "': file too large; see the log files there\n");
  backlog.Push(Stream::kOut, "later");
  EXPECT_EQ(PopAll(&backlog), "later\n");
}

TEST_F(BacklogTest, PutsTheNoticeWhereTheLinesWouldHaveStood) {
  Backlog backlog(folder_.path() / "missing", kSmall);  // a file cannot be created there
  for (int i = 0; i < 100'000; ++i) backlog.Push(Stream::kOut, Numbered(i));
  Chunk chunk;
  ASSERT_TRUE(backlog.Pop(&chunk));
  backlog.Push(Stream::kOut, "later");
  EXPECT_THAT(PopAll(&backlog),
              MatchesRegex("dtrun: [0-9]+ lines of [0-9]+ bytes not shown here, as they cannot wait in "
                           "a file in '.*/missing': no such file or directory; see the log files "
                           "there\nlater\n"));
}

TEST_F(BacklogTest, SpillsWhereItIsToldToBeforeItHasTo) {
  Backlog backlog({}, kSmall);
  backlog.SpillInto(folder_.path());
  std::string expected;
  for (int i = 0; i < 100'000; ++i) {
    backlog.Push(Stream::kOut, Numbered(i));
    expected += Numbered(i) + "\n";
  }
  EXPECT_LT(backlog.bytes(), kSmall + 80'000);
  EXPECT_TRUE(PopAll(&backlog) == expected);
}

}  // namespace
}  // namespace dtrun::output
