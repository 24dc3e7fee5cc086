#include "core/contract/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/contract/checker.h"
#include "core/contract/mapping.h"
#include "core/contract/recorder.h"
#include "core/contract/ring.h"
#include "core/contract/window.h"

namespace dtrun::contract {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Two ranks of one host and one of another, in the memory of both agents.
class MessagesTest : public ::testing::Test {
 protected:
  MessagesTest() {
    for (const int rank : {0, 1, 2}) {
      Ring* const ring = OpenRing(MemoryAt(rank), rank, NameDigest("world"), "world", rank, 3);
      NameDevice(*ring, "npu");
      rings_.push_back(ring);
    }
  }
  const RecorderMemory& MemoryAt(int rank) { return sites_[rank == 2 ? 1 : 0].recorder_memory(); }
  Ring& Of(int rank) { return *rings_[static_cast<std::size_t>(rank)]; }
  void Send(int from, int to, bool on_device, std::uint32_t tag = 0) {
    Note(Of(from), {.sends = true, .peer = to, .tag = tag, .on_device = on_device});
  }
  void Receive(int to, int from, bool on_device, std::uint32_t tag = 0) {
    Note(Of(to), {.sends = false, .peer = from, .tag = tag, .on_device = on_device});
  }
  std::string Found(int site = 0) {
    const auto difference = Checker(sites_[site].recorder_memory()).Check();
    if (!difference) return {};
    EXPECT_TRUE(difference->exact);
    return difference->text;
  }

  RecorderMapping sites_[2] = {*RecorderMapping::Create(3), *RecorderMapping::Create(3)};
  std::vector<Ring*> rings_;
};

TEST_F(MessagesTest, NamesTheMessageBothRanksBothMemoriesAndWhatToDo) {
  Send(0, 1, false, 7);
  EXPECT_EQ(Found(), "") << "the other rank has not called it yet";
  Receive(1, 0, true, 7);
  EXPECT_EQ(
      Found(),
      "message 1 with tag 7 from rank 0 to rank 1 on 'world' differs: rank 0 sends memory of the host, "
      "rank 1 receives into memory of npu; use one kind of memory on both sides, or a tag for each kind");
  const auto difference = Checker(sites_[0].recorder_memory()).Check();
  EXPECT_EQ(difference->first, 0);
  EXPECT_EQ(difference->second, 1);
}

TEST_F(MessagesTest, NamesAnotherTypeAndAnotherCount) {
  Note(Of(0), {.sends = true, .peer = 1, .tag = 3, .dtype = DTRUN_FLOAT16, .count = 8});
  Note(Of(1), {.sends = false, .peer = 0, .tag = 3, .dtype = DTRUN_BFLOAT16, .count = 8});
  EXPECT_EQ(Found(),
            "message 1 with tag 3 from rank 0 to rank 1 on 'world' differs: rank 0 sends float16 x 8, rank 1 "
            "receives bfloat16 x 8; a send and its receive have one type and count");
}

TEST_F(MessagesTest, ComparesTheLastContents) {
  for (std::uint64_t i = 0; i < 1000; ++i) Note(Of(0), {.sends = true, .peer = 1, .count = i});
  for (std::uint64_t i = 0; i < 999; ++i) {
    Note(Of(1), {.sends = false, .peer = 0, .count = i});
    ASSERT_EQ(Found(), "") << i;
  }
  Note(Of(1), {.sends = false, .peer = 0, .count = 5});
  EXPECT_THAT(Found(), HasSubstr("message 1000 with tag 0"));
}

TEST_F(MessagesTest, FromAnyRankWithoutARowEndTheComparison) {
  for (const std::uint64_t count : {1, 4, 8}) Note(Of(0), {.sends = true, .peer = 1, .count = count});
  Note(Of(1), {.sends = false, .peer = 0, .count = 1});
  for (std::uint32_t tag = 1; tag < 10 * kMessageRows; ++tag) Receive(1, 2, false, tag);
  Note(Of(1), {.sends = false, .peer = -1, .count = 4});
  ASSERT_TRUE(Of(1).any_without_row);
  Note(Of(1), {.sends = false, .peer = 0, .count = 8});
  EXPECT_EQ(Found(), "");
}

TEST_F(MessagesTest, KnowsTheTagsThatNoReceiveWasBegunFor) {
  using ::testing::ElementsAre;
  Send(0, 1, false, 7);
  Send(0, 1, false, 5);
  Send(0, 1, false, 5);
  Send(0, 2, false, 9);
  Send(1, 0, false, 8);
  Receive(1, 0, false, 5);
  Receive(1, 0, false, 6);
  EXPECT_THAT(UnreceivedTags(Of(0), Of(1)), ElementsAre(5, 7));
  Receive(1, 0, false, 7);
  Receive(1, -1, false, 5);
  EXPECT_THAT(UnreceivedTags(Of(0), Of(1)), IsEmpty());
}

TEST_F(MessagesTest, FindsTheReverse) {
  Receive(0, 1, false);
  Send(1, 0, true);
  EXPECT_THAT(Found(), HasSubstr("rank 1 sends memory of npu, rank 0 receives into memory of the host"));
}

TEST_F(MessagesTest, ComparesByPeerTagAndDirection) {
  Send(0, 1, false, 1);
  Receive(1, 0, true, 2);
  Send(1, 0, true, 1);
  Receive(1, 2, true, 1);
  Receive(0, 1, true, 1);
  EXPECT_EQ(Found(), "");
}

TEST_F(MessagesTest, ComparesInOrderHoweverFarOneIsAhead) {
  for (int i = 0; i < 1000; ++i) Send(0, 1, i % 2 == 1);
  EXPECT_EQ(Found(), "");
  Receive(1, 0, false);
  Receive(1, 0, true);
  EXPECT_EQ(Found(), "");
  Receive(1, 0, true);
  EXPECT_EQ(Found(), "") << "no longer remembered, and so not compared";
  for (int i = 0; i < 1000; ++i) Send(0, 1, false, 9);
  Receive(1, 0, false, 9);
  Receive(1, 0, true, 9);
  EXPECT_THAT(Found(), HasSubstr("message 2 with tag 9"));
}

TEST_F(MessagesTest, FindsWhereTheKindsChange) {
  for (int i = 0; i < 100; ++i) {
    Send(0, 1, i >= 50);
    Receive(1, 0, i >= 60);
  }
  EXPECT_THAT(Found(), HasSubstr("message 51 with tag 0"));
}

TEST_F(MessagesTest, FindsNothingInLongMixturesThatAreAlike) {
  for (int i = 0; i < 3000; ++i) {
    Send(0, 1, i % 7 == 3);
    if (i >= 10) Receive(1, 0, (i - 10) % 7 == 3);
    ASSERT_EQ(Found(), "") << i;
  }
  Receive(1, 0, true);
  EXPECT_THAT(Found(), HasSubstr("message 2991 with tag 0"));
}

TEST_F(MessagesTest, LeavesOutWhatNobodyCanCount) {
  Note(Of(0), {.sends = true, .peer = 1, .tag = 1, .on_device = true, .counted = false});
  Receive(1, 0, false, 1);
  Send(0, 1, true, 2);
  Receive(1, -1, false, 2);
  Receive(1, 0, false, 2);
  EXPECT_EQ(Found(), "");
}

TEST_F(MessagesTest, WhatWasRefusedDoesNotCount) {
  const auto before = Note(Of(0), {.sends = true, .peer = 1, .tag = 0, .on_device = true});
  ASSERT_TRUE(before);
  TakeBack(Of(0), *before);
  Receive(1, 0, false);
  Send(0, 1, false);
  EXPECT_EQ(Found(), "");
}

TEST_F(MessagesTest, ThatFindNoRowAreNotCompared) {
  for (std::uint32_t tag = 0; tag < 10 * kMessageRows; ++tag) Send(0, 1, false, tag);
  for (std::uint32_t tag = 10 * kMessageRows; tag > 0; --tag) Receive(1, 0, false, tag - 1);
  EXPECT_EQ(Found(), "");
  EXPECT_LE(ReadMessages(Of(0)).size(), static_cast<std::size_t>(kMessageRows));
}

TEST_F(MessagesTest, WrittenOverAccuseNobody) {
  Send(0, 1, false);
  Receive(1, 0, true);
  for (MessageRow& row : Of(0).messages) {
    if (row.key != 0) row.last ^= 1;
  }
  EXPECT_EQ(Found(), "");
}

TEST_F(MessagesTest, ARankIsToldAtOnceAndWhoTheOtherIs) {
  const auto recorder = *Recorder::Open(sites_[0].Path(), 1);
  Of(1).communicator = NameDigest("world");  // Open has freed its rings
  Send(0, 1, true);
  Receive(1, 0, true);
  EXPECT_FALSE(recorder->MessageDifference(Of(1), "world"));
  Send(0, 1, true);
  Receive(1, 0, false);
  const auto difference = recorder->MessageDifference(Of(1), "world");
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->code, DTRUN_MISMATCH);
  EXPECT_EQ(difference->peer, 0);
  EXPECT_THAT(difference->text, HasSubstr("message 2 with tag 0 from rank 0 to rank 1 on 'world' differs"));
}

