// Every collective against a reference: element types, reductions, sizes, placements.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "suite.h"
#include "values.h"

namespace dtrun::conformance {
namespace {

constexpr std::uint64_t kOdd = 1003;
// Elements of a vector that is several of any sensible segment, and no multiple of anything.
constexpr std::uint64_t kLarge = 1'600'003;

// One call with its buffers.
struct Trial {
  TypeInfo type;
  ReduceInfo reduce;
  std::uint64_t count;
  bool in_place;
};

std::string Name(const Trial& trial) {
  return std::string(trial.type.name) + " " + trial.reduce.name + " of " + std::to_string(trial.count) +
         (trial.in_place ? " in place" : "");
}

bool Allowed(const Trial& trial) { return trial.reduce.reduce != DTRUN_AVG || trial.type.floating; }

using TryOne = void (*)(Rank&, const Trial&);

// Every type and reduction at small sizes. At a large one: float32 with every reduction, and
// between two ranks also the sum of every type.
void TryReductions(const Subject& subject, int size, std::uint64_t large_count, TryOne attempt) {
  subject.Play(size, [&](Rank& rank) {
    for (const TypeInfo& type : Types()) {
      for (const ReduceInfo& reduce : Reduces()) {
        for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, kOdd}) {
          for (const bool in_place : {false, true}) {
            const Trial trial{type, reduce, count, in_place};
            if (Allowed(trial)) attempt(rank, trial);
          }
        }
        const bool large = type.dtype == DTRUN_FLOAT32 || (size == 2 && reduce.reduce == DTRUN_SUM);
        const Trial trial{type, reduce, large_count, reduce.reduce == DTRUN_SUM};
        if (large) attempt(rank, trial);
      }
    }
  });
}

void TryMoves(const Subject& subject, int size, TryOne attempt) {
  subject.Play(size, [&](Rank& rank) {
    for (const TypeInfo& type : Types()) {
      for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, kOdd, kLarge / 8}) {
        for (const bool in_place : {false, true}) attempt(rank, {type, Reduces()[0], count, in_place});
      }
    }
  });
}

void TryAllreduce(Rank& rank, const Trial& trial) {
  const Buffer send = Filled(trial.type, trial.count, [&](auto i) { return Value(rank.rank(), i); });
  Buffer recv = trial.in_place ? send : Buffer(send.size());
  const Outcome outcome = rank.Do(AllreduceOp(trial.in_place ? recv.data() : send.data(), recv.data(),
                                              trial.count, trial.type.dtype, trial.reduce.reduce));
  EXPECT_TRUE(outcome.ok()) << Name(trial) << ": " << outcome;
  EXPECT_EQ(Difference(
                trial.type, recv.data(), trial.count,
                [&](auto i) { return Reduced(trial.reduce.reduce, rank.size(), i); },
                trial.reduce.reduce == DTRUN_AVG),
            "")
      << Name(trial) << " on rank " << rank.rank();
}

void TryReduceScatter(Rank& rank, const Trial& trial) {
  const auto size = static_cast<std::uint64_t>(rank.size());
  const auto first = static_cast<std::uint64_t>(rank.rank()) * trial.count;
  Buffer send = Filled(trial.type, trial.count * size, [&](auto i) { return Value(rank.rank(), i); });
  Buffer other(trial.count * trial.type.width + 1);
  unsigned char* const recv = trial.in_place ? send.data() + first * trial.type.width : other.data();
  dtrun_op op = AllreduceOp(send.data(), recv, trial.count, trial.type.dtype, trial.reduce.reduce);
  op.kind = DTRUN_REDUCE_SCATTER;
  const Outcome outcome = rank.Do(op);
  EXPECT_TRUE(outcome.ok()) << Name(trial) << ": " << outcome;
  EXPECT_EQ(Difference(
                trial.type, recv, trial.count,
                [&](auto i) { return Reduced(trial.reduce.reduce, rank.size(), first + i); },
                trial.reduce.reduce == DTRUN_AVG),
            "")
      << Name(trial) << " on rank " << rank.rank();
}

