#include "core/contract/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "core/contract/call_now.h"
#include "core/contract/checker.h"
#include "core/contract/messages.h"

namespace dtrun::contract {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

sdk::Signature Summed(std::uint64_t count, std::int32_t reduce = DTRUN_SUM) {
  sdk::Signature call;
  call.kind = DTRUN_ALLREDUCE;
  call.dtype = DTRUN_FLOAT32;
  call.reduce = static_cast<std::uint8_t>(reduce);
  call.count = count;
  return call;
}

// The agent's recorder memory and the recorders of three ranks, all in this process.
class RecorderTest : public ::testing::Test {
 protected:
  RecorderTest()
      : recorder_memory_(*RecorderMapping::Create(3)), checker_(recorder_memory_.recorder_memory()) {
    for (int rank = 0; rank < 3; ++rank) {
      recorders_.push_back(*Recorder::Open(recorder_memory_.Path(), rank));
      rings_.push_back(recorders_.back()->Claim("world", rank, 3));
    }
  }
  void Call(int rank, std::uint64_t number, const sdk::Signature& call) {
    Begin(*rings_[static_cast<std::size_t>(rank)], number, call);
  }

  RecorderMapping recorder_memory_;
  Checker checker_;
  std::vector<std::unique_ptr<Recorder>> recorders_;
  std::vector<Ring*> rings_;
};

TEST_F(RecorderTest, FindsNothingInCallsThatAreAlike) {
  for (std::uint64_t number = 1; number <= 500; ++number) {
    for (const int rank : {0, 1, 2}) Call(rank, number, Summed(number));
    ASSERT_FALSE(checker_.Check()) << number;
  }
}

TEST_F(RecorderTest, FindsNothingInARankThatIsBehind) {
  for (std::uint64_t number = 1; number <= 500; ++number) Call(0, number, Summed(number));
  for (std::uint64_t number = 1; number <= 3; ++number) Call(1, number, Summed(number));
  EXPECT_FALSE(checker_.Check());
}

TEST_F(RecorderTest, TellsTheOldestCallUnderWayOrTheLastOne) {
  EXPECT_EQ(CallOf(recorder_memory_.recorder_memory(), 0)->call.Text(), "no collective yet on 'world'");
  const auto call = [this](int rank) { return CallOf(recorder_memory_.recorder_memory(), rank)->call; };
  Call(0, 1, Summed(8));
  EXPECT_TRUE(call(0).under_way);
  EXPECT_EQ(call(0).Text(), "allreduce #1 on 'world' (float32 x 8, sum)");
  Call(0, 2, Summed(9));
  EXPECT_EQ(call(0).Text(), "allreduce #1 on 'world' (float32 x 8, sum)");
  End(*rings_[0], 1);
  End(*rings_[0], 2);
  EXPECT_FALSE(call(0).under_way);
  EXPECT_EQ(call(0).Text(), "no collective after #2 on 'world'");
  Ring* const other = recorders_[0]->Claim("other", 0, 3);
  Begin(*other, 1, Summed(3));
  EXPECT_EQ(call(0).Text(), "allreduce #1 on 'other' (float32 x 3, sum)");
}

TEST_F(RecorderTest, TellsAMessageUnderWayIfNoCollectiveIs) {
  const auto call = [this] { return CallOf(recorder_memory_.recorder_memory(), 0)->call; };
  const Message send{.sends = true, .peer = 1, .tag = 7}, receive{.sends = false, .peer = -1, .tag = 5};
  Note(*rings_[0], send);
  EXPECT_EQ(call().Text(), "send to rank 1 with tag 7 on 'world'");
  Note(*rings_[0], receive);
  EXPECT_EQ(call().Text(), "recv from any rank with tag 5 on 'world'");
  EXPECT_TRUE(call().under_way);
  Call(0, 1, Summed(8));
  EXPECT_EQ(call().name, "allreduce");
  End(*rings_[0], 1);
  NoteEnd(*rings_[0], receive);
  EXPECT_EQ(call().name, "send to rank 1 with tag 7");
  NoteEnd(*rings_[0], send);
  EXPECT_FALSE(call().under_way);
}

TEST_F(RecorderTest, TellsForWhomARankWaits) {
  const auto awaited = [this] { return CallOf(recorder_memory_.recorder_memory(), 0)->awaited; };
  const std::uint64_t world = NameDigest("world");
  EXPECT_EQ(GroupsOf(recorder_memory_.recorder_memory(), 0), (std::vector<Membership>{{world, 0, 0}}));
  EXPECT_FALSE(awaited());
  Note(*rings_[0], {.sends = true, .peer = 2, .tag = 7});
  EXPECT_EQ(awaited(), (Awaited{world, 0, {2}, false}));
  Note(*rings_[0], {.sends = false, .peer = 1, .tag = 5});
  EXPECT_EQ(awaited(), (Awaited{world, 0, {1}, false}));
  Note(*rings_[0], {.sends = false, .peer = 2, .tag = 5});
  EXPECT_THAT(awaited()->ranks, ::testing::UnorderedElementsAre(1, 2));
  EXPECT_TRUE(awaited()->either);
  Call(0, 1, Summed(8));
  EXPECT_EQ(awaited(), (Awaited{world, 1, {}, false}));
  EXPECT_EQ(GroupsOf(recorder_memory_.recorder_memory(), 0), (std::vector<Membership>{{world, 0, 1}}));
  Begin(*recorders_[0]->Claim("other", 0, 3), 1, Summed(3));
  EXPECT_EQ(awaited(), Awaited{});  // it may wait in either
}

TEST_F(RecorderTest, CountsMessagesUnderWayThatHaveNoRow) {
  const auto message = [](std::uint32_t tag) { return Message{.sends = true, .peer = 1, .tag = tag}; };
  constexpr std::uint32_t kTags = 3 * kMessageRows;
  for (std::uint32_t tag = 0; tag < kTags; ++tag) Note(*rings_[0], message(tag));
  EXPECT_TRUE(FindUnderWay(*rings_[0]));
  for (std::uint32_t tag = 0; tag < kTags; ++tag) NoteEnd(*rings_[0], message(tag));
  EXPECT_FALSE(FindUnderWay(*rings_[0]));
}

TEST_F(RecorderTest, NamesTheCallTheRanksAndBothSides) {
  for (std::uint64_t number = 1; number <= 20; ++number) {
    for (const int rank : {0, 1, 2}) {
      Call(rank, number, Summed(8, rank == 2 && number == 17 ? DTRUN_MAX : DTRUN_SUM));
    }
  }
  const auto difference = checker_.Check();
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->text,
            "call 17 on 'world' differs: rank 0 calls allreduce (float32 x 8, sum), rank 2 calls allreduce "
            "(float32 x 8, max)");
  EXPECT_TRUE(difference->exact);
  EXPECT_EQ(difference->first, 0);
  EXPECT_EQ(difference->second, 2);
}

