#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "reference.h"

namespace dtrun::kernels {
namespace {

using reference::Variants;

constexpr int kTypes[] = {DTRUN_FLOAT16, DTRUN_BFLOAT16, DTRUN_FLOAT32, DTRUN_FLOAT64,   DTRUN_INT32,
                          DTRUN_INT64,   DTRUN_UINT8,    DTRUN_INT8,    DTRUN_INT16,     DTRUN_UINT16,
                          DTRUN_UINT32,  DTRUN_UINT64,   DTRUN_BOOL,    DTRUN_COMPLEX64, DTRUN_COMPLEX128};
// Around the vectors, rounds and blocks of every variant.
constexpr std::size_t kCounts[] = {0, 1, 2, 3, 7, 15, 31, 33, 63, 65, 127, 129, 257, 513, 1003, 5003};

// `count` elements that begin `skew` elements behind an aligned address.
struct Buffer {
  Buffer(std::int32_t dtype, std::size_t count, std::size_t skew = 0)
      : bytes(count * ElementBytes(dtype)), memory(bytes + skew * ElementAlignment(dtype) + 128, 0xa5) {
    void* start = memory.data();
    std::size_t space = memory.size();
    data = static_cast<unsigned char*>(std::align(64, 1, start, space)) + skew * ElementAlignment(dtype);
  }
  Buffer(const Buffer& other) = delete;
  std::size_t bytes;
  std::vector<unsigned char> memory;
  unsigned char* data;
};

// Bits of every kind: any pattern is an element of its type, also NaN, infinity, subnormals.
void FillWithBits(Buffer& buffer, std::uint64_t seed) {
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (std::size_t i = 0; i < buffer.bytes; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    buffer.data[i] = static_cast<unsigned char>(state >> 56);
  }
}

// One reduction of `sources` buffers by a variant and by the reference.
struct Trial {
  std::int32_t dtype;
  std::int32_t reduce;
  int sources;
  std::size_t count;
  std::size_t skew;
  int in_place;  // the source that is `out`, or -1
  Stores stores;

  std::string Text(const Variant& variant) const {
    return std::string(variant.name) + ", type " + std::to_string(dtype) + ", reduction " +
           std::to_string(reduce) + ", " + std::to_string(sources) + " sources of " + std::to_string(count) +
           (in_place < 0 ? "" : ", in place " + std::to_string(in_place)) +
           (skew == 0 ? "" : ", misaligned") + (stores == Stores::kStreaming ? ", streaming" : "");
  }

