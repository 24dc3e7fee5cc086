// Pages of the flight recorder written by a rank with corrupt memory.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <limits>

#include "core/contract/checker.h"
#include "core/contract/mapping.h"
#include "core/contract/ring.h"
#include "core/contract/window.h"

namespace dtrun::contract {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class DamageTest : public ::testing::Test {
 protected:
  DamageTest() {
    for (int rank = 0; rank < 3; ++rank) {
      rings_.push_back(OpenRing(recorder_memory(), rank, NameDigest("world"), "world", rank, 3));
    }
  }
  const RecorderMemory& recorder_memory() const { return mapping_.recorder_memory(); }
  void CallOnAll(std::uint64_t calls) {
    sdk::Signature call;
    call.kind = DTRUN_ALLREDUCE;
    for (std::uint64_t number = 1; number <= calls; ++number) {
      for (Ring* const ring : rings_) Begin(*ring, number, call);
    }
  }
  // Calls everything that reads pages.
  void Read() {
    EXPECT_FALSE(checker_.Check());
    (void)reporter_.Report();
    (void)checker_.History(0);
  }
  std::vector<Damage> AfterChecks(int count) {
    for (int i = 0; i < count; ++i) Read();
    return checker_.TakeDamage();
  }

  RecorderMapping mapping_ = *RecorderMapping::Create(3);
  Checker checker_{mapping_.recorder_memory()};
  Reporter reporter_{mapping_.recorder_memory(), {0, 1, 2}};
  std::vector<Ring*> rings_;
};

TEST_F(DamageTest, IsSaidOfTheRankWhosePagesTheyAreAndOnce) {
  CallOnAll(10);
  std::memset(recorder_memory().PagesOf(1), 0xff, kRankPagesBytes);
  EXPECT_THAT(AfterChecks(2), IsEmpty());
  const auto damage = AfterChecks(1);
  ASSERT_THAT(damage, SizeIs(1));
  EXPECT_EQ(damage[0].rank, 1);
  EXPECT_THAT(damage[0].text, HasSubstr("the pages of rank 1 in the flight recorder were overwritten"));
  EXPECT_THAT(AfterChecks(10), IsEmpty());
  EXPECT_THAT(checker_.History(1), HasSubstr("overwritten"));
}

TEST_F(DamageTest, OfOneCallAccusesNobodyElse) {
  CallOnAll(10);
  rings_[2]->entries[7].words[1] = 99;
  rings_[2]->entries[10].chain = 99;
  const auto damage = AfterChecks(3);
  ASSERT_THAT(damage, SizeIs(1));
  EXPECT_EQ(damage[0].rank, 2);
}

TEST_F(DamageTest, OfACheckpointAccusesNobody) {
  CallOnAll(1000);
  rings_[1]->checkpoints[960 / kCheckpointEvery].chain = 99;
  rings_[0]->entries[1000 % kEntries].number = 0;  // so that checkpoints are compared
  EXPECT_FALSE(checker_.Check());
}

TEST_F(DamageTest, ThatPassesIsNotSaid) {
  CallOnAll(10);
  for (int round = 0; round < 5; ++round) {
    rings_[1]->ended = 99;
    EXPECT_THAT(AfterChecks(2), IsEmpty());
    rings_[1]->ended = 0;
    EXPECT_THAT(AfterChecks(1), IsEmpty());
  }
}

TEST_F(DamageTest, ComparesNoRankWithItself) {
  CallOnAll(10);
  Ring* const duplicate = OpenRing(recorder_memory(), 1, NameDigest("world"), "world", 1, 3);
  Begin(*duplicate, 1, sdk::Signature{});
  const auto damage = AfterChecks(3);
  ASSERT_THAT(damage, SizeIs(1));
  EXPECT_EQ(damage[0].rank, 1);
}

TEST_F(DamageTest, OfNumbersEndsNoReader) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t number : {kMost, kMost - 1, kMost - 63, kMost / 2, kMost / 4}) {
    CallOnAll(10);
    for (Ring* const ring : rings_) {
      ring->started = number;
      WriteCheckpoint(*ring, number, 1);
      ring->entries[number % kEntries].number = number;
    }
    Read();
  }
}

TEST_F(DamageTest, OfANameIsNoText) {
  CallOnAll(1);
  std::memset(rings_[0]->name, 'x', kRingNameBytes);
  Read();
  std::memcpy(rings_[0]->name, "\x1b[2J", 5);
  rings_[0]->communicator = NameDigest("\x1b[2J");
  Read();
  EXPECT_THAT(checker_.History(0), HasSubstr("\\u001b[2J"));
}

TEST_F(DamageTest, StaysInTheRanksOwnPages) {
  const auto own = *RecorderMapping::Open(mapping_.fd(), mapping_.Path(), 1);
  own.recorder_memory().RingsOf(1)[3].started = 7;
  EXPECT_EQ(recorder_memory().RingsOf(1)[3].started, 7u);
  EXPECT_DEATH(own.recorder_memory().RingsOf(2)[0].started = 7, "");
  EXPECT_DEATH(own.recorder_memory().head->alarm = 1, "");
}

TEST_F(DamageTest, LeavesTheSize) {
  const int fd = ::open(mapping_.Path().c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_NE(::ftruncate(fd, 0), 0);
  EXPECT_NE(::ftruncate(fd, 1 << 30), 0);
  ::close(fd);
  Read();
}

}  // namespace
}  // namespace dtrun::contract
