// The plugin itself: its table, what it reports, what it leaves alone.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "dtrun/plugin/names.hpp"
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
  EXPECT_EQ(table.comm_abort != nullptr, (subject.Caps().flags & DTRUN_CAP_ABORT) != 0);
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

// A message, and a collective where there is one.
void MakeSomeCalls(const Subject& subject, Rank& rank) {
  float value = 1;
  const Outcome outcome = rank.rank() == 0 ? rank.Do(SendOp(&value, 1, DTRUN_FLOAT32, 1, 0))
                                           : rank.Do(RecvOp(&value, 1, DTRUN_FLOAT32, 0, 0));
  EXPECT_TRUE(outcome.ok()) << outcome;
  if (!Has(subject.Caps().ops, DTRUN_ALLREDUCE)) return;
  EXPECT_TRUE(rank.Do(AllreduceOp(&value, &value, 1, DTRUN_FLOAT32, DTRUN_SUM)).ok());
  EXPECT_TRUE(rank.Barrier().ok());
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

void PlayOnce(const Subject& subject) {
  subject.Play(2, [&](Rank& rank) { MakeSomeCalls(subject, rank); });
}

// The first round may open what a library keeps for ever.
void CommunicatorsComeAndGo(const Subject& subject) {
  PlayOnce(subject);
  const ProcessState before = ProcessState::Now();
  for (int round = 0; round < 10; ++round) PlayOnce(subject);
  EXPECT_EQ(Changes(before, ProcessState::Settled(before.threads), true), "");
}

// Bytes that all threads have allocated. 0 where another allocator does that, as under a sanitizer.
std::size_t Allocated() {
  const struct mallinfo2 now = mallinfo2();
  return now.uordblks + now.hblkhd;
}

constexpr int kMeasuredCalls = 400;
constexpr std::ptrdiff_t kTolerated = 8;  // bytes for each of them

// In the best of five rounds: libraries keep a pool now and then.
void CallsNeedNoMoreMemory(const Subject& subject) {
  subject.Play(2, [](Rank& rank) {
    std::ptrdiff_t least = PTRDIFF_MAX;
    for (int round = 0; round < 6; ++round) {
      rank.Meet("before/" + std::to_string(round));
      const std::size_t before = Allocated();
      for (int call = 0; call < kMeasuredCalls; ++call) {
        float value = 1;
        const Outcome outcome = rank.rank() == 0 ? rank.Do(SendOp(&value, 1, DTRUN_FLOAT32, 1, 0))
                                                 : rank.Do(RecvOp(&value, 1, DTRUN_FLOAT32, 0, 0));
        ASSERT_TRUE(outcome.ok()) << outcome;
      }
      rank.Meet("after/" + std::to_string(round));
      const auto grown = static_cast<std::ptrdiff_t>(Allocated()) - static_cast<std::ptrdiff_t>(before);
      if (round > 0) least = std::min(least, grown);
    }
    EXPECT_LT(least, kMeasuredCalls * kTolerated)
        << "bytes that the process grows by in " << kMeasuredCalls << " messages";
  });
}

}  // namespace

void AddPluginCases(const BackendUnderTest& backend) {
  AddCase("Plugin", "HasACompleteTable", "V10, F6", backend, TheTableIsComplete);
  AddCase("Plugin", "OffersMessages", "P1", backend, MessagesAreThere);
  AddCase("Plugin", "OffersCollectives", "P1", backend, CollectivesAreThere);
  AddCase("Plugin", "LeavesTheProcessAloneInEachMember", "T7", backend, MembersLeaveTheProcessAlone);
  AddCase("Plugin", "SaysValidTextsAtLaunch", "B26, S15", backend, LaunchTextsAreValid);
  AddCase("Plugin", "LeavesSignalsAlone", "T7", backend, SignalsAreLeftAlone);
  AddCase("Plugin", "NeedsNoMoreMemoryForEachCall", "T13", backend, CallsNeedNoMoreMemory);
  AddCase("Plugin", "KeepsNothingOfCommunicatorsThatWent", "T7, T9", backend, CommunicatorsComeAndGo);
}

}  // namespace dtrun::conformance
