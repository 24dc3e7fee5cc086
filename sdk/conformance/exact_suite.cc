// Results that have to be exact, with numbers that use all bits of their type and vectors that end anywhere
// in a processor's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "suite.h"
#include "trial.h"

namespace dtrun::conformance {
namespace {

constexpr int kRanks = 3;
constexpr std::uint64_t kFirstCount = 17, kLastCount = 32;  // one vector, and every rest of a second one

// The same on all ranks: any bits for integers, any finite number for floats. Every third integer differs
// from those of the other ranks in its lowest bits alone.
template <class T>
std::vector<T> Drawn(std::uint64_t count, int rank) {
  std::mt19937_64 draw(static_cast<std::uint64_t>(rank) * 1000 + count), common(count);
  constexpr std::uint64_t kLowest = 7;
  std::vector<T> numbers(count);
  for (T& number : numbers) {
    if constexpr (std::is_integral_v<T>) {
      const std::uint64_t any = draw(), near = (common() & ~kLowest) | (any & kLowest);
      number = static_cast<T>((&number - numbers.data()) % 3 == 2 ? near : any);
    } else {
      using Limits = std::numeric_limits<T>;
      const T unit = static_cast<T>(1 + static_cast<double>(draw() >> 12) * 0x1p-52);
      const int exponent =
          Limits::min_exponent - 5 + static_cast<int>(draw() % (Limits::max_exponent - Limits::min_exponent));
      number = std::ldexp(draw() % 2 == 0 ? unit : -unit, exponent);  // some are subnormal
    }
  }
  return numbers;
}

// As types.h says; integers wrap.
template <class T>
T Combined(std::int32_t reduce, T a, T b) {
  if (reduce == DTRUN_MIN) return std::min(a, b);
  if (reduce == DTRUN_MAX) return std::max(a, b);
  if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    switch (reduce) {
      case DTRUN_SUM: return static_cast<T>(x + y);
      case DTRUN_PROD: return static_cast<T>(x * y);
      case DTRUN_BAND: return static_cast<T>(x & y);
      case DTRUN_BOR: return static_cast<T>(x | y);
      case DTRUN_BXOR: return static_cast<T>(x ^ y);
      case DTRUN_LAND: return a != 0 && b != 0 ? 1 : 0;
      default: return a != 0 || b != 0 ? 1 : 0;
    }
  }
  return a;
}

// The same for the other reductions: a reduce to rank 1, and of each rank its part.
template <class T>
void TryOthers(Rank& rank, const dtrun_backend_caps& caps, const TypeInfo& type, const ReduceInfo& reduce) {
  constexpr std::uint64_t kPart = 11;
  const std::uint64_t all = kPart * static_cast<std::uint64_t>(rank.size());
  std::vector<T> want = Drawn<T>(all, 0);
  const std::vector<T> own = Drawn<T>(all, rank.rank());
  for (int other = 1; other < rank.size(); ++other) {
    const std::vector<T> theirs = Drawn<T>(all, other);
    for (std::uint64_t i = 0; i < all; ++i) want[i] = Combined(reduce.reduce, want[i], theirs[i]);
  }
  const std::vector<std::uint64_t> counts(static_cast<std::size_t>(rank.size()), kPart);
  for (const std::int32_t kind : {DTRUN_REDUCE, DTRUN_REDUCE_SCATTER, DTRUN_REDUCE_SCATTERV}) {
    if (!Has(caps.ops, kind)) continue;
    const bool rooted = kind == DTRUN_REDUCE;
    std::vector<T> got(rooted ? all : kPart);
    dtrun_op op = AllreduceOp(own.data(), got.data(), kind == DTRUN_REDUCE_SCATTER ? kPart : all, type.dtype,
                              reduce.reduce);
    op.kind = kind;
    if (rooted) op.root = 1;
    if (rooted && rank.rank() != 1) op.recv = nullptr;
    if (kind == DTRUN_REDUCE_SCATTERV) op.recv_counts = counts.data();
    const Outcome outcome = rank.Do(op);
    ASSERT_TRUE(outcome.ok()) << outcome;
    if (rooted && rank.rank() != 1) continue;
    const std::uint64_t first = rooted ? 0 : kPart * static_cast<std::uint64_t>(rank.rank());
    for (std::uint64_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(std::memcmp(&got[i], &want[first + i], sizeof(T)), 0)
          << KindName(kind) << ", " << reduce.name << " of " << type.name << ", element " << i << " on rank "
          << rank.rank() << ": " << +got[i] << ", not " << +want[first + i];
    }
  }
}

template <class T>
void TryType(Rank& rank, const TypeInfo& type, std::int32_t reduce, const char* name) {
  for (std::uint64_t count = kFirstCount; count <= kLastCount; ++count) {
    std::vector<T> want = Drawn<T>(count, 0), own = Drawn<T>(count, rank.rank()), got(count);
    for (int other = 1; other < rank.size(); ++other) {
      const std::vector<T> theirs = Drawn<T>(count, other);
      for (std::uint64_t i = 0; i < count; ++i) want[i] = Combined(reduce, want[i], theirs[i]);
    }
    const Outcome outcome = rank.Do(AllreduceOp(own.data(), got.data(), count, type.dtype, reduce));
    ASSERT_TRUE(outcome.ok()) << outcome;
    for (std::uint64_t i = 0; i < count; ++i) {
      ASSERT_EQ(std::memcmp(&got[i], &want[i], sizeof(T)), 0)
          << name << " of " << count << " " << type.name << ", element " << i << " on rank " << rank.rank()
          << ": " << +got[i] << ", not " << +want[i];
    }
  }
}

template <class T>
void TryReductions(Rank& rank, const dtrun_backend_caps& caps, std::int32_t dtype) {
  const TypeInfo& type = TypeOf(dtype);
  for (const ReduceInfo& reduce : Reduces()) {
    const bool exact = std::is_integral_v<T> ? reduce.reduce != DTRUN_AVG && reduce.reduce != DTRUN_PREMUL_SUM
                                             : reduce.reduce == DTRUN_MIN || reduce.reduce == DTRUN_MAX;
    if (!exact || !rank.subject().Reduces(caps, dtype, reduce.reduce)) continue;
    TryType<T>(rank, type, reduce.reduce, reduce.name);
    TryOthers<T>(rank, caps, type, reduce);
  }
}

void ReductionsAreExact(const Subject& subject) {
  const dtrun_backend_caps caps = subject.Caps();
  if (!Has(caps.ops, DTRUN_ALLREDUCE)) GTEST_SKIP() << "the backend has no allreduce";
  subject.Play(kRanks, [&](Rank& rank) {
    TryReductions<std::int8_t>(rank, caps, DTRUN_INT8);
    TryReductions<std::uint8_t>(rank, caps, DTRUN_UINT8);
    TryReductions<std::int16_t>(rank, caps, DTRUN_INT16);
    TryReductions<std::uint16_t>(rank, caps, DTRUN_UINT16);
    TryReductions<std::int32_t>(rank, caps, DTRUN_INT32);
    TryReductions<std::uint32_t>(rank, caps, DTRUN_UINT32);
    TryReductions<std::int64_t>(rank, caps, DTRUN_INT64);
    TryReductions<std::uint64_t>(rank, caps, DTRUN_UINT64);
    TryReductions<float>(rank, caps, DTRUN_FLOAT32);
    TryReductions<double>(rank, caps, DTRUN_FLOAT64);
  });
}

// NaN with bits of its own, negative zero, subnormal numbers, infinity, and any other bits.
template <class Bits>
std::vector<Bits> StrangeBits(std::uint64_t count, int rank) {
  std::vector<Bits> bits = Drawn<Bits>(count, rank);
  constexpr int kMantissa = sizeof(Bits) == 4 ? 23 : 52;
  constexpr Bits kInfinity = ((Bits{1} << (sizeof(Bits) * 8 - 1 - kMantissa)) - 1) << kMantissa;
  const Bits strange[] = {kInfinity | 5, Bits{1} << (sizeof(Bits) * 8 - 1), 1, kInfinity,
                          kInfinity | (Bits{1} << (kMantissa - 1)) | 77};
  std::copy(std::begin(strange), std::end(strange), bits.begin());
  return bits;
}

template <class Bits>
void TryMoves(Rank& rank, const dtrun_backend_caps& caps, std::int32_t dtype) {
  constexpr std::uint64_t kCount = 37;
  const char* const name = TypeOf(dtype).name;
  if (Has(caps.ops, DTRUN_BROADCAST)) {
    std::vector<Bits> data = StrangeBits<Bits>(kCount, rank.rank());
    dtrun_op op = MakeOp(DTRUN_BROADCAST);
    op.send = op.recv = data.data();
    op.count = kCount;
    op.dtype = dtype;
    op.root = 1;
    EXPECT_TRUE(rank.Do(op).ok());
    EXPECT_EQ(data, StrangeBits<Bits>(kCount, 1)) << "bits of " << name << " that were broadcast";
  }
  if (Has(caps.ops, DTRUN_ALLGATHER)) {
    const std::vector<Bits> own = StrangeBits<Bits>(kCount, rank.rank());
    std::vector<Bits> got(kCount * kRanks), want;
    for (int other = 0; other < kRanks; ++other) {
      const std::vector<Bits> theirs = StrangeBits<Bits>(kCount, other);
      want.insert(want.end(), theirs.begin(), theirs.end());
    }
    dtrun_op op = MakeOp(DTRUN_ALLGATHER);
    op.send = own.data();
    op.recv = got.data();
    op.count = kCount;
    op.dtype = dtype;
    EXPECT_TRUE(rank.Do(op).ok());
    EXPECT_EQ(got, want) << "bits of " << name << " that were gathered";
  }
  if (rank.rank() < 2) {
    std::vector<Bits> data = StrangeBits<Bits>(kCount, rank.rank());
    const Outcome outcome = rank.rank() == 0 ? rank.Do(SendOp(data.data(), kCount, dtype, 1, 0))
                                             : rank.Do(RecvOp(data.data(), kCount, dtype, 0, 0));
    EXPECT_TRUE(outcome.ok()) << outcome;
    EXPECT_EQ(data, StrangeBits<Bits>(kCount, 0)) << "bits of " << name << " that were sent";
  }
}

// Of the moves with a part for each rank: alltoall, gather to rank 1, scatter from it, and their forms with
// counts.
template <class Bits>
void TryParts(Rank& rank, const dtrun_backend_caps& caps, std::int32_t dtype) {
  constexpr std::uint64_t kPart = 37;
  const std::vector<std::uint64_t> counts(kRanks, kPart);
  const auto part = [](int from, int to) { return StrangeBits<Bits>(kPart, from * kRanks + to); };
  for (const std::int32_t kind : {DTRUN_ALLTOALL, DTRUN_ALLTOALLV, DTRUN_GATHER, DTRUN_GATHERV, DTRUN_SCATTER,
                                  DTRUN_SCATTERV, DTRUN_ALLGATHERV}) {
    if (!Has(caps.ops, kind)) continue;
    const bool gathers = kind == DTRUN_GATHER || kind == DTRUN_GATHERV;
    const bool scatters = kind == DTRUN_SCATTER || kind == DTRUN_SCATTERV;
    const bool alltoall = kind == DTRUN_ALLTOALL || kind == DTRUN_ALLTOALLV, root = rank.rank() == 1;
    std::vector<Bits> sent, got, want;
    for (int to = 0; to < (alltoall || (scatters && root) ? kRanks : scatters ? 0 : 1); ++to) {
      const std::vector<Bits> one = part(rank.rank(), to);
      sent.insert(sent.end(), one.begin(), one.end());
    }
    const bool receives_all = alltoall || kind == DTRUN_ALLGATHERV || (gathers && root);
    for (int from = 0; from < (receives_all ? kRanks : 0); ++from) {
      const std::vector<Bits> one = part(from, alltoall ? rank.rank() : 0);
      want.insert(want.end(), one.begin(), one.end());
    }
    if (scatters) want = part(1, rank.rank());
    got.resize(want.size());
    dtrun_op op = MakeOp(kind);
    op.send = sent.empty() ? nullptr : sent.data();
    op.recv = got.empty() ? nullptr : got.data();
    op.count = kind == DTRUN_ALLTOALLV || kind == DTRUN_ALLGATHERV ? kPart * kRanks : kPart;
    op.dtype = dtype;
    if (gathers || scatters) op.root = 1;
    if (kind == DTRUN_ALLTOALLV || (kind == DTRUN_SCATTERV && root)) op.send_counts = counts.data();
    if (kind == DTRUN_ALLTOALLV || kind == DTRUN_ALLGATHERV || (kind == DTRUN_GATHERV && root))
      op.recv_counts = counts.data();
    const Outcome outcome = rank.Do(op);
    ASSERT_TRUE(outcome.ok()) << KindName(kind) << ": " << outcome;
    EXPECT_EQ(got, want) << "bits of " << TypeOf(dtype).name << " by " << KindName(kind);
  }
}

void MovesKeepEveryBit(const Subject& subject) {
  const dtrun_backend_caps caps = subject.Caps();
  subject.Play(kRanks, [&](Rank& rank) {
    if (Has(caps.dtypes, DTRUN_FLOAT32)) TryMoves<std::uint32_t>(rank, caps, DTRUN_FLOAT32);
    if (Has(caps.dtypes, DTRUN_FLOAT64)) TryMoves<std::uint64_t>(rank, caps, DTRUN_FLOAT64);
    if (Has(caps.dtypes, DTRUN_FLOAT32)) TryParts<std::uint32_t>(rank, caps, DTRUN_FLOAT32);
    if (Has(caps.dtypes, DTRUN_FLOAT64)) TryParts<std::uint64_t>(rank, caps, DTRUN_FLOAT64);
  });
}

}  // namespace

void AddExactCases(const BackendUnderTest& backend) {
  AddCase("Collectives", "ReductionsAreExact", "C2, C4", backend, ReductionsAreExact);
  AddCase("Collectives", "MovesKeepEveryBit", "C2", backend, MovesKeepEveryBit);
}

}  // namespace dtrun::conformance
