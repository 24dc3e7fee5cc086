#include "core/comm/recorder/excerpt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/comm/recorder/auditor.h"
#include "core/comm/recorder/recorder.h"

namespace dtrun::comm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kLooksUntilRest = 6;  // the first one only sees where they are

sdk::Signature Allreduce(std::uint64_t count) {
  sdk::Signature call;
  call.kind = DTRUN_ALLREDUCE;
  call.dtype = DTRUN_FLOAT32;
  call.reduce = DTRUN_SUM;
  call.count = count;
  return call;
}

// Two hosts of two ranks each: the books of both agents.
class ExcerptTest : public ::testing::Test {
 protected:
  struct Site {
    explicit Site(const std::vector<int>& ranks_here)
        : ranks(ranks_here), book(*BookMapping::Create(4)), reporter(book.book(), ranks) {}
    std::vector<int> ranks;
    BookMapping book;
    Reporter reporter;
  };

  ExcerptTest() {
    for (int rank = 0; rank < 4; ++rank) journals_.push_back(Open(rank, "world", rank, 4));
  }
  const Book& BookOf(int rank) { return sites_[rank / 2].book.book(); }
  Journal* Open(int rank, const std::string& name, int inner_rank, int size) {
    return OpenJournal(BookOf(rank), rank, NameDigest(name), name, inner_rank, size);
  }
  void Call(int rank, std::uint64_t number, std::uint64_t count = 8) {
    Begin(*journals_[static_cast<std::size_t>(rank)], number, Allreduce(count));
  }
  // Looks at both hosts, and tells each what the other has seen.
  void Look() {
    for (const int site : {0, 1}) {
      for (const Excerpt& excerpt : sites_[site].reporter.Report())
        Enter(sites_[1 - site].book.book(), sites_[1 - site].ranks, excerpt);
    }
  }
  void Rest() {
    for (int look = 0; look < kLooksUntilRest; ++look) Look();
  }
  auto Audit(int site) { return Auditor(sites_[site].book.book()).Audit(); }

  Site sites_[2] = {Site({0, 1}), Site({2, 3})};
  std::vector<Journal*> journals_;
};

TEST_F(ExcerptTest, TellsOfRanksAtRestOnceAndForAllThatAreAlike) {
  for (const int rank : {0, 1, 2, 3}) Call(rank, 1);
  for (int look = 1; look < kLooksUntilRest; ++look)
    EXPECT_THAT(sites_[0].reporter.Report(), IsEmpty()) << look;
  const std::vector<Excerpt> told = sites_[0].reporter.Report();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].name, "world");
  EXPECT_THAT(told[0].members, SizeIs(2));
  EXPECT_THAT(told[0].calls, SizeIs(1));
  ASSERT_TRUE(told[0].rest);
  EXPECT_EQ(told[0].rest->started, 1u);
  for (int look = 0; look < 20; ++look) EXPECT_THAT(sites_[0].reporter.Report(), IsEmpty()) << look;
  End(*journals_[0], 1);  // is news again, of this rank alone
  std::vector<Excerpt> news;
  for (int look = 0; look < kLooksUntilRest && news.empty(); ++look) news = sites_[0].reporter.Report();
  ASSERT_THAT(news, SizeIs(1));
  EXPECT_THAT(news[0].members, SizeIs(1));
}

TEST_F(ExcerptTest, TellsOnlyCheckpointsWhileCallsGoOn) {
  for (std::uint64_t number = 1; number <= 200; ++number) Call(0, number);
  std::vector<Excerpt> told = sites_[0].reporter.Report();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0].calls, IsEmpty());
  EXPECT_FALSE(told[0].rest);
  ASSERT_THAT(told[0].checkpoints, SizeIs(3));
  EXPECT_EQ(told[0].checkpoints[2].first, 192u);
  for (std::uint64_t number = 201; number <= 256; ++number) Call(0, number);
  told = sites_[0].reporter.Report();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0].checkpoints, SizeIs(1));  // nothing twice
}

TEST_F(ExcerptTest, TellsNoMoreCheckpointsThanAreRemembered) {
  for (std::uint64_t number = 1; number <= 6400; ++number) Call(0, number);
  const std::vector<Excerpt> told = sites_[0].reporter.Report();
  ASSERT_THAT(told, SizeIs(1));
  ASSERT_THAT(told[0].checkpoints, SizeIs(kCheckpoints));
  EXPECT_EQ(told[0].checkpoints.back().first, 6400u);
}

TEST_F(ExcerptTest, FindsADifferenceBetweenHostsThatWait) {
  for (const int rank : {0, 1, 2, 3}) Call(rank, 1);
  for (const int rank : {0, 1, 2, 3}) Call(rank, 2, rank < 2 ? 8 : 9);
  EXPECT_FALSE(Audit(0));
  Rest();
  for (const int site : {0, 1}) {
    const auto difference = Audit(site);
    ASSERT_TRUE(difference) << site;
    EXPECT_EQ(difference->text,
              "call 2 on 'world' differs: rank 0 calls allreduce (float32 x 8, sum), rank 2 calls allreduce "
              "(float32 x 9, sum)");
    EXPECT_TRUE(difference->exact);
  }
}

