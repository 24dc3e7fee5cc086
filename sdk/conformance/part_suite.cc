// Communicators of some ranks of a world: their numbers, also where one of them dies.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <vector>

#include "processes.h"
#include "suite.h"
#include "trial.h"

namespace dtrun::conformance {
namespace {

constexpr int kRanksOfWorld = 4, kDead = 3;

// A message from each rank to each other one, and a collective.
void TalkToAll(Rank& rank) {
  const auto size = static_cast<std::size_t>(rank.size());
  std::vector<std::int32_t> sent(size), got(size, -1);
  std::vector<std::unique_ptr<Pending>> pending;
  for (std::size_t peer = 0; peer < size; ++peer) {
    const int other = static_cast<int>(peer);
    if (other == rank.rank()) continue;
    sent[peer] = 10 * rank.rank() + other;
    pending.push_back(rank.Start(SendOp(&sent[peer], 1, DTRUN_INT32, other, 2)));
    pending.push_back(rank.Start(RecvOp(&got[peer], 1, DTRUN_INT32, other, 2)));
  }
  for (const auto& one : pending) EXPECT_TRUE(one != nullptr && one->Wait().ok());
  for (std::size_t peer = 0; peer < size; ++peer) {
    if (static_cast<int>(peer) == rank.rank()) continue;
    EXPECT_EQ(got[peer], 10 * static_cast<int>(peer) + rank.rank())
        << "from rank " << peer << " of " << size << " of a part (B18)";
  }
  if (Has(rank.subject().Caps().ops, DTRUN_ALLGATHER))
    Attempt(rank, {DTRUN_ALLGATHER, TypeOf(DTRUN_INT32), DTRUN_SUM, 5});
}

// Ranks have another number in each, also in one that is made from a part.
void MakeParts(Rank& world) {
  if (world.rank() != 1) {
    const auto part = world.Further("part", {3, 0, 2});
    ASSERT_NE(part, nullptr);
    TalkToAll(*part);
    const auto inner = part->rank() == 1 ? nullptr : part->Further("inner", {2, 0});
    if (part->rank() != 1) {
      ASSERT_NE(inner, nullptr);
      TalkToAll(*inner);
    }
  }
  const auto all = world.Further("all", {2, 3, 1, 0});
  ASSERT_NE(all, nullptr);
  TalkToAll(*all);
}

// A backend in which all ranks of a process share what connects them finds each of them by any number.
void RanksOfPartsInProcesses(const BackendUnderTest& backend) {
  PlayInProcesses(backend, kRanksOfWorld, {}, [=](const Subject& subject, dtrun_kv* kv, int number) {
    Outcome outcome;
    const auto world = subject.Join(kv, number, kRanksOfWorld, kPatience, &outcome);
    ASSERT_NE(world, nullptr) << outcome;
    MakeParts(*world);
    world->Meet("done");
  });
}

// Of a message that a dead rank of this communicator never sends.
void ExpectDeathOf(Rank& rank, int victim) {
  float value = 0;
  const Outcome outcome = rank.Do(RecvOp(&value, 1, DTRUN_FLOAT32, victim, 0));
  EXPECT_EQ(outcome.code, DTRUN_REMOTE_FAILURE) << outcome;
  EXPECT_EQ(outcome.peer, victim)
      << "the rank that is to blame, of the communicator that was called (F4, F11): " << outcome;
}

// It is rank 3 of the world, and rank 0 of the part.
void ADeadRankIsNamedByItsNumberInThePart(const BackendUnderTest& backend) {
  PlayInProcesses(backend, kRanksOfWorld, {kDead}, [=](const Subject& subject, dtrun_kv* kv, int number) {
    Outcome outcome;
    const auto world = subject.Join(kv, number, kRanksOfWorld, kPatience, &outcome);
    ASSERT_NE(world, nullptr) << outcome;
    std::unique_ptr<Rank> part;
    if (number != 1) part = world->Further("part", {kDead, 0, 2});
    world->Meet("joined");
    if (number == kDead) raise(SIGKILL);
    if (part == nullptr) return;
    ExpectDeathOf(*part, 0);
    const auto reports = TakePeerReports();  // in ranks of the world
    EXPECT_TRUE(std::ranges::any_of(reports, [](const auto& one) { return one.first == kDead; }))
        << "the backend made no report_peer for rank 3, which was killed, with the space of one communicator "
           "and its "
           "rank there (H11)";
  });
}

// The world has failed on all of them; they make another one from it.
void TheOthersMakeACommunicator(const BackendUnderTest& backend) {
  PlayInProcesses(backend, kRanksOfWorld, {kDead}, [=](const Subject& subject, dtrun_kv* kv, int number) {
    Outcome outcome;
    const auto world = subject.Join(kv, number, kRanksOfWorld, kPatience, &outcome);
    ASSERT_NE(world, nullptr) << outcome;
    world->Meet("joined");
    if (number == kDead) raise(SIGKILL);
    ExpectDeathOf(*world, kDead);
    const auto rest = world->Further("rest", {2, 0, 1});
    ASSERT_NE(rest, nullptr);
    std::int32_t sent = rest->rank(), got = -1;
    const auto sending = rest->Start(SendOp(&sent, 1, DTRUN_INT32, (rest->rank() + 1) % 3, 0));
    outcome = rest->Do(RecvOp(&got, 1, DTRUN_INT32, (rest->rank() + 2) % 3, 0));
    EXPECT_TRUE(outcome.ok()) << outcome;
    EXPECT_EQ(got, (rest->rank() + 2) % 3);
    if (sending) outcome = sending->Wait();
    EXPECT_TRUE(outcome.ok()) << outcome;
    if (Has(subject.Caps().ops, DTRUN_ALLREDUCE))
      Attempt(*rest, {DTRUN_ALLREDUCE, TypeOf(DTRUN_INT32), DTRUN_SUM, 1003});
  });
}

std::function<void()> WithProcesses(const BackendUnderTest& backend, void (*body)(const BackendUnderTest&)) {
  return [=] {
    const std::string reason = ReasonAgainstProcesses(backend, kRanksOfWorld);
    if (!reason.empty()) GTEST_SKIP() << reason;
    body(backend);
  };
}

}  // namespace

void AddPartCases(const BackendUnderTest& backend) {
  AddCase("Communicators", "NumberTheirRanks", "B18, B20", backend,
          [](const Subject& subject) { subject.Play(kRanksOfWorld, MakeParts); });
  AddCase("Communicators", "NumberTheirRanksInProcesses", "B18, B20", backend,
          WithProcesses(backend, RanksOfPartsInProcesses));
  AddCase("Faults", "NameARankThatDiesInAPart", "F4, F11, H11, B18", backend,
          WithProcesses(backend, ADeadRankIsNamedByItsNumberInThePart));
  AddCase("Faults", "LeaveTheOthersACommunicator", "B18, B20", backend,
          WithProcesses(backend, TheOthersMakeACommunicator));
}

}  // namespace dtrun::conformance
