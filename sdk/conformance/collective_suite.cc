// Every collective against what types.h says of it: element types, reductions, sizes, placements, worlds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "suite.h"
#include "trial.h"

namespace dtrun::conformance {
namespace {

constexpr std::uint64_t kOdd = 1003;
// Elements of a vector that is several of any sensible segment, and no multiple of anything.
constexpr std::uint64_t kLarge = 400'003;

constexpr std::int32_t kMoves[] = {DTRUN_BROADCAST, DTRUN_ALLGATHER, DTRUN_ALLTOALL,
                                   DTRUN_GATHER,    DTRUN_SCATTER,   DTRUN_ALLGATHERV,
                                   DTRUN_ALLTOALLV, DTRUN_GATHERV,   DTRUN_SCATTERV};
constexpr std::int32_t kReductions[] = {DTRUN_ALLREDUCE, DTRUN_REDUCE, DTRUN_REDUCE_SCATTER,
                                        DTRUN_REDUCE_SCATTERV};

bool CanPlace(std::int32_t kind) { return kind != DTRUN_BROADCAST; }

std::vector<Shape> ShapesOf(std::int32_t kind) {
  if (!HasParts(kind)) return {Shape::kEven};
  if (kind == DTRUN_REDUCE_SCATTERV) return {Shape::kEven, Shape::kUneven};  // it has no offsets
  return {Shape::kEven, Shape::kUneven, Shape::kSpread, Shape::kGaps};
}

// The roots alternate, so that each rank's turn comes.
class Trials {
 public:
  explicit Trials(Rank& rank) : rank_(rank) {}
  void Run(Trial trial) {
    if (testing::Test::HasFatalFailure()) return;  // what follows would repeat it
    if (Rooted(trial.kind)) trial.root = next_root_++ % rank_.size();
    Attempt(rank_, trial);
  }

 private:
  Rank& rank_;
  int next_root_ = 0;
};

std::vector<TypeInfo> TypesOf(const dtrun_backend_caps& caps) {
  std::vector<TypeInfo> types;
  for (const TypeInfo& type : Types()) {
    if (Has(caps.dtypes, type.dtype)) types.push_back(type);
  }
  return types;
}

// The first of each width.
std::vector<TypeInfo> OnePerWidth(const std::vector<TypeInfo>& types) {
  std::vector<TypeInfo> some;
  for (const TypeInfo& type : types) {
    const auto alike = [&](const TypeInfo& other) { return other.width == type.width; };
    if (std::none_of(some.begin(), some.end(), alike)) some.push_back(type);
  }
  return some;
}

// Every type and reduction at small sizes. At a large one: float32 with every reduction, and
// between two ranks also the sum of every type.
void TryReductions(const Subject& subject, std::int32_t kind, int size) {
  const dtrun_backend_caps caps = subject.Caps();
  if (!Has(caps.ops, kind)) GTEST_SKIP() << "the backend does not offer it";
  const std::uint64_t large =
      kind == DTRUN_ALLREDUCE || kind == DTRUN_REDUCE ? kLarge : kLarge / static_cast<std::uint64_t>(size);
  subject.Play(size, [&](Rank& rank) {
    Trials trials(rank);
    for (const TypeInfo& type : TypesOf(caps)) {
      for (const ReduceInfo& reduce : Reduces()) {
        if (!subject.Reduces(caps, type.dtype, reduce.reduce)) continue;
        const bool sum = reduce.reduce == DTRUN_SUM;
        for (const Shape shape : ShapesOf(kind)) {
          for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, kOdd}) {
            if (!sum && (count == 0 || (count == 1 && size > 4))) continue;  // keeps the suite short
            for (const bool in_place : {false, true}) {
              trials.Run({kind, type, reduce.reduce, count, in_place, 0, shape});
            }
          }
        }
        const bool at_large = (type.dtype == DTRUN_FLOAT32 && (size < 4 || sum)) || (size == 2 && sum);
        if (at_large) trials.Run({kind, type, reduce.reduce, large, sum, 0, ShapesOf(kind).back()});
      }
    }
  });
}

// What only moves has a type for its width alone, so the others of a width are tried once where there are
// more than two ranks.
void TryMoves(const Subject& subject, std::int32_t kind, int size) {
  const dtrun_backend_caps caps = subject.Caps();
  if (!Has(caps.ops, kind)) GTEST_SKIP() << "the backend does not offer it";
  subject.Play(size, [&](Rank& rank) {
    Trials trials(rank);
    const std::vector<TypeInfo> types = TypesOf(caps), usual = size == 2 ? types : OnePerWidth(types);
    for (const TypeInfo& type : types) {
      const bool is_usual =
          std::ranges::any_of(usual, [&](const auto& one) { return one.dtype == type.dtype; });
      if (!is_usual) {
        for (int root = 0; root < (Rooted(kind) ? size : 1); ++root)
          trials.Run({kind, type, DTRUN_SUM, kOdd, false, 0, Shape::kEven});
        continue;
      }
      for (const Shape shape : ShapesOf(kind)) {
        for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, kOdd}) {
          for (const bool in_place : {false, true}) {
            if (!in_place || CanPlace(kind)) trials.Run({kind, type, DTRUN_SUM, count, in_place, 0, shape});
          }
        }
        if (type.dtype == DTRUN_FLOAT32) trials.Run({kind, type, DTRUN_SUM, kLarge / 4, false, 0, shape});
      }
    }
  });
}

