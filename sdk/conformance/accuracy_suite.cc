// How far results of floating-point numbers may be off, and that all ranks get the same ones.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "suite.h"
#include "trial.h"

namespace dtrun::conformance {
namespace {

constexpr std::uint64_t kSomeElements = 1003;
// Elements of a vector that is several of any sensible segment, and no multiple of anything.
constexpr std::uint64_t kManyElements = 70'003;

template <class T>
struct Parts {  // of a complex number, or a number itself
  using Real = T;
  static constexpr int kCount = 1;
};
template <class T>
struct Parts<std::complex<T>> {
  using Real = T;
  static constexpr int kCount = 2;
};

template <class T>
long double Part(const T& value, int part) {
  if constexpr (Parts<T>::kCount == 1)
    return static_cast<long double>(value);
  else
    return part == 0 ? value.real() : value.imag();
}

// Numbers with all their bits, in which an accumulator of fewer shows.
template <class T>
std::vector<T> WholeNumbers(std::uint64_t count, int rank) {
  std::vector<T> numbers(count);
  std::mt19937_64 draw(static_cast<std::uint64_t>(rank) + 1);
  const auto next = [&] {
    const double unit = std::ldexp(static_cast<double>(draw() >> 11), -53);
    return static_cast<typename Parts<T>::Real>(std::ldexp(unit - 0.25, static_cast<int>(draw() % 8)));
  };
  for (T& number : numbers) {
    if constexpr (Parts<T>::kCount == 1) {
      number = next();
    } else {
      const auto real = next();
      number = T(real, next());
    }
  }
  return numbers;
}

// What the elements combine to, and the sum or the product of their absolute values.
struct Exact {
  std::complex<long double> value;
  long double magnitude[2];  // of each part
};

template <class T>
Exact Combined(const std::vector<std::vector<T>>& all, std::uint64_t index, std::int32_t reduce) {
  const bool product = reduce == DTRUN_PROD;
  Exact exact = {product ? 1 : 0, {product ? 1.0L : 0.0L, product ? 1.0L : 0.0L}};
  for (const std::vector<T>& one : all) {
    const std::complex<long double> value(Part(one[index], 0),
                                          Parts<T>::kCount == 2 ? Part(one[index], 1) : 0);
    exact.value = product ? exact.value * value : exact.value + value;
    for (int part = 0; part < 2; ++part) {
      if (product)
        exact.magnitude[part] *= std::abs(value);
      else
        exact.magnitude[part] += std::fabs(part == 0 ? value.real() : value.imag());
    }
  }
  if (reduce == DTRUN_AVG) {
    const auto ranks = static_cast<long double>(all.size());
    exact.value /= ranks;
    for (long double& magnitude : exact.magnitude) magnitude /= ranks;
  }
  return exact;
}

const char* NameOf(std::int32_t reduce) {
  for (const ReduceInfo& info : Reduces())
    if (info.reduce == reduce) return info.name;
  return "";
}

template <class T>
void TryAccuracy(Rank& rank, std::int32_t kind, std::int32_t dtype, std::int32_t reduce,
                 std::uint64_t count) {
  const auto ranks = static_cast<std::uint64_t>(rank.size());
  const std::uint64_t sent = kind == DTRUN_REDUCE_SCATTER ? count * ranks : count;
  const std::uint64_t first =
      kind == DTRUN_REDUCE_SCATTER ? count * static_cast<std::uint64_t>(rank.rank()) : 0;
  std::vector<std::vector<T>> all;
  for (int other = 0; other < rank.size(); ++other) all.push_back(WholeNumbers<T>(sent, other));
  std::vector<T> got(count);
  dtrun_op op =
      AllreduceOp(all[static_cast<std::size_t>(rank.rank())].data(), got.data(), count, dtype, reduce);
  op.kind = kind;
  if (kind == DTRUN_REDUCE) op.root = 1;
  if (kind == DTRUN_REDUCE && rank.rank() != 1) op.recv = nullptr;
  const Outcome outcome = rank.Do(op);
  ASSERT_TRUE(outcome.ok()) << outcome;
  if (op.recv == nullptr) return;
  const long double tolerance = static_cast<long double>(reduce == DTRUN_PROD ? 2 * ranks : ranks) *
                                std::numeric_limits<typename Parts<T>::Real>::epsilon();
  for (std::uint64_t i = 0; i < count; ++i) {
    const Exact exact = Combined(all, first + i, reduce);
    for (int part = 0; part < Parts<T>::kCount; ++part) {
      const long double want = part == 0 ? exact.value.real() : exact.value.imag();
      ASSERT_LE(std::fabs(Part(got[i], part) - want), tolerance * exact.magnitude[part])
          << KindName(kind) << ", " << NameOf(reduce) << " of " << count << " " << TypeOf(dtype).name
          << ", element " << i << " of rank " << rank.rank()
          << " is not accurate (C10); or declare DTRUN_CAP_LOSSY";
    }
  }
}

// Scales that float32 does not have.
double ExactScale(int rank) { return 0.6 + 0.1 * rank; }

void TryScaledSums(Rank& rank) {
  constexpr std::uint64_t kCount = 37;
  std::vector<std::vector<double>> all;
  for (int other = 0; other < rank.size(); ++other) all.push_back(WholeNumbers<double>(kCount, other));
  std::vector<double> got(kCount);
  dtrun_op op = AllreduceOp(all[static_cast<std::size_t>(rank.rank())].data(), got.data(), kCount,
                            DTRUN_FLOAT64, DTRUN_PREMUL_SUM);
  op.scale = ExactScale(rank.rank());
  const Outcome outcome = rank.Do(op);
  ASSERT_TRUE(outcome.ok()) << outcome;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    long double sum = 0, magnitudes = 0;
    for (int other = 0; other < rank.size(); ++other) {
      const long double part =
          static_cast<long double>(ExactScale(other)) * all[static_cast<std::size_t>(other)][i];
      sum += part;
      magnitudes += std::fabs(part);
    }
    // One rounding more for each product.
    const long double bound = 2 * rank.size() * std::numeric_limits<double>::epsilon() * magnitudes;
    ASSERT_LE(std::fabs(got[i] - sum), bound)
        << "element " << i << " of a premul-sum of float64 is not accurate (C8): " << got[i];
  }
}

void ResultsAreAccurate(const Subject& subject, std::int32_t reduce) {
  const dtrun_backend_caps caps = subject.Caps();
  if (subject.SumsAreLossy()) GTEST_SKIP() << "the backend says that its sums are lossy";
  subject.Play(3, [&](Rank& rank) {
    for (const std::int32_t kind : {DTRUN_ALLREDUCE, DTRUN_REDUCE_SCATTER, DTRUN_REDUCE}) {
      for (const std::uint64_t count : {std::uint64_t{1}, kSomeElements, kManyElements}) {
        const auto can = [&](std::int32_t dtype) {
          return Has(caps.ops, kind) && subject.Reduces(caps, dtype, reduce);
        };
        if (can(DTRUN_FLOAT32)) TryAccuracy<float>(rank, kind, DTRUN_FLOAT32, reduce, count);
        if (can(DTRUN_FLOAT64)) TryAccuracy<double>(rank, kind, DTRUN_FLOAT64, reduce, count);
        if (can(DTRUN_COMPLEX64))
          TryAccuracy<std::complex<float>>(rank, kind, DTRUN_COMPLEX64, reduce, count);
        if (can(DTRUN_COMPLEX128))
          TryAccuracy<std::complex<double>>(rank, kind, DTRUN_COMPLEX128, reduce, count);
      }
    }
    if (reduce == DTRUN_SUM && Has(caps.ops, DTRUN_ALLREDUCE) &&
        subject.Reduces(caps, DTRUN_FLOAT64, DTRUN_PREMUL_SUM))
      TryScaledSums(rank);
  });
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

// Sums of these overflow float16, averages do not.
void AveragesDoNotOverflow(const Subject& subject) {
  if (!subject.Reduces(subject.Caps(), DTRUN_FLOAT16, DTRUN_AVG)) GTEST_SKIP() << "no average of float16";
  subject.Play(3, [](Rank& rank) {
    constexpr std::uint16_t k49152 = 0x7a00;
    std::vector<std::uint16_t> data(kSomeElements, k49152);
    EXPECT_TRUE(rank.Do(AllreduceOp(data.data(), data.data(), kSomeElements, DTRUN_FLOAT16, DTRUN_AVG)).ok());
    EXPECT_EQ(data, std::vector<std::uint16_t>(kSomeElements, k49152)) << "the average of three times 49152";
  });
}

// FNV-1a.
std::int64_t HashOf(const Buffer& data) {
  std::uint64_t hash = 14695981039346656037U;
  for (const unsigned char byte : data) hash = (hash ^ byte) * 1099511628211U;
  return static_cast<std::int64_t>(hash >> 1);
}

void TryOneResult(Rank& rank, const TypeInfo& type, const ReduceInfo& reduce, std::uint64_t count) {
  Buffer data(count * type.width);
  std::mt19937_64 draw(static_cast<std::uint64_t>(rank.rank()) + count);
  const auto next = [&] { return 0.5 + std::ldexp(static_cast<double>(draw() >> 11), -53); };
  for (std::uint64_t i = 0; i < count; ++i) {
    const double real = next();
    Put(type, data.data() + i * type.width,
        {type.width == 2 ? std::ldexp(std::floor(std::ldexp(real, 7)), -7) : real, next()});
  }
  const Outcome outcome = rank.Do(AllreduceOp(data.data(), data.data(), count, type.dtype, reduce.reduce));
  ASSERT_TRUE(outcome.ok()) << outcome;
  const std::string word =
      std::to_string(type.dtype) + "/" + std::to_string(reduce.reduce) + "/" + std::to_string(count);
  const std::int64_t own = HashOf(data);
  if (rank.rank() == 0) rank.Count("of 0 " + word, own);
  rank.Meet(word);
  EXPECT_EQ(rank.Count("of 0 " + word, 0), own)
      << "rank " << rank.rank() << " of " << rank.size() << " has other bits than rank 0 in the "
      << reduce.name << " of " << count << " " << type.name << " (C7); or declare DTRUN_CAP_LOSSY";
}

void AllRanksGetTheSameBits(const Subject& subject, const std::vector<int>& worlds) {
  const dtrun_backend_caps caps = subject.Caps();
  if (!Has(caps.ops, DTRUN_ALLREDUCE)) GTEST_SKIP() << "the backend has no allreduce";
  if (subject.SumsAreLossy()) GTEST_SKIP() << "the backend says that its sums are lossy";
  for (const int size : worlds) {
    subject.Play(size, [&](Rank& rank) {
      for (const TypeInfo& type : Types()) {
        for (const ReduceInfo& reduce : Reduces()) {
          const bool rounds =
              type.precision > 0 &&
              (reduce.reduce == DTRUN_SUM || reduce.reduce == DTRUN_AVG || reduce.reduce == DTRUN_PROD);
          if (!rounds || !subject.Reduces(caps, type.dtype, reduce.reduce)) continue;
          for (const std::uint64_t count : {std::uint64_t{3}, kSomeElements, kManyElements})
            TryOneResult(rank, type, reduce, count);
        }
      }
    });
  }
}

}  // namespace

void AddAccuracyCases(const BackendUnderTest& backend) {
  AddCase("Collectives", "SumsAreAccurate", "C8, C10", backend,
          [](const Subject& subject) { ResultsAreAccurate(subject, DTRUN_SUM); });
  AddCase("Collectives", "AveragesAreAccurate", "C10", backend,
          [](const Subject& subject) { ResultsAreAccurate(subject, DTRUN_AVG); });
  AddCase("Collectives", "ProductsAreAccurate", "C10", backend,
          [](const Subject& subject) { ResultsAreAccurate(subject, DTRUN_PROD); });
  AddCase("Collectives", "SixteenBitSumsAreAccumulatedInFloat32", "C5", backend,
          [](const Subject& subject) { subject.Play(3, [](Rank& rank) { TryWideSums(rank); }); });
  AddCase("Collectives", "SixteenBitAveragesDoNotOverflow", "C5", backend, AveragesDoNotOverflow);
  std::vector<int> worlds;
  for (const std::vector<int>& some : {backend.worlds, backend.more_worlds})
    for (const int size : some)
      if (size > 1) worlds.push_back(size);
  AddCase("Collectives", "GiveAllRanksTheSameBits", "C7", backend,
          [=](const Subject& subject) { AllRanksGetTheSameBits(subject, worlds); });
}

}  // namespace dtrun::conformance