TEST_F(ExcerptTest, FindsADifferenceWhileCallsGoOnAndNamesItWhenAsked) {
  for (std::uint64_t number = 1; number <= 130; ++number) {
    for (const int rank : {0, 1, 2, 3}) Call(rank, number, rank >= 2 && number == 100 ? 9 : 8);
  }
  Look();
  auto difference = Audit(1);
  ASSERT_TRUE(difference);
  EXPECT_FALSE(difference->exact);
  EXPECT_THAT(difference->text, HasSubstr("calls 65 to 128 on 'world' differ between rank 0 and rank 2"));
  for (Site& site : sites_) site.reporter.Tell(NameDigest("world"));
  Look();
  difference = Audit(1);
  ASSERT_TRUE(difference);
  EXPECT_TRUE(difference->exact);
  EXPECT_THAT(difference->text, HasSubstr("call 100 on 'world' differs: rank 0 calls"));
}

TEST_F(ExcerptTest, FindsNothingWhenHostsAreAtDifferentCalls) {
  for (std::uint64_t number = 1; number <= 1000; ++number) {
    for (const int rank : {0, 1}) Call(rank, number);
    if (number > 500) {
      for (const int rank : {2, 3}) Call(rank, number - 500);
    }
    if (number % 90 == 0) Look();
    ASSERT_FALSE(Audit(0)) << number;
    ASSERT_FALSE(Audit(1)) << number;
  }
  Rest();
  EXPECT_FALSE(Audit(0));
}

TEST_F(ExcerptTest, SaysWhereRanksElsewhereAre) {
  for (const int rank : {0, 1, 2}) {
    Call(rank, 1);
    End(*journals_[static_cast<std::size_t>(rank)], 1);
    Call(rank, 2);
  }
  Rest();
  const auto recorder = *Recorder::Open(sites_[0].book.Path(), 0);
  EXPECT_EQ(recorder->Whereabouts(*journals_[0], 2), "rank 3 has called nothing yet");
  for (std::uint64_t number = 1; number <= 70; ++number) Call(3, number);
  Look();  // it goes on, so what was told of it is no longer true
  EXPECT_THAT(recorder->Whereabouts(*journals_[0], 2), ::testing::Not(HasSubstr("rank 3")));
}

TEST_F(ExcerptTest, KnowsRanksAtRestWhenAnotherSpeaksForTheirHost) {
  for (std::uint64_t number = 1; number <= 70; ++number) {
    for (const int rank : {0, 1, 2, 3}) Call(rank, number);
  }
  Call(0, 71);
  Rest();
  journals_[2]->communicator = 0;  // rank 3 speaks from now on, and tells its checkpoints again
  Look();
  const auto recorder = *Recorder::Open(sites_[0].book.Path(), 0);
  EXPECT_THAT(recorder->Whereabouts(*journals_[0], 71), HasSubstr("rank 3 is in #70"));
}

TEST_F(ExcerptTest, KeepsCommunicatorsOfOneHostToItself) {
  for (const int rank : {0, 1}) {
    Journal* const inner = Open(rank, "world.0:0", rank, 2);
    for (std::uint64_t number = 1; number <= 100; ++number) Begin(*inner, number, Allreduce(1));
  }
  for (int look = 0; look < 2 * kLooksUntilRest; ++look) {
    for (const Excerpt& excerpt : sites_[0].reporter.Report()) EXPECT_EQ(excerpt.name, "world");
  }
}

TEST_F(ExcerptTest, FreesWhatTheOthersHaveFreed) {
  const auto in_use = [&] {
    int count = 0;
    for (int index = 0; index < kJournals; ++index) count += BookOf(0).JournalOf(2, index).communicator != 0;
    return count;
  };
  Rest();
  EXPECT_EQ(in_use(), 1);
  for (int round = 0; round < 3 * kJournals; ++round) {  // more than there are journals
    Journal* const part = Open(2, "world." + std::to_string(round), 0, 2);
    Begin(*part, 1, Allreduce(1));
    Rest();
    EXPECT_EQ(in_use(), 2);
    part->communicator = 0;
    Look();
    EXPECT_EQ(in_use(), 1);
  }
}

TEST_F(ExcerptTest, LeavesOutWhatNoRanksOfThisWorldCouldHaveCalled) {
  Excerpt excerpt;
  excerpt.communicator = NameDigest("world");
  excerpt.name = "world";
  excerpt.size = 4;
  excerpt.members = {{2, 2}};
  excerpt.rest = comm::Rest{7, 7};
  const auto entered = [&](auto change) {
    Excerpt other = excerpt;
    change(other);
    Enter(BookOf(0), {0, 1}, other);
    return BookOf(0).JournalOf(2, 0).communicator != 0;
  };
  EXPECT_FALSE(entered([](Excerpt& one) { one.members.push_back({4, 3}); }));
  EXPECT_FALSE(entered([](Excerpt& one) { one.members.push_back({-1, 3}); }));
  EXPECT_FALSE(entered([](Excerpt& one) { one.members[0].rank = 4; }));
  EXPECT_FALSE(entered([](Excerpt& one) { one.size = 5; }));
  EXPECT_FALSE(entered([](Excerpt& one) { one.name = std::string(500, 'x'); }));
  EXPECT_FALSE(entered([](Excerpt& one) { one.rest->started = UINT64_MAX; }));
  EXPECT_FALSE(entered([](Excerpt& one) { one.checkpoints = {{65, 1}}; }));
  EXPECT_TRUE(entered([](Excerpt&) {}));
  EXPECT_EQ(BookOf(0).JournalOf(2, 0).started, 7u);
  excerpt.members = {{1, 1}, {2, 2}};  // rank 1 lives here and writes itself
  EXPECT_TRUE(entered([](Excerpt& one) { one.rest->started = 8; }));
  EXPECT_EQ(BookOf(0).JournalOf(1, 0).started, 0u);
}

}  // namespace
}  // namespace dtrun::comm