  void Run(const Variant& variant) const {
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::vector<const void*> pointers;
    std::vector<std::vector<unsigned char>> inputs;
    for (int s = 0; s < sources; ++s) {
      buffers.push_back(std::make_unique<Buffer>(dtype, count, skew * static_cast<std::size_t>(s + 1)));
      FillWithBits(*buffers.back(), static_cast<std::uint64_t>(s) * 1000 + dtype);
      pointers.push_back(buffers.back()->data);
      inputs.emplace_back(buffers.back()->data, buffers.back()->data + buffers.back()->bytes);
    }
    Buffer apart(dtype, count, skew);
    Buffer& out = in_place < 0 ? apart : *buffers[static_cast<std::size_t>(in_place)];
    std::vector<unsigned char> around = out.memory;
    variant.combine[dtype][reduce].reduce[stores == Stores::kStreaming ? 1 : 0](out.data, pointers.data(),
                                                                                sources, count);
    ASSERT_EQ(reference::Difference(dtype, reduce, inputs, out.data, count), "") << Text(variant);
    // Nothing else was written.
    std::copy(out.data, out.data + out.bytes, around.data() + (out.data - out.memory.data()));
    ASSERT_TRUE(out.memory == around) << Text(variant);
    for (int s = 0; s < sources; ++s) {
      if (s == in_place) continue;
      const auto index = static_cast<std::size_t>(s);
      ASSERT_TRUE(std::equal(inputs[index].begin(), inputs[index].end(), buffers[index]->data));
    }
  }
};

void ForEachPair(const std::function<void(std::int32_t dtype, std::int32_t reduce)>& visit) {
  for (const int dtype : kTypes) {
    for (int reduce = 1; reduce < sdk::kReductionEnd; ++reduce) {
      if (Supports(dtype, reduce)) visit(dtype, reduce);
      if (::testing::Test::HasFatalFailure()) return;  // one report is enough
    }
  }
}

// Two sources; one is replaced when it has been read.
void RunTrade(const Variant& variant, std::int32_t dtype, std::int32_t reduce, std::size_t count, int shared,
              bool in_place, Stores stores) {
  Buffer first(dtype, count, 1), second(dtype, count, 0), next(dtype, count, 2), apart(dtype, count, 3);
  FillWithBits(first, 1);
  FillWithBits(second, 2);
  FillWithBits(next, 3);
  Buffer* const sources[] = {&first, &second};
  const std::vector<std::vector<unsigned char>> inputs = {{first.data, first.data + first.bytes},
                                                          {second.data, second.data + second.bytes}};
  Buffer& traded = *sources[shared];
  Buffer& out = in_place ? *sources[1 - shared] : apart;
  const void* const pointers[] = {first.data, second.data};
  variant.combine[dtype][reduce].trade[stores == Stores::kStreaming ? 1 : 0](out.data, pointers, traded.data,
                                                                             next.data, count);
  const std::string text = std::string(variant.name) + ", type " + std::to_string(dtype) + ", reduction " +
                           std::to_string(reduce) + ", " + std::to_string(count) + " elements";
  ASSERT_EQ(reference::Difference(dtype, reduce, inputs, out.data, count), "") << text;
  ASSERT_TRUE(std::equal(next.data, next.data + next.bytes, traded.data)) << text;
}

TEST(Kernels, TradeCombinesAndReplacesWhatItRead) {
  for (const Variant* variant : Variants()) {
    ForEachPair([&](std::int32_t dtype, std::int32_t reduce) {
      for (const std::size_t count : kCounts) {
        for (const int shared : {0, 1}) {
          for (const bool in_place : {false, true}) {
            for (const Stores stores : {Stores::kCached, Stores::kStreaming}) {
              RunTrade(*variant, dtype, reduce, count, shared, in_place, stores);
              if (::testing::Test::HasFatalFailure()) return;
            }
          }
        }
      }
    });
  }
}

TEST(Kernels, AgreeWithTheReferenceForEveryPairAndCount) {
  for (const Variant* variant : Variants()) {
    ForEachPair([&](std::int32_t dtype, std::int32_t reduce) {
      for (const std::size_t count : kCounts) {
        for (const int sources : {1, 2, 3, 4, 5, 7}) {
          Trial{dtype, reduce, sources, count, 0, -1, Stores::kCached}.Run(*variant);
        }
      }
    });
  }
}

TEST(Kernels, MayWriteIntoAnySource) {
  for (const Variant* variant : Variants()) {
    ForEachPair([&](std::int32_t dtype, std::int32_t reduce) {
      for (const int sources : {1, 2, 3, 4, 6}) {
        for (int in_place = 0; in_place < sources; ++in_place) {
          for (const Stores stores : {Stores::kCached, Stores::kStreaming}) {
            Trial{dtype, reduce, sources, 1003, 0, in_place, stores}.Run(*variant);
          }
        }
      }
    });
  }
}

TEST(Kernels, TakeBuffersThatAreAlignedToOneElementOnly) {
  for (const Variant* variant : Variants()) {
    ForEachPair([&](std::int32_t dtype, std::int32_t reduce) {
      for (const Stores stores : {Stores::kCached, Stores::kStreaming}) {
        for (const std::size_t count : {1u, 5u, 31u, 257u, 1003u}) {
          for (const int sources : {2, 3, 5}) {
            Trial{dtype, reduce, sources, count, 1, -1, stores}.Run(*variant);
          }
        }
      }
    });
  }
}

TEST(Kernels, GiveTheSameBitsOnEveryProcessor) {
  const std::vector<const Variant*> variants = Variants();
  constexpr std::size_t kCount = 4099;
  ForEachPair([&](std::int32_t dtype, std::int32_t reduce) {
    for (const int sources : {2, 3, 6}) {
      std::vector<std::unique_ptr<Buffer>> buffers;
      std::vector<const void*> pointers;
      for (int s = 0; s < sources; ++s) {
        buffers.push_back(std::make_unique<Buffer>(dtype, kCount));
        FillWithBits(*buffers.back(), 77 * static_cast<std::uint64_t>(s) + dtype);
        pointers.push_back(buffers.back()->data);
      }
      Buffer first(dtype, kCount);
      kBaseline.combine[dtype][reduce].reduce[0](first.data, pointers.data(), sources, kCount);
      for (const Variant* variant : variants) {
        Buffer other(dtype, kCount);
        variant->combine[dtype][reduce].reduce[0](other.data, pointers.data(), sources, kCount);
        ASSERT_EQ(reference::FirstDifference(dtype, first.data, other.data, kCount), kCount)
            << variant->name << ", type " << dtype << ", reduction " << reduce;
      }
    }
  });
}

TEST(Kernels, CombineInTheOrderGiven) {
  for (const Variant* variant : Variants()) {
    const float big = 1e8f, one = 1, minus = -1e8f;
    float out = 0;
    const void* absorbed[] = {&big, &one, &minus};
    variant->combine[DTRUN_FLOAT32][DTRUN_SUM].reduce[0](&out, absorbed, 3, 1);
    EXPECT_EQ(out, 0);
    const void* kept[] = {&big, &minus, &one};
    variant->combine[DTRUN_FLOAT32][DTRUN_SUM].reduce[0](&out, kept, 3, 1);
    EXPECT_EQ(out, 1);
  }
}

TEST(Kernels, GiveNanWhenAnyRankHasOne) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Variant* variant : Variants()) {
    for (const int reduce : {DTRUN_MIN, DTRUN_MAX}) {
      for (int where = 0; where < 3; ++where) {
        std::vector<std::vector<float>> data(3, std::vector<float>(100, 1));
        data[static_cast<std::size_t>(where)].assign(100, nan);
        const void* sources[] = {data[0].data(), data[1].data(), data[2].data()};
        std::vector<float> out(100, 0);
        variant->combine[DTRUN_FLOAT32][reduce].reduce[0](out.data(), sources, 3, 100);
        for (const float value : out) ASSERT_TRUE(std::isnan(value)) << variant->name;
      }
    }
  }
}

