// Long sequences of unlike calls, drawn by a generator that every rank seeds alike.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "dtrun/plugin/names.hpp"
#include "suite.h"
#include "trial.h"

namespace dtrun::conformance {
namespace {

constexpr int kCalls = 400;

// The same trials on every rank, and on every run with this seed: a std::mt19937 gives the same numbers
// everywhere.
class Draw {
 public:
  Draw(const Subject& subject, unsigned seed, int size)
      : size_(size), generator_(seed + static_cast<unsigned>(size)) {
    const dtrun_backend_caps caps = subject.Caps();
    for (std::int32_t kind = 1; kind < sdk::kOperationEnd; ++kind) {
      const bool moves_data = kind != DTRUN_BARRIER && kind != DTRUN_SEND && kind != DTRUN_RECV;
      if (moves_data && Has(caps.ops, kind)) kinds_.push_back(kind);
    }
    for (const TypeInfo& type : Types()) {
      if (!Has(caps.dtypes, type.dtype)) continue;
      types_.push_back(type);
      for (const ReduceInfo& reduce : Reduces()) {
        if (subject.Reduces(caps, type.dtype, reduce.reduce)) pairs_.emplace_back(type, reduce.reduce);
      }
    }
  }

  bool possible() const { return !kinds_.empty() && !types_.empty() && !pairs_.empty(); }

  Trial Next() {
    Trial trial{};
    trial.kind = kinds_[Below(kinds_.size())];
    const auto& [type, reduce] = pairs_[Below(pairs_.size())];
    trial.type = conformance::Reduces(trial.kind) ? type : types_[Below(types_.size())];
    if (conformance::Reduces(trial.kind)) trial.reduce = reduce;
    trial.count = Below(std::uint64_t{1} << Below(15));
    trial.in_place = trial.kind != DTRUN_BROADCAST && Below(2) == 0;
    trial.root = static_cast<int>(Below(static_cast<std::uint64_t>(size_)));
    const std::uint64_t shapes = !HasParts(trial.kind) ? 1 : trial.kind == DTRUN_REDUCE_SCATTERV ? 2 : 3;
    trial.shape = static_cast<Shape>(Below(shapes));
    if (Below(2) == 0) trial.flags = DTRUN_OP_BLOCKING;
    return trial;
  }

 private:
  // From 0 to bound - 1.
  std::uint64_t Below(std::uint64_t bound) { return generator_() % bound; }

  const int size_;
  std::mt19937 generator_;
  std::vector<std::int32_t> kinds_;
  std::vector<TypeInfo> types_;
  std::vector<std::pair<TypeInfo, std::int32_t>> pairs_;
};

void UnlikeCalls(const Subject& subject, unsigned seed, int size) {
  if (!Draw(subject, seed, size).possible()) GTEST_SKIP() << "the backend has no collective with data";
  subject.Play(size, [&](Rank& rank) {
    Draw draw(subject, seed, size);
    for (int call = 0; call < kCalls && !testing::Test::HasFatalFailure(); ++call) {
      SCOPED_TRACE("call " + std::to_string(call));
      Attempt(rank, draw.Next());
    }
  });
}

}  // namespace

void AddRandomCases(const BackendUnderTest& backend) {
  for (const int size : backend.worlds) {
    AddCase("Sequences", "OfUnlikeCallsInWorld" + std::to_string(size), "C1, C2, B11, B12", backend,
            [=, seed = backend.seed](const Subject& subject) { UnlikeCalls(subject, seed, size); });
  }
}

}  // namespace dtrun::conformance