TEST_F(RecorderTest, TellsARankAtOnceHowItsCallDiffers) {
  for (const int rank : {0, 1, 2}) Call(rank, 1, Summed(rank == 2 ? 9 : 8));
  for (const int rank : {0, 1}) Call(rank, 2, Summed(8));
  const auto said = [&](int rank, std::uint64_t number) {
    const auto difference = recorders_[static_cast<std::size_t>(rank)]->Difference(
        *rings_[static_cast<std::size_t>(rank)], "world", number);
    return difference ? difference->text : "";
  };
  const char* const text =
      "call 1 on 'world' differs: rank 0 calls allreduce (float32 x 8, sum), rank 2 calls allreduce (float32 "
      "x 9, "
      "sum)";
  EXPECT_EQ(said(0, 1), text);
  EXPECT_EQ(said(2, 1), text);
  EXPECT_EQ(said(0, 2), "") << "rank 2 has not called it yet";
  EXPECT_EQ(said(2, 2), "");
}

TEST_F(RecorderTest, TellsHowACallDiffersFromThatOfARankThatHasLeft) {
  const auto differs = [&](const Ring* ring) {
    return recorders_[0]->AnyDifference(*ring, "world").has_value() &&
           recorders_[0]->Difference(*ring, "world", 2).has_value();
  };
  for (const int rank : {0, 2}) Call(rank, 1, Summed(8));
  for (const int rank : {0, 2}) Call(rank, 2, Summed(rank == 2 ? 9 : 8));
  EXPECT_TRUE(differs(rings_[0]));
  recorders_[2]->Release(rings_[2]);
  EXPECT_TRUE(differs(rings_[0]));
  // The next turn, of which rank 2 knows nothing yet; its own rings of the one before are free.
  recorders_[0] = *Recorder::Open(recorder_memory_.Path(), 0, 1);
  Ring* const again = recorders_[0]->Claim("world", 0, 3);
  for (const std::uint64_t number : {1, 2}) Begin(*again, number, Summed(8));
  EXPECT_FALSE(differs(again));
  recorders_[0]->Release(again);
  recorders_[0] = *Recorder::Open(recorder_memory_.Path(), 0);
  rings_[0] = recorders_[0]->Claim("world", 0, 3);
  // Another communicator of the name, which rank 2 has not opened yet.
  recorders_[0]->Release(rings_[0]);
  Ring* const next = recorders_[0]->Claim("world", 0, 3);
  for (const std::uint64_t number : {1, 2}) Begin(*next, number, Summed(8));
  EXPECT_FALSE(differs(next));
  EXPECT_FALSE(recorders_[0]->AnyDifference(*next, "world"));
  // The ring of rank 2 becomes that of another one.
  recorders_[2]->Claim("other", 2, 3);
  EXPECT_FALSE(recorders_[0]->AnyDifference(*next, "world"));
}