// No rank leaves a barrier before all have entered it.
void TryBarriers(const Subject& subject, int size) {
  subject.Play(size, [&](Rank& rank) {
    for (int round = 1; round <= 30; ++round) {
      rank.Count("entered", 1);
      const Outcome outcome = rank.Barrier();
      ASSERT_TRUE(outcome.ok()) << outcome;
      EXPECT_GE(rank.Count("entered", 0), round * size);
    }
  });
}

void TryIntegerWrap(Rank& rank, std::int32_t reduce, std::uint8_t each, std::uint8_t expected) {
  Buffer data(40, each);
  EXPECT_TRUE(rank.Do(AllreduceOp(data.data(), data.data(), data.size(), DTRUN_UINT8, reduce)).ok());
  EXPECT_EQ(data, Buffer(40, expected));
}

// Element i has a NaN on rank i % 4, so every fourth on none; the others have infinities now and then.
void TryNan(Rank& rank, const TypeInfo& type, std::int32_t reduce, bool scatters) {
  constexpr std::uint64_t kCount = 211;  // whole vectors and a rest
  const auto own = [&](std::uint64_t i, int of) {
    return i % 4 == static_cast<std::uint64_t>(of) ? std::numeric_limits<double>::quiet_NaN()
           : i % 5 == 4                            ? std::numeric_limits<double>::infinity()
                        : static_cast<double>((i + static_cast<std::uint64_t>(of)) % 3);
  };
  const std::uint64_t parts = scatters ? static_cast<std::uint64_t>(rank.size()) : 1;
  const std::uint64_t first = scatters ? kCount * static_cast<std::uint64_t>(rank.rank()) : 0;
  Buffer sent(parts * kCount * type.width), data(kCount * type.width);
  for (std::uint64_t i = 0; i < parts * kCount; ++i)
    Put(type, sent.data() + i * type.width, own(i, rank.rank()));
  dtrun_op op = AllreduceOp(sent.data(), data.data(), kCount, type.dtype, reduce);
  if (scatters) op.kind = DTRUN_REDUCE_SCATTER;
  const Outcome outcome = rank.Do(op);
  ASSERT_TRUE(outcome.ok()) << outcome;
  for (std::uint64_t i = first; i < first + kCount; ++i) {
    const bool has_nan = i % 4 < static_cast<std::uint64_t>(rank.size());
    double want = own(i, 0);
    for (int other = 1; other < rank.size(); ++other)
      want = reduce == DTRUN_MIN ? std::min(want, own(i, other)) : std::max(want, own(i, other));
    const double got = Take(type, data.data() + (i - first) * type.width).real();
    ASSERT_TRUE(has_nan ? std::isnan(got) : got == want)
        << (reduce == DTRUN_MIN ? "min of " : "max of ") << type.name << ", element " << i << ": " << got
        << (has_nan ? ", where rank " + std::to_string(i % 4) + " has NaN (C4)" : "");
  }
}

void MinAndMaxKeepNan(const Subject& subject) {
  const dtrun_backend_caps caps = subject.Caps();
  subject.Play(3, [&](Rank& rank) {
    for (const TypeInfo& type : Types()) {
      for (const std::int32_t reduce : {DTRUN_MIN, DTRUN_MAX}) {
        if (type.family != Family::kFloating || !subject.Reduces(caps, type.dtype, reduce)) continue;
        TryNan(rank, type, reduce, false);
        if (Has(caps.ops, DTRUN_REDUCE_SCATTER)) TryNan(rank, type, reduce, true);
      }
    }
  });
}

}  // namespace

void AddCollectiveCases(const BackendUnderTest& backend) {
  for (const int size : backend.worlds) {
    const std::string world = "InWorld" + std::to_string(size);
    for (const std::int32_t kind : kReductions) {
      AddCase("Collectives", KindName(kind) + world, "C2, C4, C8, B12, B14", backend,
              [=](const Subject& subject) { TryReductions(subject, kind, size); });
    }
    for (const std::int32_t kind : kMoves) {
      AddCase("Collectives", KindName(kind) + world, "C2, B12, B14", backend,
              [=](const Subject& subject) { TryMoves(subject, kind, size); });
    }
    AddCase("Collectives", "Barrier" + world, "C3", backend,
            [=](const Subject& subject) { TryBarriers(subject, size); });
  }
  AddCase("Collectives", "IntegerSumsAndProductsWrap", "C4", backend, [](const Subject& subject) {
    subject.Play(2, [](Rank& rank) {
      TryIntegerWrap(rank, DTRUN_SUM, 200, 144);
      TryIntegerWrap(rank, DTRUN_PROD, 20, 144);
    });
  });
  AddCase("Collectives", "MinAndMaxKeepNan", "C4", backend, MinAndMaxKeepNan);
}

}  // namespace dtrun::conformance