void TryAllgather(Rank& rank, const Trial& trial) {
  const auto size = static_cast<std::uint64_t>(rank.size());
  const Buffer own = Filled(trial.type, trial.count, [&](auto i) { return Value(rank.rank(), i); });
  Buffer recv(trial.count * size * trial.type.width + 1);
  unsigned char* const place = recv.data() + static_cast<std::uint64_t>(rank.rank()) * (own.size() - 1);
  if (trial.in_place) std::memcpy(place, own.data(), own.size() - 1);
  dtrun_op op =
      AllreduceOp(trial.in_place ? place : own.data(), recv.data(), trial.count, trial.type.dtype, 0);
  op.kind = DTRUN_ALLGATHER;
  const Outcome outcome = rank.Do(op);
  EXPECT_TRUE(outcome.ok()) << Name(trial) << ": " << outcome;
  for (int from = 0; from < rank.size(); ++from) {
    EXPECT_EQ(Difference(trial.type, recv.data() + static_cast<std::uint64_t>(from) * (own.size() - 1),
                         trial.count, [&](auto i) { return Value(from, i); }),
              "")
        << Name(trial) << " on rank " << rank.rank() << " from rank " << from;
  }
}

// `in_place` has no meaning here; it picks another root instead.
void TryBroadcast(Rank& rank, const Trial& trial) {
  const int root = trial.in_place ? rank.size() - 1 : 0;
  Buffer data = Filled(trial.type, trial.count, [&](auto i) { return Value(rank.rank(), i); });
  dtrun_op op = AllreduceOp(nullptr, data.data(), trial.count, trial.type.dtype, 0);
  op.kind = DTRUN_BROADCAST;
  op.root = root;
  const Outcome outcome = rank.Do(op);
  EXPECT_TRUE(outcome.ok()) << Name(trial) << ": " << outcome;
  EXPECT_EQ(Difference(trial.type, data.data(), trial.count, [&](auto i) { return Value(root, i); }), "")
      << Name(trial) << " on rank " << rank.rank();
}

// Nobody leaves a barrier before all have entered it.
void TryBarriers(const Subject& subject, int size) {
  std::atomic<int> entered{0};
  subject.Play(size, [&](Rank& rank) {
    for (int round = 1; round <= 50; ++round) {
      ++entered;
      const Outcome outcome = rank.Barrier();
      ASSERT_TRUE(outcome.ok()) << outcome;
      EXPECT_GE(entered.load(), round * size);
    }
  });
}

void TryIntegerWrap(Rank& rank, std::int32_t reduce, unsigned char each, double expected) {
  Buffer data = Filled(TypeOf(DTRUN_UINT8), 40, [&](auto) { return each; });
  EXPECT_TRUE(rank.Do(AllreduceOp(data.data(), data.data(), 40, DTRUN_UINT8, reduce)).ok());
  EXPECT_EQ(Difference(TypeOf(DTRUN_UINT8), data.data(), 40, [&](auto) { return expected; }), "");
}

// 256 + 1 + 1 is 258 when summed in float32 and rounded once; rounding each step gives 256.
void TryWideSums(Rank& rank) {
  for (const std::uint64_t count : {std::uint64_t{3}, std::uint64_t{200'001}}) {
    Buffer data = Filled(TypeOf(DTRUN_BFLOAT16), count, [&](auto) { return rank.rank() == 0 ? 256.0 : 1.0; });
    EXPECT_TRUE(rank.Do(AllreduceOp(data.data(), data.data(), count, DTRUN_BFLOAT16, DTRUN_SUM)).ok());
    EXPECT_EQ(Difference(TypeOf(DTRUN_BFLOAT16), data.data(), count, [](auto) { return 258.0; }), "");
  }
}

}  // namespace

void AddCollectiveCases(const BackendUnderTest& backend) {
  for (const int size : backend.worlds) {
    const std::string world = "World" + std::to_string(size);
    const auto add = [&](const std::string& name, const Body& body) {
      AddCase("Collectives", name + world, backend, body);
    };
    add("AllreduceIn", [=](const Subject& subject) { TryReductions(subject, size, kLarge, TryAllreduce); });
    add("ReduceScatterIn", [=](const Subject& subject) {
      TryReductions(subject, size, kLarge / static_cast<std::uint64_t>(size), TryReduceScatter);
    });
    add("AllgatherIn", [=](const Subject& subject) { TryMoves(subject, size, TryAllgather); });
    add("BroadcastIn", [=](const Subject& subject) { TryMoves(subject, size, TryBroadcast); });
    add("BarrierIn", [=](const Subject& subject) { TryBarriers(subject, size); });
  }
  AddCase("Collectives", "IntegerSumsAndProductsWrap", backend, [](const Subject& subject) {
    subject.Play(2, [](Rank& rank) {
      TryIntegerWrap(rank, DTRUN_SUM, 200, 144);
      TryIntegerWrap(rank, DTRUN_PROD, 20, 144);
    });
  });
  AddCase("Collectives", "SixteenBitSumsAreAccumulatedInFloat32", backend,
          [](const Subject& subject) { subject.Play(3, [](Rank& rank) { TryWideSums(rank); }); });
}

}  // namespace dtrun::conformance