TEST_F(RecorderTest, TellsKindsOfMemoryApart) {
  for (const int rank : {0, 1}) {
    sdk::Signature call = Summed(8);
    if (rank == 1) call.device_kind = DTRUN_DEVICE_CUDA;
    Call(rank, 1, call);
  }
  const auto difference = checker_.Check();
  ASSERT_TRUE(difference);
  EXPECT_THAT(difference->text, HasSubstr("rank 0 calls allreduce (float32 x 8, sum), rank 1 calls allreduce "
                                          "(float32 x 8, sum, cuda memory)"));
}

TEST_F(RecorderTest, FindsADifferenceThatIsNoLongerRemembered) {
  for (std::uint64_t number = 1; number <= 1000; ++number) {
    for (const int rank : {0, 1, 2}) Call(rank, number, Summed(rank == 1 && number == 5 ? 9 : 8));
  }
  const auto difference = checker_.Check();
  ASSERT_TRUE(difference);
  EXPECT_THAT(difference->text,
              AllOf(HasSubstr("the calls 1 to 64 on 'world' differ between rank 0 and rank 1"),
                    HasSubstr("older than the 128 calls")));
  EXPECT_FALSE(difference->exact);
}

TEST_F(RecorderTest, FindsADifferenceToARankThatIsFarBehind) {
  for (std::uint64_t number = 1; number <= 1000; ++number) Call(0, number, Summed(8));
  for (std::uint64_t number = 1; number <= 700; ++number) Call(1, number, Summed(number == 600 ? 9 : 8));
  const auto difference = checker_.Check();
  ASSERT_TRUE(difference);
  EXPECT_THAT(difference->text, HasSubstr("the calls 577 to 640 on 'world' differ"));
}