TEST_F(MessagesTest, OfRanksThatWaitAreToldToOtherHosts) {
  Reporter here(sites_[0].recorder_memory(), {0, 1}), there(sites_[1].recorder_memory(), {2});
  const auto look = [&] {
    for (const Window& window : here.Report()) Enter(sites_[1].recorder_memory(), {2}, window);
    for (const Window& window : there.Report()) Enter(sites_[0].recorder_memory(), {0, 1}, window);
  };
  constexpr int kLooksUntilIdle = 6;
  for (int i = 0; i < kLooksUntilIdle; ++i) look();
  Send(0, 2, false);
  Receive(2, 0, true);
  for (int i = 0; i < kLooksUntilIdle; ++i) look();
  for (const int site : {0, 1}) {
    EXPECT_THAT(Found(site),
                HasSubstr("rank 0 sends memory of the host, rank 2 receives into memory of npu"));
  }
  for (int i = 0; i < 2 * kLooksUntilIdle; ++i) {
    EXPECT_THAT(here.Report(), IsEmpty()) << "nothing twice";
  }
  Receive(1, 0, true);
  std::vector<Window> news;
  for (int i = 0; i < kLooksUntilIdle; ++i) {
    for (const Window& window : here.Report()) news.push_back(window);
  }
  ASSERT_THAT(news, SizeIs(2)) << "it calls on, and waits again";
  EXPECT_THAT(news[1].messages, SizeIs(1));
}

}  // namespace
}  // namespace dtrun::contract