TEST(Kernels, WrapIntegers) {
  const std::int32_t most = std::numeric_limits<std::int32_t>::max();
  const std::int32_t two = 2;
  const std::int8_t small = 100;
  for (const Variant* variant : Variants()) {
    std::int32_t out = 0;
    const void* sources[] = {&most, &two};
    variant->combine[DTRUN_INT32][DTRUN_SUM].reduce[0](&out, sources, 2, 1);
    EXPECT_EQ(out, std::numeric_limits<std::int32_t>::min() + 1);
    variant->combine[DTRUN_INT32][DTRUN_PROD].reduce[0](&out, sources, 2, 1);
    EXPECT_EQ(out, -2);
    const void* bytes[] = {&small, &small};
    std::int8_t byte = 0;
    variant->combine[DTRUN_INT8][DTRUN_PROD].reduce[0](&byte, bytes, 2, 1);
    EXPECT_EQ(byte, 16);
  }
}

TEST(Kernels, ReadAnyByteAsTruthAndWriteZeroOrOne) {
  const std::uint8_t values[] = {0, 1, 2, 255};
  for (const Variant* variant : Variants()) {
    for (const std::uint8_t a : values) {
      for (const std::uint8_t b : values) {
        const void* sources[] = {&a, &b};
        const auto combined = [&](int reduce) {
          std::uint8_t out = 9;
          variant->combine[DTRUN_BOOL][reduce].reduce[0](&out, sources, 2, 1);
          return int{out};
        };
        for (const int any : {DTRUN_SUM, DTRUN_MAX, DTRUN_BOR, DTRUN_LOR}) {
          EXPECT_EQ(combined(any), (a || b) ? 1 : 0);
        }
        for (const int all : {DTRUN_PROD, DTRUN_MIN, DTRUN_BAND, DTRUN_LAND}) {
          EXPECT_EQ(combined(all), (a && b) ? 1 : 0);
        }
        EXPECT_EQ(combined(DTRUN_BXOR), (a != 0) != (b != 0) ? 1 : 0);
      }
    }
  }
}

