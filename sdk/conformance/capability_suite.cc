// What the backend says it can do, and what it does when asked for that: each pair is tried.
#include <gtest/gtest.h>

#include "dtrun/plugin/names.hpp"
#include "suite.h"
#include "trial.h"

namespace dtrun::conformance {
namespace {

// Bits that these headers do not know belong to a newer backend, and are none of the suite's business.
void MasksMakeSense(const Subject& subject) {
  const dtrun_backend_caps caps = subject.Caps();
  for (const std::uint64_t mask : {caps.ops, caps.dtypes, caps.reduces, caps.reduce_dtypes})
    EXPECT_EQ(mask & 1, 0u) << "bit 0 stands for no value";
  EXPECT_EQ(caps.reduce_dtypes & ~caps.dtypes, 0u) << "a type is combined and not moved";
  EXPECT_EQ(caps.reduces == 0, caps.reduce_dtypes == 0) << "reductions without types, or types without";
  EXPECT_NE(caps.device_kinds, 0u) << "no memory is moved";
}

// Core keeps away what masks and query_support leave out and what has no meaning.
void WhatIsOfferedWorks(const Subject& subject) {
  const dtrun_backend_caps caps = subject.Caps();
  subject.Play(2, [&](Rank& rank) {
    for (const TypeInfo& type : Types()) {
      for (std::int32_t reduce = 1; reduce < sdk::kReductionEnd; ++reduce) {
        if (subject.Reduces(caps, type.dtype, reduce)) Attempt(rank, {DTRUN_ALLREDUCE, type, reduce, 5});
      }
    }
    EXPECT_TRUE(rank.Barrier().ok());
  });
}

void EveryOfferedOperationWorks(const Subject& subject) {
  const dtrun_backend_caps caps = subject.Caps();
  subject.Play(2, [&](Rank& rank) {
    for (std::int32_t kind = 1; kind < sdk::kOperationEnd; ++kind) {
      if (kind == DTRUN_BARRIER || kind == DTRUN_SEND || kind == DTRUN_RECV || !Has(caps.ops, kind)) continue;
      Attempt(rank, {kind, TypeOf(DTRUN_FLOAT32), DTRUN_SUM, 5});
    }
    EXPECT_TRUE(rank.Barrier().ok());
  });
}

}  // namespace

void AddCapabilityCases(const BackendUnderTest& backend) {
  AddCase("Capabilities", "MakeSense", "B15", backend, MasksMakeSense);
  AddCase("Capabilities", "AgreeWithWhatTypesAndReductionsDo", "P2, B16", backend, WhatIsOfferedWorks);
  AddCase("Capabilities", "AgreeWithWhatOperationsDo", "P2", backend, EveryOfferedOperationWorks);
}

}  // namespace dtrun::conformance
