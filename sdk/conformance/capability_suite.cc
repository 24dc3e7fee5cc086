// What the backend says it can do, and what it does when asked for that: each pair is tried.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "dtrun/plugin/names.hpp"
#include "suite.h"
#include "trial.h"
#include "values.h"

namespace dtrun::conformance {
namespace {

constexpr std::uint64_t kLeastLimit = 16u << 20;
constexpr std::uint64_t kMostTried = 256u << 20;  // of max_bytes; more needs no other code than 2 GiB do

// Bits that these headers do not know belong to a newer backend, and are none of the suite's business.
void MasksMakeSense(const Subject& subject) {
  const dtrun_backend_caps caps = subject.Caps();
  for (const std::uint64_t mask : {caps.ops, caps.dtypes, caps.reduces, caps.reduce_dtypes})
    EXPECT_EQ(mask & 1, 0u) << "bit 0 stands for no value";
  EXPECT_EQ(caps.reduce_dtypes & ~caps.dtypes, 0u) << "a type is combined and not moved";
  EXPECT_EQ(caps.reduces == 0, caps.reduce_dtypes == 0) << "reductions without types, or types without";
  EXPECT_NE(caps.device_kinds, 0u) << "no memory is moved";
  EXPECT_TRUE(caps.max_bytes == 0 || caps.max_bytes >= kLeastLimit)
      << "max_bytes is " << caps.max_bytes << ", and a limit is at least 16 MiB (B13)";
}

// The bits of dtrun_backend_caps.features that these headers know.
constexpr std::uint64_t kKnownFeatures = DTRUN_CAP_ABORT | DTRUN_CAP_ANY_SOURCE | DTRUN_CAP_LAZY_CONNECT |
                                         DTRUN_CAP_LOSSY | DTRUN_CAP_DETACHED | DTRUN_CAP_CAPTURE |
                                         DTRUN_CAP_STREAM_ORDER | DTRUN_CAP_NO_STREAM;

constexpr std::uint64_t Below(int end) { return (std::uint64_t{1} << end) - 1; }

// What the masks can say with these headers: a kind of device may have a number without a name.
constexpr std::uint64_t kNamedDevices = Below(DTRUN_DEVICE_LEVEL_ZERO + 1);
constexpr std::uint64_t kOtherDevices = Below(63) & ~Below(DTRUN_DEVICE_OTHER);

// A plugin of newer headers may have features and values that these do not know; one of these headers cannot.
void CapabilitiesAreKnown(const Subject& subject) {
  const dtrun_backend_caps caps = subject.Caps();
  EXPECT_EQ(caps.flags & DTRUN_FLAGS_MUST_UNDERSTAND, 0u) << "flags that no host understands (S6)";
  if (!subject.HasTheseHeaders()) return;
  EXPECT_EQ(caps.features & ~kKnownFeatures, 0u) << "capabilities that its headers do not have (B15)";
  const auto expect_known = [](const char* mask, std::uint64_t value, std::uint64_t known) {
    EXPECT_EQ(value & ~known, 0u) << mask
                                  << " has values that its headers do not have; list what works (B15)";
  };
  expect_known("ops", caps.ops, Below(sdk::kOperationEnd));
  expect_known("dtypes", caps.dtypes, Below(sdk::kTypeEnd));
  expect_known("reduces", caps.reduces, Below(sdk::kReductionEnd));
  expect_known("reduce_dtypes", caps.reduce_dtypes, Below(sdk::kTypeEnd));
  expect_known("device_kinds", caps.device_kinds, kNamedDevices | kOtherDevices);
  constexpr std::uint64_t kHost = 1u << DTRUN_DEVICE_HOST;
  EXPECT_TRUE((caps.device_kinds & ~kHost) == 0 || subject.plugin().device_draft != 0)
      << "it moves memory of devices, and its table has no device_draft (V13)";
}

// Also while a communicator is there.
void CapabilitiesStay(const Subject& subject) {
  constexpr int kTimes = 200;
  const dtrun_backend_caps first = subject.Caps();
  const bool sums = subject.Reduces(first, DTRUN_FLOAT32, DTRUN_SUM);
  const auto ask = [&](int from, int to) {
    for (int time = from; time < to; ++time) {
      const dtrun_backend_caps caps = subject.Caps();
      ASSERT_EQ(std::memcmp(&caps, &first, sizeof caps), 0)
          << "query_caps gives another answer at call " << time + 1;
      ASSERT_EQ(subject.Reduces(first, DTRUN_FLOAT32, DTRUN_SUM), sums)
          << "query_support gives another answer at call " << time + 1;
    }
  };
  ask(1, kTimes / 2);
  subject.Play(1, [&](Rank&) { ask(kTimes / 2, kTimes); });
}

// A message of the most bytes that it says it takes, as far as a test can have them.
void TheLargestBufferWorks(const Subject& subject) {
  const std::uint64_t limit = subject.Caps().max_bytes;
  const std::uint64_t bytes = limit == 0 ? 2 * kLeastLimit : std::min(limit, kMostTried);
  subject.Play(2, [&](Rank& rank) {
    Buffer data(bytes, static_cast<unsigned char>(rank.rank() == 0 ? 7 : 0));
    data.back() = static_cast<unsigned char>(rank.rank() == 0 ? 9 : 0);
    const Outcome outcome = rank.Do(rank.rank() == 0 ? SendOp(data.data(), bytes, DTRUN_UINT8, 1, 0)
                                                     : RecvOp(data.data(), bytes, DTRUN_UINT8, 0, 0));
    EXPECT_TRUE(outcome.ok()) << bytes << " bytes, of max_bytes " << limit << ": " << outcome;
    if (!outcome.ok()) return;
    EXPECT_TRUE(data.front() == 7 && data[bytes / 2] == 7 && data.back() == 9)
        << bytes << " bytes, of max_bytes " << limit << ", arrived in part";
  });
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
  AddCase("Capabilities", "MakeSense", "B13, B15", backend, MasksMakeSense);
  AddCase("Capabilities", "AreKnown", "B15, S6", backend, CapabilitiesAreKnown);
  AddCase("Capabilities", "StayTheSame", "B15, B16", backend, CapabilitiesStay);
  AddCase("Capabilities", "HoldForTheLargestBuffer", "B13", backend, TheLargestBufferWorks);
  AddCase("Capabilities", "AgreeWithWhatTypesAndReductionsDo", "P2, B16", backend, WhatIsOfferedWorks);
  AddCase("Capabilities", "AgreeWithWhatOperationsDo", "P2", backend, EveryOfferedOperationWorks);
}

}  // namespace dtrun::conformance
