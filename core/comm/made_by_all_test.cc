#include <gmock/gmock.h>

#include <functional>
#include <future>
#include <vector>

#include "core/comm/agreement.h"
#include "core/comm/testing/local_spaces.h"

namespace dtrun::comm {
namespace {

using ::testing::HasSubstr;

// Ranks are threads; each makes its communicator with `make`, which may wait in the backend's space.
class MadeByAllTest : public ::testing::Test {
 protected:
  using Make = std::function<Status(int rank, dtrun_kv& kv)>;

  std::vector<Status> Play(int size, const Make& make) {
    std::vector<std::future<Status>> ranks;
    for (int rank = 0; rank < size; ++rank) {
      ranks.push_back(std::async(std::launch::async, [this, rank, size, &make] {
        const auto theirs = spaces_.Space("comm/"), own = spaces_.Space("making/");
        Making making;
        making.name = "pair";
        making.rank = rank;
        making.size = size;
        making.timeout = timeout_;
        making.patience = std::chrono::milliseconds(1);
        making.making_kv = own.get();
        return MadeByAll(making, "host", theirs.get(), make(rank, *theirs));
      }));
    }
    std::vector<Status> outcomes;
    for (auto& rank : ranks) outcomes.push_back(rank.get());
    return outcomes;
  }

  Nanoseconds timeout_{-1};
  testing::LocalSpaces spaces_;
};

void ExpectTold(const Status& outcome, int peer, const char* text) {
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, DTRUN_REMOTE_FAILURE);
  EXPECT_EQ(outcome.error().peer, peer);
  EXPECT_EQ(outcome.error().Id(), "comm.peer_failed");
  EXPECT_THAT(outcome.error().text, HasSubstr(text));
}

TEST_F(MadeByAllTest, SucceedsWhereAllHaveMadeIt) {
  for (const Status& outcome : Play(3, [](int, dtrun_kv&) { return Status(); })) EXPECT_TRUE(outcome.ok());
}

// No time limit: each of them would wait for ever.
TEST_F(MadeByAllTest, TellsRanksThatWaitInTheBackendAndThoseThatHaveMadeIt) {
  const auto outcomes = Play(3, [](int rank, dtrun_kv& kv) -> Status {
    if (rank == 1) return Error{DTRUN_UNSUPPORTED, "there is no device"};
    if (rank == 0) return {};
    const auto waited = kv.Get("of rank 1", Nanoseconds(-1));
    // The program must not get the error that a backend makes of it.
    return Error{DTRUN_VENDOR, "a get failed: " + waited.error().text};
  });
  ExpectTold(outcomes[0], 1, "rank 1: there is no device");
  EXPECT_EQ(outcomes[1].error().code, DTRUN_UNSUPPORTED);
  ExpectTold(outcomes[2], 1, "rank 1: there is no device");
}

TEST_F(MadeByAllTest, ARankThatLacksSomethingItselfSaysSoWhoeverWasFirst) {
  const auto outcomes = Play(2, [](int rank, dtrun_kv& kv) -> Status {
    if (rank == 1) static_cast<void>(kv.Get("of rank 0", Nanoseconds(-1)));  // until rank 0 fails
    return Error{DTRUN_FAILED_PRECONDITION, "rank " + std::to_string(rank) + " finds no library"};
  });
  for (const int rank : {0, 1}) {
    const Error& error = outcomes[static_cast<std::size_t>(rank)].error();
    EXPECT_EQ(error.code, DTRUN_FAILED_PRECONDITION) << error.text;
    EXPECT_EQ(error.text, "rank " + std::to_string(rank) + " finds no library");
  }
}

TEST_F(MadeByAllTest, BlamesTheRankThatOneHasLost) {
  const auto outcomes = Play(2, [](int rank, dtrun_kv&) -> Status {
    if (rank == 1) return Error{DTRUN_REMOTE_FAILURE, "rank 7 is gone", 7};
    return {};
  });
  ExpectTold(outcomes[0], 7, "rank 7 is gone");
}

TEST_F(MadeByAllTest, NamesTheRankThatDoesNotMakeItInTime) {
  timeout_ = std::chrono::milliseconds(1);
  const auto outcomes = Play(2, [](int rank, dtrun_kv&) -> Status {
    if (rank == 1) return Error{DTRUN_TIMEOUT, "rank 0 did not come"};
    return {};
  });
  EXPECT_EQ(outcomes[0].error().code, DTRUN_TIMEOUT);
  EXPECT_EQ(outcomes[0].error().peer, 1);
  EXPECT_EQ(outcomes[0].error().Id(), "comm.absent");
  EXPECT_EQ(outcomes[0].error().Ranks(), std::vector<int>{1});
  EXPECT_THAT(outcomes[1].error().text, HasSubstr("rank 0 did not come"));  // its own, not published
}

}  // namespace
}  // namespace dtrun::comm
