// What the backend says it can do, and what it does when asked for that: each pair is tried.
#include <gtest/gtest.h>

#include "suite.h"
#include "trial.h"

namespace dtrun::conformance {
namespace {

void MasksHoldKnownValuesOnly(const Subject& subject) {
  const dtrun_backend_caps caps = subject.Caps();
  EXPECT_EQ(caps.ops >> DTRUN_OP_COUNT, 0u);
  EXPECT_EQ(caps.dtypes >> DTRUN_DTYPE_COUNT, 0u);
  EXPECT_EQ(caps.reduces >> DTRUN_REDUCE_COUNT, 0u);
  for (const std::uint64_t mask : {caps.ops, caps.dtypes, caps.reduces}) EXPECT_EQ(mask & 1, 0u);
}

// Core keeps away what the masks leave out and what has no meaning. A pair between them that the backend
// lacks has to be refused before anything is sent: one rank asks alone, and the others go on.
void WhatIsOfferedWorksAndTheRestIsRefused(const Subject& subject) {
  const dtrun_backend_caps caps = subject.Caps();
  subject.Play(2, [&](Rank& rank) {
    for (const TypeInfo& type : Types()) {
      for (std::int32_t reduce = 1; reduce < DTRUN_REDUCE_COUNT; ++reduce) {
        if (!Has(caps.dtypes, type.dtype) || !Has(caps.reduces, reduce) || !HasMeaning(type, reduce))
          continue;
        if (subject.Reduces(caps, type.dtype, reduce)) {
          Attempt(rank, {DTRUN_ALLREDUCE, type, reduce, 5});
          continue;
        }
        SCOPED_TRACE("type " + std::to_string(type.dtype) + ", reduction " + std::to_string(reduce));
        Buffer data(64);
        dtrun_op op = AllreduceOp(data.data(), data.data(), 1, type.dtype, reduce);
        op.scale = 1;
        Outcome outcome;
        EXPECT_EQ(rank.Start(op, &outcome), nullptr) << "was accepted";
        EXPECT_EQ(outcome.code, DTRUN_UNSUPPORTED) << outcome;
        EXPECT_NE(outcome.text, "");
      }
    }
    EXPECT_TRUE(rank.Barrier().ok());
  });
}

void EveryOfferedOperationWorks(const Subject& subject) {
  const dtrun_backend_caps caps = subject.Caps();
  subject.Play(2, [&](Rank& rank) {
    for (std::int32_t kind = 1; kind < DTRUN_OP_COUNT; ++kind) {
      if (kind == DTRUN_BARRIER || kind == DTRUN_SEND || kind == DTRUN_RECV || !Has(caps.ops, kind)) continue;
      Attempt(rank, {kind, TypeOf(DTRUN_FLOAT32), DTRUN_SUM, 5});
    }
    EXPECT_TRUE(rank.Barrier().ok());
  });
}

}  // namespace

void AddCapabilityCases(const BackendUnderTest& backend) {
  AddCase("Capabilities", "AreKnownValues", backend, MasksHoldKnownValuesOnly);
  AddCase("Capabilities", "AgreeWithWhatTypesAndReductionsDo", backend,
          WhatIsOfferedWorksAndTheRestIsRefused);
  AddCase("Capabilities", "AgreeWithWhatOperationsDo", backend, EveryOfferedOperationWorks);
}

}  // namespace dtrun::conformance
