// Long sequences: of unlike calls, drawn by a generator that every rank seeds alike, and of many small ones.
#include <gtest/gtest.h>

#include <random>
#include <set>
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

constexpr std::int32_t kManyCalls = 6000;
constexpr std::int32_t kTimeIsOver = 1'000'000;  // added to a value when the sender's time is over

// Each call ends soon after the other rank made its own. A wait that lasts has missed the end. A slow backend
// makes fewer calls, which what is sent says, so that both ranks stop at the same one.
void ManySmallCalls(const Subject& subject, std::int32_t kind) {
  using Clock = std::chrono::steady_clock;
  if (!Has(subject.Caps().ops, kind)) GTEST_SKIP() << "the backend does not offer it";
  subject.Play(2, [=](Rank& rank) {
    const auto limit = Clock::now() + kPatience / 15;
    std::int32_t value = 0;
    for (std::int32_t call = 0; call < kManyCalls && value < kTimeIsOver; ++call) {
      const bool receives = kind != DTRUN_ALLREDUCE && (call + rank.rank()) % 2 == 1;
      value = receives ? -1 : Clock::now() > limit ? call + kTimeIsOver : call;
      dtrun_op op = kind == DTRUN_ALLREDUCE ? AllreduceOp(&value, &value, 1, DTRUN_INT32, DTRUN_SUM)
                    : receives              ? RecvOp(&value, 1, DTRUN_INT32, 1 - rank.rank(), 0)
                                            : SendOp(&value, 1, DTRUN_INT32, 1 - rank.rank(), 0);
      if (call % 3 == 0) op.flags = DTRUN_OP_BLOCKING;
      const auto pending = rank.Start(op);
      ASSERT_NE(pending, nullptr) << "call " << call;
      const auto start = Clock::now();
      const Outcome outcome = pending->Wait(kPatience / 4);
      ASSERT_LT(Clock::now() - start, kPatience / 8)
          << "the wait for call " << call << " lasted, " << outcome << ": its end was not noticed";
      ASSERT_TRUE(outcome.ok()) << "call " << call << ": " << outcome;
      ASSERT_EQ(value % kTimeIsOver, kind == DTRUN_ALLREDUCE ? 2 * call : call) << "of call " << call;
    }
  });
}

}  // namespace

void AddRandomCases(const BackendUnderTest& backend) {
  std::set<int> worlds(backend.worlds.begin(), backend.worlds.end());
  worlds.insert(backend.more_worlds.begin(), backend.more_worlds.end());
  for (const int size : worlds) {
    AddCase("Sequences", "OfUnlikeCallsInWorld" + std::to_string(size), "C1, C2, B11, B12", backend,
            [=, seed = backend.seed](const Subject& subject) { UnlikeCalls(subject, seed, size); });
  }
  AddCase("Sequences", "OfManySmallCalls", "C2, B8, T4", backend,
          [](const Subject& subject) { ManySmallCalls(subject, DTRUN_ALLREDUCE); });
  AddCase("Messages", "OfManySmallCallsArrive", "M1, B8, T4", backend,
          [](const Subject& subject) { ManySmallCalls(subject, DTRUN_SEND); });
}

}  // namespace dtrun::conformance