TEST_F(RecorderTest, WakesEveryRankOfTheCommunicator) {
  std::promise<Error> heard[2];
  const auto ignore = [](const Error&) {};
  recorders_[0]->Watch(&heard[0], "world", {[&](const Error& error) { heard[0].set_value(error); }, ignore});
  recorders_[2]->Watch(&heard[1], "world", {[&](const Error& error) { heard[1].set_value(error); }, ignore});
  recorders_[1]->Watch(this, "other", {[&](const Error& error) { ADD_FAILURE() << error.text; }, ignore});
  for (const int rank : {0, 1, 2}) Call(rank, 1, Summed(rank == 2 ? 1 : 2));
  RaiseAlarm(recorder_memory_.recorder_memory(), checker_.Check().value());
  const Error first = heard[0].get_future().get();
  EXPECT_EQ(first.code, DTRUN_MISMATCH);
  EXPECT_EQ(first.peer, 2);
  EXPECT_THAT(first.text, HasSubstr("call 1 on 'world'"));
  EXPECT_EQ(heard[1].get_future().get().peer, 0);
}

TEST_F(RecorderTest, EndsACommunicatorAfterItHasHeard) {
  std::vector<std::string> order;
  std::promise<void> ended;
  recorders_[0]->Watch(this, "world",
                       {[&](const Error&) { order.emplace_back("heard"); },
                        [&](const Error&) {
                          order.emplace_back("end");
                          ended.set_value();
                        }});
  RaiseAlarm(recorder_memory_.recorder_memory(), {NameDigest("world"), 0, 1, "they differ", true, true});
  ended.get_future().wait();
  EXPECT_THAT(order, ::testing::ElementsAre("heard", "end"));
}

TEST_F(RecorderTest, ComparesRanksOfOneCommunicatorOnly) {
  Ring* const sub = recorders_[0]->Claim("world.1:0", 0, 2);
  Begin(*sub, 1, Summed(100));
  for (const int rank : {0, 1, 2}) Call(rank, 1, Summed(8));
  EXPECT_FALSE(checker_.Check());
}

TEST_F(RecorderTest, SaysWhereTheOthersAre) {
  for (const int rank : {0, 1, 2}) {
    Call(rank, 1, Summed(8));
    End(*rings_[static_cast<std::size_t>(rank)], 1);
  }
  Call(0, 2, Summed(8));
  Call(0, 3, Summed(8));
  Call(1, 2, Summed(64));
  EXPECT_EQ(recorders_[0]->Whereabouts(*rings_[0], 3).text,
            "rank 1 is in #2, allreduce (float32 x 64, sum); rank 2 has called no collective after #1");
}

TEST_F(RecorderTest, RemembersTheLastCallsForPeople) {
  for (std::uint64_t number = 1; number <= 40; ++number) Call(1, number, Summed(number));
  End(*rings_[1], 39);
  const std::string history = checker_.History(1);
  EXPECT_THAT(history, AllOf(HasSubstr("rank 1 of 'world': began 40 calls, the last known to be over is #39"),
                             HasSubstr("  #40 * allreduce (float32 x 40, sum)"), HasSubstr("  #25 allreduce"),
                             ::testing::Not(HasSubstr("#24 "))));
}

TEST_F(RecorderTest, HasAsManyRingsAsItHas) {
  std::vector<Ring*> claimed;
  for (int i = 1; i < kRings; ++i) claimed.push_back(recorders_[0]->Claim("sub" + std::to_string(i), 0, 2));
  EXPECT_THAT(claimed, ::testing::Each(::testing::NotNull()));
  EXPECT_EQ(recorders_[0]->Claim("one too many", 0, 2), nullptr);
  recorders_[0]->Release(claimed[3]);
  EXPECT_EQ(recorders_[0]->Claim("another", 0, 2), claimed[3]);
}

TEST(Recorder, RefusesWhatIsNoRecorder) {
  const auto missing = Recorder::Open("/proc/self/fd/999", 0);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().text, HasSubstr("/proc/self/fd/999"));
}

}  // namespace
}  // namespace dtrun::contract
