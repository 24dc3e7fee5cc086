// The plugin itself: its table, what it reports, what it leaves alone.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dtrun/plugin/names.hpp"
#include "kv.h"
#include "process_state.h"
#include "suite.h"

namespace dtrun::conformance {
namespace {

void TheTableIsComplete(const Subject& subject) {
  const dtrun_backend& table = subject.table();
  EXPECT_NE(table.query_caps, nullptr);
  EXPECT_NE(table.comm_create, nullptr);
  EXPECT_NE(table.comm_destroy, nullptr);
  EXPECT_NE(table.enqueue, nullptr);
  EXPECT_NE(table.req_test, nullptr);
  EXPECT_NE(table.req_wait_host, nullptr);
  EXPECT_NE(table.req_release, nullptr);
  EXPECT_EQ(table.group_begin != nullptr, table.group_end != nullptr);
  EXPECT_EQ(table.mem_alloc != nullptr, table.mem_free != nullptr);
  EXPECT_EQ(table.mem_register != nullptr, table.mem_deregister != nullptr);
  EXPECT_EQ(table.comm_abort != nullptr, (subject.Caps().features & DTRUN_CAP_ABORT) != 0);
}

// What the rest of the suite calls without asking, for each profile.
void MessagesAreThere(const Subject& subject) {
  const dtrun_backend_caps caps = subject.Caps();
  for (const int op : {DTRUN_SEND, DTRUN_RECV}) {
    EXPECT_TRUE(Has(caps.ops, op)) << "no " << sdk::OperationName(op) << ", which every backend needs";
  }
  EXPECT_TRUE(Has(caps.device_kinds, DTRUN_DEVICE_HOST)) << "no memory of the host";
  for (const int dtype :
       {DTRUN_FLOAT16, DTRUN_BFLOAT16, DTRUN_FLOAT32, DTRUN_FLOAT64, DTRUN_INT32, DTRUN_INT64, DTRUN_UINT8}) {
    EXPECT_TRUE(Has(caps.dtypes, dtype)) << "no " << sdk::TypeName(dtype) << ", which every backend needs";
  }
}

void CollectivesAreThere(const Subject& subject) {
  const dtrun_backend_caps caps = subject.Caps();
  for (const int op :
       {DTRUN_ALLREDUCE, DTRUN_BROADCAST, DTRUN_ALLGATHER, DTRUN_REDUCE_SCATTER, DTRUN_BARRIER}) {
    EXPECT_TRUE(Has(caps.ops, op)) << "no " << sdk::OperationName(op)
                                   << "; a backend of messages alone has --profile messages";
  }
  for (const int reduce : {DTRUN_SUM, DTRUN_PROD, DTRUN_MIN, DTRUN_MAX, DTRUN_AVG}) {
    EXPECT_TRUE(Has(caps.reduces, reduce))
        << "no " << sdk::ReductionName(reduce) << ", which every backend needs";
  }
}

void SignalsAreLeftAlone(const Subject& subject) {
  subject.Play(2, [&](Rank& rank) {
    const ProcessState before = ProcessState::Now();
    MakeSomeCalls(subject, rank);
    EXPECT_EQ(Changes(before, ProcessState::Now(), false), "");
  });
}

// Says what has changed since it was asked last, or made.
class Untouched {
 public:
  void After(const char* member) {
    ProcessState now = ProcessState::Now();
    EXPECT_EQ(Changes(before_, now, false), "") << "in or before " << member;
    before_ = std::move(now);
  }

