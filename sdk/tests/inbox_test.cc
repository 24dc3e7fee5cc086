#include "dtrun/plugin/inbox.hpp"

#include <gmock/gmock.h>

#include <thread>

#include "dtrun/plugin/first_failure.hpp"

namespace dtrun::sdk {
namespace {

using std::chrono::milliseconds;

std::vector<char> Bytes(const std::string& text) { return {text.begin(), text.end()}; }

class InboxTest : public testing::Test, private Inbox::Owner {
 protected:
  std::unique_ptr<Inbox::Receive> Start(int peer, std::uint64_t key, std::string& into,
                                        Nanoseconds timeout = kNoLimit) {
    return inbox_.Start(peer, {key, into.size()}, into.data(), Deadline(timeout));
  }
  void FailLate(int peer) override {
    failure_.Set(Failure(DTRUN_TIMEOUT, "late", peer));
    inbox_.Shut();
  }
  void ThrowIfFailed() override { failure_.ThrowIfSet(); }

  FirstFailure failure_;
  Inbox inbox_{*this, 3};
};

TEST_F(InboxTest, GivesAnEarlyMessageToItsReceive) {
  inbox_.Deliver(1, 7, Bytes("abc"));
  std::string got(3, ' ');
  EXPECT_TRUE(Start(1, 7, got)->Test());
  EXPECT_EQ(got, "abc");
}

TEST_F(InboxTest, GivesAMessageToTheReceiveThatWaits) {
  std::string got(3, ' ');
  const auto receive = Start(1, 7, got);
  EXPECT_FALSE(receive->Test());
  EXPECT_FALSE(receive->Wait(milliseconds(1)));
  EXPECT_TRUE(inbox_.Awaits(1));
  std::thread reader([&] { inbox_.Deliver(1, 7, Bytes("abc")); });
  EXPECT_TRUE(receive->Wait(kNoLimit));
  reader.join();
  EXPECT_FALSE(inbox_.Awaits(1));
  EXPECT_EQ(got, "abc");
}

TEST_F(InboxTest, TellsPeersKeysAndSizesApartAndKeepsTheOrder) {
  std::string first(1, ' '), second(1, ' '), other_key(1, ' '), other_peer(1, ' '), longer(2, ' ');
  const auto receives = {Start(1, 7, first), Start(1, 7, second), Start(1, 8, other_key),
                         Start(2, 7, other_peer), Start(1, 7, longer)};
  inbox_.Deliver(1, 7, Bytes("xy"));
  inbox_.Deliver(2, 7, Bytes("p"));
  inbox_.Deliver(1, 8, Bytes("k"));
  inbox_.Deliver(1, 7, Bytes("1"));
  inbox_.Deliver(1, 7, Bytes("2"));
  for (const auto& receive : receives) EXPECT_TRUE(receive->Test());
  EXPECT_EQ(first + second + other_key + other_peer + longer, "12kpxy");
}

TEST_F(InboxTest, KeepsTheOrderOfEarlyMessages) {
  inbox_.Deliver(1, 7, Bytes("1"));
  inbox_.Deliver(1, 7, Bytes("2"));
  std::string first(1, ' '), second(1, ' ');
  EXPECT_TRUE(Start(1, 7, first)->Test());
  EXPECT_TRUE(Start(1, 7, second)->Test());
  EXPECT_EQ(first + second, "12");
}

TEST_F(InboxTest, AReceiveWhoseTimeIsOverFailsTheCommunicator) {
  std::string got(1, ' '), other(1, ' ');
  const auto receive = Start(2, 7, got, milliseconds(1));
  const auto waits = Start(1, 7, other);
  EXPECT_THROW(receive->Wait(kNoLimit), Failure);
  EXPECT_EQ(failure_->peer(), 2);
  EXPECT_THROW(waits->Test(), Failure);
  inbox_.Deliver(1, 7, Bytes("x"));
  EXPECT_EQ(other, " ");  // the memory of a receive that has ended is not touched
}

TEST_F(InboxTest, AMessageThatIsHereIsGivenOutAfterAFailureToo) {
  inbox_.Deliver(1, 7, Bytes("x"));
  failure_.Set(Failure(DTRUN_ABORTED, "stop"));
  inbox_.Shut();
  std::string got(1, ' '), none(1, ' ');
  EXPECT_TRUE(Start(1, 7, got)->Test());
  EXPECT_THROW(Start(1, 7, none)->Test(), Failure);
}

}  // namespace
}  // namespace dtrun::sdk
