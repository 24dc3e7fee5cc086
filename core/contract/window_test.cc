#include "core/contract/window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/contract/checker.h"
#include "core/contract/recorder.h"

namespace dtrun::contract {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kLooksUntilRest = 6;  // the first one only records their position

sdk::Signature Allreduce(std::uint64_t count) {
  sdk::Signature call;
  call.kind = DTRUN_ALLREDUCE;
  call.dtype = DTRUN_FLOAT32;
  call.reduce = DTRUN_SUM;
  call.count = count;
  return call;
}

// Two hosts of two ranks each: the recorders of both agents.
class WindowTest : public ::testing::Test {
 protected:
  struct Site {
    explicit Site(const std::vector<int>& ranks_here)
        : ranks(ranks_here),
          recorder_memory(*RecorderMapping::Create(4)),
          reporter(recorder_memory.recorder_memory(), ranks) {}
    std::vector<int> ranks;
    RecorderMapping recorder_memory;
    Reporter reporter;
  };

  WindowTest() {
    for (int rank = 0; rank < 4; ++rank) rings_.push_back(Open(rank, "world", rank, 4));
  }
  const RecorderMemory& RecorderOf(int rank) { return sites_[rank / 2].recorder_memory.recorder_memory(); }
  Ring* Open(int rank, const std::string& name, int inner_rank, int size) {
    return OpenRing(RecorderOf(rank), rank, NameDigest(name), name, inner_rank, size);
  }
  void Call(int rank, std::uint64_t number, std::uint64_t count = 8) {
    Begin(*rings_[static_cast<std::size_t>(rank)], number, Allreduce(count));
  }
  // Reports from both hosts, and enters each report on the other.
  void Look() {
    for (const int site : {0, 1}) {
      for (const Window& window : sites_[site].reporter.Report())
        Enter(sites_[1 - site].recorder_memory.recorder_memory(), sites_[1 - site].ranks, window);
    }
  }
  void Idle() {
    for (int look = 0; look < kLooksUntilRest; ++look) Look();
  }
  auto Check(int site) { return Checker(sites_[site].recorder_memory.recorder_memory()).Check(); }

  Site sites_[2] = {Site({0, 1}), Site({2, 3})};
  std::vector<Ring*> rings_;
};

TEST_F(WindowTest, TellsOfIdleRanksOnceAndForAllThatAreAlike) {
  for (const int rank : {0, 1, 2, 3}) Call(rank, 1);
  for (int look = 1; look < kLooksUntilRest; ++look)
    EXPECT_THAT(sites_[0].reporter.Report(), IsEmpty()) << look;
  const std::vector<Window> told = sites_[0].reporter.Report();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].name, "world");
  EXPECT_THAT(told[0].members, SizeIs(2));
  EXPECT_THAT(told[0].calls, SizeIs(1));
  ASSERT_TRUE(told[0].idle);
  EXPECT_EQ(told[0].idle->started, 1u);
  for (int look = 0; look < 20; ++look) EXPECT_THAT(sites_[0].reporter.Report(), IsEmpty()) << look;
  End(*rings_[0], 1);  // reported again, for this rank alone
  std::vector<Window> news;
  for (int look = 0; look < kLooksUntilRest && news.empty(); ++look) news = sites_[0].reporter.Report();
  ASSERT_THAT(news, SizeIs(1));
  EXPECT_THAT(news[0].members, SizeIs(1));
}

TEST_F(WindowTest, TellsOnlyCheckpointsWhileCallsGoOn) {
  for (std::uint64_t number = 1; number <= 200; ++number) Call(0, number);
  std::vector<Window> told = sites_[0].reporter.Report();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0].calls, IsEmpty());
  EXPECT_FALSE(told[0].idle);
  ASSERT_THAT(told[0].checkpoints, SizeIs(3));
  EXPECT_EQ(told[0].checkpoints[2].first, 192u);
  for (std::uint64_t number = 201; number <= 256; ++number) Call(0, number);
  told = sites_[0].reporter.Report();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0].checkpoints, SizeIs(1));  // nothing twice
}

TEST_F(WindowTest, TellsNoMoreCheckpointsThanAreRemembered) {
  for (std::uint64_t number = 1; number <= 6400; ++number) Call(0, number);
  const std::vector<Window> told = sites_[0].reporter.Report();
  ASSERT_THAT(told, SizeIs(1));
  ASSERT_THAT(told[0].checkpoints, SizeIs(kCheckpoints));
  EXPECT_EQ(told[0].checkpoints.back().first, 6400u);
}

TEST_F(WindowTest, FindsADifferenceBetweenHostsThatWait) {
  for (const int rank : {0, 1, 2, 3}) Call(rank, 1);
  for (const int rank : {0, 1, 2, 3}) Call(rank, 2, rank < 2 ? 8 : 9);
  EXPECT_FALSE(Check(0));
  Idle();
  for (const int site : {0, 1}) {
    const auto difference = Check(site);
    ASSERT_TRUE(difference) << site;
    EXPECT_EQ(difference->text,
              "call 2 on 'world' differs: rank 0 calls allreduce (float32 x 8, sum), rank 2 calls allreduce "
              "(float32 x 9, sum)");
    EXPECT_TRUE(difference->exact);
  }
}