 private:
  ProcessState before_ = ProcessState::Now();
};

// The first call of each member in this process: some change a thing once. What other ranks' threads change
// is seen here too.
void MembersLeaveTheProcessAlone(const Subject& subject) {
  const dtrun_backend& table = subject.table();
  Untouched alone;
  subject.Caps();
  alone.After("query_caps");
  if (table.launch_info != nullptr) subject.LaunchInfo(1);
  alone.After("launch_info");
  subject.PlayWithoutJoining(2, [&](dtrun_kv* kv, int number) {
    Untouched untouched;
    Outcome outcome;
    std::unique_ptr<Rank> rank = subject.Join(kv, number, 2, kPatience, &outcome);
    ASSERT_NE(rank, nullptr) << outcome;
    untouched.After("comm_create");
    float value = 1;
    auto pending = rank->Start(number == 0 ? SendOp(&value, 1, DTRUN_FLOAT32, 1, 0)
                                           : RecvOp(&value, 1, DTRUN_FLOAT32, 0, 0));
    untouched.After("enqueue");
    ASSERT_NE(pending, nullptr);
    bool done = false;
    pending->Test(&done);
    untouched.After("req_test");
    EXPECT_TRUE(pending->Wait().ok());
    untouched.After("req_wait_host");
    pending.reset();
    untouched.After("req_release");
    if (table.snapshot != nullptr) rank->Snapshot();
    untouched.After("snapshot");
    if (table.group_begin != nullptr) {
      EXPECT_TRUE(rank->GroupBegin().ok());
      EXPECT_TRUE(rank->GroupEnd().ok());
    }
    untouched.After("group_end");
    if (table.mem_alloc != nullptr) rank->Free(rank->Alloc(64));
    untouched.After("mem_free");
    rank->Meet("before the abort");
    if (table.comm_abort != nullptr) rank->Abort("the test says so");
    untouched.After("comm_abort");
    rank.reset();
    untouched.After("comm_destroy");
  });
}

void LaunchTextsAreValid(const Subject& subject) {
  if (subject.table().launch_info == nullptr) GTEST_SKIP() << "the backend says nothing at launch";
  for (const int hosts : {1, 2}) subject.LaunchInfo(hosts);  // which looks at each
}

void NobodyJoinsWhereItIsUnusable(const Subject& subject) {
  if (subject.table().launch_info == nullptr) GTEST_SKIP() << "the backend says nothing at launch";
  const Subject::Launch launch = subject.LaunchInfo(1);
  const auto why = launch.facts.find("unusable");
  if (why == launch.facts.end()) GTEST_SKIP() << "the backend says that it can be used here";
  subject.PlayWithoutJoining(1, [&](dtrun_kv* kv, int rank) {
    Outcome outcome;
    EXPECT_EQ(subject.Join(kv, rank, 1, kPatience, &outcome), nullptr)
        << "it is unusable and made a communicator: " << why->second;
    EXPECT_EQ(outcome.code, DTRUN_FAILED_PRECONDITION) << outcome;
    EXPECT_NE(outcome.text.find(why->second), std::string::npos)
        << "another reason than at launch, '" << why->second << "': " << outcome;
  });
}

void PlayOnce(const Subject& subject) {
  subject.Play(2, [&](Rank& rank) { MakeSomeCalls(subject, rank); });
}

// Each rank waits for another that sends nothing; the first at its deadline may fail the others.
void PlayToAFailure(const Subject& subject) {
  subject.Play(3, [](Rank& rank) {
    rank.Meet("joined");  // who fails at once would end the others' comm_create (B17)
    float value = 1;
    dtrun_op op = RecvOp(&value, 1, DTRUN_FLOAT32, (rank.rank() + 1) % 3, 0);
    op.timeout_ns = nanoseconds(std::chrono::milliseconds(50)).count();
    EXPECT_FALSE(rank.Do(op).ok());
  });
}

// Rank 1 of the world never comes.
void PlayToAnAbsence(const Subject& subject) {
  constexpr std::chrono::milliseconds kShort(50);
  subject.PlayWithoutJoining(2, [&](dtrun_kv* kv, int rank) {
    Outcome outcome;
    if (rank == 1) return;
    EXPECT_EQ(subject.Join(kv, rank, 2, kShort, &outcome), nullptr)
        << "a world without its other rank came about";
  });
}

// Both ranks abort with an operation under way.
void PlayToAnAbort(const Subject& subject) {
  subject.Play(2, [&](Rank& rank) {
    MakeSomeCalls(subject, rank);
    float value = 1;
    const auto pending = rank.Start(RecvOp(&value, 1, DTRUN_FLOAT32, 1 - rank.rank(), 0));
    ASSERT_NE(pending, nullptr);
    rank.Meet("before the abort");
    rank.Abort("the test says so");
    EXPECT_FALSE(pending->Wait().ok());
  });
}

// The first round may open what a library keeps for ever.
void NothingIsKept(const Subject& subject, int rounds, void (*play)(const Subject&)) {
  play(subject);
  const ProcessState before = ProcessState::Now();
  for (int round = 0; round < rounds; ++round) play(subject);
  EXPECT_EQ(Changes(before, ProcessState::Settled(before.threads), true), "");
}

void CommunicatorsComeAndGo(const Subject& subject) { NothingIsKept(subject, 10, PlayOnce); }
void CommunicatorsFailAndGo(const Subject& subject) { NothingIsKept(subject, 3, PlayToAFailure); }
void CommunicatorsDoNotComeAbout(const Subject& subject) { NothingIsKept(subject, 3, PlayToAnAbsence); }
void CommunicatorsAreAbortedAndGo(const Subject& subject) {
  if (subject.table().comm_abort == nullptr) GTEST_SKIP() << "the backend cannot abort";
  NothingIsKept(subject, 3, PlayToAnAbort);
}

// Its plugin may refuse a second one.
void AnotherInstanceMayEnd(const BackendUnderTest& backend, const Subject& subject) {
  if (!subject.InOneProcess()) GTEST_SKIP() << "the ranks are processes";
  std::optional<Subject> other;
  try {
    other.emplace(backend);
  } catch (const std::runtime_error& error) {
    GTEST_SKIP() << "the plugin makes no second instance: " << error.what();
  }
  PlayOnce(*other);
  other.reset();
  PlayOnce(subject);
}

}  // namespace

void MakeSomeCalls(const Subject& subject, Rank& rank) {
  float value = 1;
  const Outcome outcome = rank.rank() == 0 ? rank.Do(SendOp(&value, 1, DTRUN_FLOAT32, 1, 0))
                                           : rank.Do(RecvOp(&value, 1, DTRUN_FLOAT32, 0, 0));
  EXPECT_TRUE(outcome.ok()) << outcome;
  if (!Has(subject.Caps().ops, DTRUN_ALLREDUCE)) return;
  EXPECT_TRUE(rank.Do(AllreduceOp(&value, &value, 1, DTRUN_FLOAT32, DTRUN_SUM)).ok());
  EXPECT_TRUE(rank.Barrier().ok());
}

void AddPluginCases(const BackendUnderTest& backend) {
  AddCase("Plugin", "HasACompleteTable", "V10, F6", backend, TheTableIsComplete);
  AddCase("Plugin", "OffersMessages", "P1", backend, MessagesAreThere);
  AddCase("Plugin", "OffersCollectives", "P1", backend, CollectivesAreThere);
  AddCase("Plugin", "LeavesTheProcessAloneInEachMember", "T7", backend, MembersLeaveTheProcessAlone);
  AddCase("Plugin", "SaysValidTextsAtLaunch", "B26, S15", backend, LaunchTextsAreValid);
  AddCase("Plugin", "IsNotJoinedWhereItIsUnusable", "B30", backend, NobodyJoinsWhereItIsUnusable);
  AddCase("Plugin", "LeavesSignalsAlone", "T7", backend, SignalsAreLeftAlone);
  AddCase("Plugin", "OutlivesAnotherInstance", "T5", backend,
          [=](const Subject& subject) { AnotherInstanceMayEnd(backend, subject); });
  AddCase("Plugin", "KeepsNothingOfCommunicatorsThatWent", "T7, T9", backend, CommunicatorsComeAndGo);
  AddCase("Plugin", "KeepsNothingOfCommunicatorsThatDidNotComeAbout", "T7, T9", backend,
          CommunicatorsDoNotComeAbout);
  AddCase("Plugin", "KeepsNothingOfCommunicatorsThatFailed", "T7, T9", backend, CommunicatorsFailAndGo);
  AddCase("Plugin", "KeepsNothingOfCommunicatorsThatWereAborted", "T7, T9", backend,
          CommunicatorsAreAbortedAndGo);
}

}  // namespace dtrun::conformance
