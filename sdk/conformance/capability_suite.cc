// What the backend says it can do, and what it does when asked: each pair is tried.
#include <gtest/gtest.h>

#include "suite.h"
#include "trial.h"

namespace dtrun::conformance {
namespace {

constexpr std::int32_t kUnknown = 63;

bool Refused(const Outcome& outcome) {
  return outcome.code == DTRUN_UNSUPPORTED || outcome.code == DTRUN_INVALID_ARGUMENT;
}

// An operation that nobody can answer must be refused before anything is sent, so one rank asks alone.
void ExpectRefusal(Rank& rank, const dtrun_op& op, const std::string& what) {
  Outcome outcome;
  EXPECT_EQ(rank.Start(op, &outcome), nullptr) << what << " was accepted";
  EXPECT_TRUE(Refused(outcome)) << what << ": " << outcome;
  EXPECT_NE(outcome.text, "") << what;
}

void MasksHoldKnownValuesOnly(const Subject& subject) {
  const dtrun_backend_caps caps = subject.Caps();
  EXPECT_EQ(caps.ops >> DTRUN_OP_COUNT, 0u);
  EXPECT_EQ(caps.dtypes >> DTRUN_DTYPE_COUNT, 0u);
  EXPECT_EQ(caps.reduces >> DTRUN_REDUCE_COUNT, 0u);
  for (const std::uint64_t mask : {caps.ops, caps.dtypes, caps.reduces}) EXPECT_EQ(mask & 1, 0u);
}

void WhatIsOfferedWorksAndTheRestIsRefused(const Subject& subject) {
  const dtrun_backend_caps caps = subject.Caps();
  subject.Play(2, [&](Rank& rank) {
    // More values than types.h names today.
    for (std::int32_t dtype = -1; dtype <= DTRUN_DTYPE_COUNT + 1; ++dtype) {
      const bool known = dtype > 0 && dtype < DTRUN_DTYPE_COUNT;
      for (std::int32_t reduce = -1; reduce <= DTRUN_REDUCE_COUNT + 1; ++reduce) {
        if (known && subject.Reduces(caps, dtype, reduce)) {
          Attempt(rank, {DTRUN_ALLREDUCE, TypeOf(dtype), reduce, 5});
        } else {
          Buffer data(64);
          dtrun_op op = AllreduceOp(data.data(), data.data(), 1, dtype, reduce);
          op.scale = 1;
          ExpectRefusal(rank, op, "type " + std::to_string(dtype) + ", reduction " + std::to_string(reduce));
        }
      }
    }
    EXPECT_TRUE(rank.Barrier().ok());
  });
}

void EveryOperationWorksOrIsRefused(const Subject& subject) {
  const dtrun_backend_caps caps = subject.Caps();
  subject.Play(2, [&](Rank& rank) {
    for (std::int32_t kind = 1; kind < DTRUN_OP_COUNT; ++kind) {
      if (kind == DTRUN_BARRIER || kind == DTRUN_SEND || kind == DTRUN_RECV) continue;
      if (Has(caps.ops, kind)) {
        Attempt(rank, {kind, TypeOf(DTRUN_FLOAT32), DTRUN_SUM, 5});
        continue;
      }
      std::vector<float> data(16);
      const std::vector<std::uint64_t> counts(2, 1);
      dtrun_op op =
          AllreduceOp(data.data(), data.data() + 8, 1, DTRUN_FLOAT32, Reduces(kind) ? DTRUN_SUM : 0);
      op.kind = kind;
      op.root = Rooted(kind) ? 0 : -1;
      op.send_counts = op.recv_counts = counts.data();
      Outcome outcome;
      EXPECT_EQ(rank.Start(op, &outcome), nullptr) << KindName(kind) << " was accepted";
      EXPECT_EQ(outcome.code, DTRUN_UNSUPPORTED) << KindName(kind) << ": " << outcome;
    }
    for (const std::int32_t kind : {-1, 0, int{DTRUN_OP_COUNT}, int{kUnknown}, 1 << 20}) {
      float value = 1;
      dtrun_op op = AllreduceOp(&value, &value, 1, DTRUN_FLOAT32, DTRUN_SUM);
      op.kind = kind;
      ExpectRefusal(rank, op, "operation " + std::to_string(kind));
    }
    EXPECT_TRUE(rank.Barrier().ok());
  });
}

void AnySourceWorksOrIsRefused(const Subject& subject) {
  if ((subject.Caps().flags & DTRUN_CAP_ANY_SOURCE) != 0) GTEST_SKIP() << "offered, and tried with messages";
  subject.Play(2, [](Rank& rank) {
    float value = 0;
    ExpectRefusal(rank, RecvOp(&value, 1, DTRUN_FLOAT32, DTRUN_ANY_SOURCE, 0), "a receive from anyone");
  });
}

}  // namespace

void AddCapabilityCases(const BackendUnderTest& backend) {
  AddCase("Capabilities", "AreKnownValues", backend, MasksHoldKnownValuesOnly);
  AddCase("Capabilities", "AgreeWithWhatTypesAndReductionsDo", backend,
          WhatIsOfferedWorksAndTheRestIsRefused);
  AddCase("Capabilities", "AgreeWithWhatOperationsDo", backend, EveryOperationWorksOrIsRefused);
  AddCase("Capabilities", "AgreeWithReceivingFromAnyone", backend, AnySourceWorksOrIsRefused);
}

}  // namespace dtrun::conformance