TEST(Kernels, SupportWhatTheTableOfTypesSays) {
  const auto has = [](int dtype, std::initializer_list<int> reduces) {
    for (int reduce = -1; reduce <= sdk::kReductionEnd; ++reduce) {
      EXPECT_EQ(Supports(dtype, reduce), std::count(reduces.begin(), reduces.end(), reduce) == 1)
          << dtype << " " << reduce;
    }
  };
  for (const int dtype : {DTRUN_FLOAT16, DTRUN_BFLOAT16, DTRUN_FLOAT32, DTRUN_FLOAT64}) {
    has(dtype, {DTRUN_SUM, DTRUN_PROD, DTRUN_MIN, DTRUN_MAX, DTRUN_AVG, DTRUN_PREMUL_SUM});
  }
  for (const int dtype : {DTRUN_INT8, DTRUN_INT16, DTRUN_INT32, DTRUN_INT64, DTRUN_UINT8, DTRUN_UINT16,
                          DTRUN_UINT32, DTRUN_UINT64, DTRUN_BOOL}) {
    has(dtype, {DTRUN_SUM, DTRUN_PROD, DTRUN_MIN, DTRUN_MAX, DTRUN_BAND, DTRUN_BOR, DTRUN_BXOR, DTRUN_LAND,
                DTRUN_LOR});
  }
  for (const int dtype : {DTRUN_COMPLEX64, DTRUN_COMPLEX128}) {
    has(dtype, {DTRUN_SUM, DTRUN_PROD, DTRUN_AVG, DTRUN_PREMUL_SUM});
  }
  for (const int dtype : {-1, 0, int{sdk::kTypeEnd}, 77}) has(dtype, {});
}

TEST(Kernels, ScaleEveryFloatingType) {
  const double factor = 1.0 / 3;
  for (const Variant* variant : Variants()) {
    for (const int dtype : kTypes) {
      if (variant->scale[dtype] == nullptr) continue;
      for (const std::size_t count : {0u, 1u, 17u, 1003u}) {
        Buffer in(dtype, count, 1);
        FillWithBits(in, 5);
        const std::vector<unsigned char> before(in.data, in.data + in.bytes);
        Buffer out(dtype, count);
        variant->scale[dtype](out.data, in.data, count, factor);
        EXPECT_EQ(reference::ScaleDifference(dtype, before.data(), out.data, count, factor), "")
            << variant->name;
        variant->scale[dtype](in.data, in.data, count, factor);
        EXPECT_EQ(reference::FirstDifference(dtype, in.data, out.data, count), count);
      }
    }
  }
}

TEST(Kernels, CopyPastTheCacheWhateverTheAlignment) {
  for (const Variant* variant : Variants()) {
    for (const std::size_t bytes : {0u, 1u, 15u, 64u, 200u, 4097u, 70001u}) {
      for (std::size_t skew = 0; skew < 70; skew += 23) {
        Buffer in(DTRUN_UINT8, bytes, 70 - skew);
        Buffer out(DTRUN_UINT8, bytes, skew);
        FillWithBits(in, bytes);
        std::vector<unsigned char> around = out.memory;
        variant->streaming_copy(out.data, in.data, bytes);
        std::copy(in.data, in.data + bytes, around.data() + (out.data - out.memory.data()));
        ASSERT_TRUE(out.memory == around) << variant->name << " " << bytes << " " << skew;
      }
    }
  }
}

TEST(Kernels, AreThoseOfTheBestVariant) {
  const Variant& best = *Variants().front();
  EXPECT_EQ(ReduceFor(DTRUN_FLOAT32, DTRUN_SUM), best.combine[DTRUN_FLOAT32][DTRUN_SUM].reduce[0]);
  EXPECT_EQ(ReduceFor(DTRUN_FLOAT32, DTRUN_SUM, Stores::kStreaming),
            best.combine[DTRUN_FLOAT32][DTRUN_SUM].reduce[1]);
  EXPECT_EQ(Variants().back(), &kBaseline);
  std::uint16_t half = 0x3c00;
  float wide = 0;
  Widen(&wide, &half, 1, DTRUN_FLOAT16);
  EXPECT_EQ(wide, 1);
  wide = -2;
  Narrow(&half, &wide, 1, DTRUN_BFLOAT16);
  EXPECT_EQ(half, 0xc000);
  Scale(&wide, &wide, 1, DTRUN_FLOAT32, 0.5);
  EXPECT_EQ(wide, -1);
  float copy = 0;
  StreamingCopy(&copy, &wide, sizeof copy);
  EXPECT_EQ(copy, -1);
}

}  // namespace
}  // namespace dtrun::kernels