TEST_F(WindowTest, FindsADifferenceWhileCallsGoOnAndNamesItWhenAsked) {
  for (std::uint64_t number = 1; number <= 130; ++number) {
    for (const int rank : {0, 1, 2, 3}) Call(rank, number, rank >= 2 && number == 100 ? 9 : 8);
  }
  Look();
  auto difference = Check(1);
  ASSERT_TRUE(difference);
  EXPECT_FALSE(difference->exact);
  EXPECT_THAT(difference->text, HasSubstr("calls 65 to 128 on 'world' differ between rank 0 and rank 2"));
  for (Site& site : sites_) site.reporter.Tell(NameDigest("world"));
  Look();
  difference = Check(1);
  ASSERT_TRUE(difference);
  EXPECT_TRUE(difference->exact);
  EXPECT_THAT(difference->text, HasSubstr("call 100 on 'world' differs: rank 0 calls"));
}

TEST_F(WindowTest, FindsNothingWhenHostsAreAtDifferentCalls) {
  for (std::uint64_t number = 1; number <= 1000; ++number) {
    for (const int rank : {0, 1}) Call(rank, number);
    if (number > 500) {
      for (const int rank : {2, 3}) Call(rank, number - 500);
    }
    if (number % 90 == 0) Look();
    ASSERT_FALSE(Check(0)) << number;
    ASSERT_FALSE(Check(1)) << number;
  }
  Idle();
  EXPECT_FALSE(Check(0));
}

TEST_F(WindowTest, SaysWhereRanksElsewhereAre) {
  for (const int rank : {0, 1, 2}) {
    Call(rank, 1);
    End(*rings_[static_cast<std::size_t>(rank)], 1);
    Call(rank, 2);
  }
  Idle();
  const auto recorder = *Recorder::Open(sites_[0].recorder_memory.Path(), 0);
  rings_[0]->communicator = NameDigest("world");  // Open has freed its rings
  EXPECT_EQ(recorder->Whereabouts(*rings_[0], 2).text, "rank 3 has called no collective yet");
  for (std::uint64_t number = 1; number <= 70; ++number) Call(3, number);
  Look();  // it makes calls again, so the last report is out of date
  EXPECT_THAT(recorder->Whereabouts(*rings_[0], 2).text, ::testing::Not(HasSubstr("rank 3")));
}

TEST_F(WindowTest, KnowsIdleRanksWhenAnotherSpeaksForTheirHost) {
  for (std::uint64_t number = 1; number <= 70; ++number) {
    for (const int rank : {0, 1, 2, 3}) Call(rank, number);
  }
  Call(0, 71);
  Idle();
  rings_[2]->communicator = 0;  // rank 3 reports from now on, and sends its checkpoints again
  Look();
  const auto recorder = *Recorder::Open(sites_[0].recorder_memory.Path(), 0);
  rings_[0]->communicator = NameDigest("world");  // Open has freed its rings
  EXPECT_THAT(recorder->Whereabouts(*rings_[0], 71).text, HasSubstr("rank 3 is in #70"));
}

TEST_F(WindowTest, KeepsCommunicatorsOfOneHostToItself) {
  for (const int rank : {0, 1}) {
    Ring* const inner = Open(rank, "world.0:0", rank, 2);
    for (std::uint64_t number = 1; number <= 100; ++number) Begin(*inner, number, Allreduce(1));
  }
  for (int look = 0; look < 2 * kLooksUntilRest; ++look) {
    for (const Window& window : sites_[0].reporter.Report()) EXPECT_EQ(window.name, "world");
  }
}

TEST_F(WindowTest, FreesWhatTheOthersHaveFreed) {
  const auto in_use = [&] {
    int count = 0;
    for (int index = 0; index < kRings; ++index) count += RecorderOf(0).RingsOf(2)[index].communicator != 0;
    return count;
  };
  Idle();
  EXPECT_EQ(in_use(), 1);
  for (int round = 0; round < 3 * kRings; ++round) {  // more than there are rings
    Ring* const part = Open(2, "world." + std::to_string(round), 0, 2);
    Begin(*part, 1, Allreduce(1));
    Idle();
    EXPECT_EQ(in_use(), 2);
    part->communicator = 0;
    Look();
    EXPECT_EQ(in_use(), 1);
  }
}

TEST_F(WindowTest, LeavesOutWhatNoRanksOfThisWorldCouldHaveCalled) {
  Window window;
  window.communicator = NameDigest("world");
  window.name = "world";
  window.size = 4;
  window.members = {{2, 2}};
  window.idle = contract::Idle{7, 7};
  const auto entered = [&](auto change) {
    Window other = window;
    change(other);
    Enter(RecorderOf(0), {0, 1}, other);
    return RecorderOf(0).RingsOf(2)[0].communicator != 0;
  };
  EXPECT_FALSE(entered([](Window& one) { one.members.push_back({4, 3}); }));
  EXPECT_FALSE(entered([](Window& one) { one.members.push_back({-1, 3}); }));
  EXPECT_FALSE(entered([](Window& one) { one.members[0].rank = 4; }));
  EXPECT_FALSE(entered([](Window& one) { one.size = 5; }));
  EXPECT_FALSE(entered([](Window& one) { one.name = std::string(500, 'x'); }));
  EXPECT_FALSE(entered([](Window& one) { one.idle->started = UINT64_MAX; }));
  EXPECT_FALSE(entered([](Window& one) { one.checkpoints = {{65, 1}}; }));
  EXPECT_TRUE(entered([](Window&) {}));
  EXPECT_EQ(RecorderOf(0).RingsOf(2)[0].started, 7u);
  window.members = {{1, 1}, {2, 2}};  // rank 1 is on this host and writes itself
  EXPECT_TRUE(entered([](Window& one) { one.idle->started = 8; }));
  EXPECT_EQ(RecorderOf(0).RingsOf(1)[0].started, 0u);
}

}  // namespace
}  // namespace dtrun::contract
