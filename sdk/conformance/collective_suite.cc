// Every collective against what types.h says of it: element types, reductions, sizes, placements, worlds.
#include <gtest/gtest.h>

#include <algorithm>

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
  return {Shape::kEven, Shape::kUneven, Shape::kGaps};
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

// What only moves has a type for its width alone, so every type is tried between two ranks only.
void TryMoves(const Subject& subject, std::int32_t kind, int size) {
  const dtrun_backend_caps caps = subject.Caps();
  if (!Has(caps.ops, kind)) GTEST_SKIP() << "the backend does not offer it";
  subject.Play(size, [&](Rank& rank) {
    Trials trials(rank);
    for (const TypeInfo& type : size == 2 ? TypesOf(caps) : OnePerWidth(TypesOf(caps))) {
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

// 256 + 1 + 1 is 258 when summed in float32 and rounded once; rounding each step gives 256.
void TryWideSums(Rank& rank) {
  constexpr std::uint16_t k256 = 0x4380;
  constexpr std::uint16_t k1 = 0x3f80;
  constexpr std::uint16_t k258 = 0x4381;
  for (const std::uint64_t count : {std::uint64_t{3}, std::uint64_t{200'001}}) {
    std::vector<std::uint16_t> data(count, rank.rank() == 0 ? k256 : k1);
    EXPECT_TRUE(rank.Do(AllreduceOp(data.data(), data.data(), count, DTRUN_BFLOAT16, DTRUN_SUM)).ok());
    EXPECT_EQ(data, std::vector<std::uint16_t>(count, k258));
  }
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
  AddCase("Collectives", "SixteenBitSumsAreAccumulatedInFloat32", "C5", backend,
          [](const Subject& subject) { subject.Play(3, [](Rank& rank) { TryWideSums(rank); }); });
}

}  // namespace dtrun::conformance
