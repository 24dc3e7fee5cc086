// Guarantees of reductions beyond the correct sum: one rounding, and the same bits on all ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "dtrun/algorithms.hpp"
#include "dtrun/kernels.hpp"
#include "sdk/algorithms/mailbox.h"
#include "sdk/algorithms/trial.h"

namespace dtrun::algorithms {
namespace {

// With rounding, sums depend on the order.
TEST(Reductions, AreBitwiseTheSameOnAllRanks) {
  for (int ranks = 2; ranks <= kMostRanks; ++ranks) {
    for (const std::size_t count : kCounts) {
      for (const std::int32_t reduce : {DTRUN_SUM, DTRUN_AVG, DTRUN_PREMUL_SUM}) {
        std::vector<std::vector<float>> results(static_cast<std::size_t>(ranks));
        PlayRanks(ranks, [&](Mailbox& mailbox) {
          std::vector<float>& data = results[static_cast<std::size_t>(mailbox.rank())];
          for (std::size_t i = 0; i < count; ++i) {
            data.push_back(1.0f / static_cast<float>(i + 3 * static_cast<std::size_t>(mailbox.rank()) + 1));
          }
          dtrun_op op = Op(DTRUN_ALLREDUCE, data.data(), data.data(), count);
          op.dtype = DTRUN_FLOAT32;
          op.reduce = reduce;
          op.scale = 0.3;
          RunCollective(mailbox, op);
        });
        for (const auto& result : results) {
          EXPECT_TRUE(count == 0 || std::memcmp(result.data(), results[0].data(), count * 4) == 0)
              << ranks << " ranks, " << count << " elements, reduction " << reduce;
        }
      }
    }
  }
}

// 15 / 7 times 1 / 7 rounds twice and differs from the quotient.
TEST(Averages, AreRoundedOnce) {
  for (const std::size_t count : {std::size_t{3}, std::size_t{20'001}, std::size_t{200'003}}) {
    PlayRanks(7, [&](Mailbox& mailbox) {
      std::vector<float> data(count, mailbox.rank() == 0 ? 9.0f : 1.0f);
      dtrun_op op = Op(DTRUN_ALLREDUCE, data.data(), data.data(), count);
      op.dtype = DTRUN_FLOAT32;
      op.reduce = DTRUN_AVG;
      RunCollective(mailbox, op);
      EXPECT_EQ(data, std::vector<float>(count, 15.0f / 7.0f));
    });
  }
}

std::vector<std::uint16_t> BFloats(const std::vector<float>& values) {
  std::vector<std::uint16_t> words(values.size());
  kernels::Narrow(words.data(), values.data(), values.size(), DTRUN_BFLOAT16);
  return words;
}

// 256 + 1 + 1 + ... stays 256 if each step is rounded to bfloat16; above 256 it represents only
// even numbers.
TEST(SixteenBitFloats, AreRoundedOnlyAtTheEnd) {
  for (int ranks = 3; ranks <= kMostRanks; ++ranks) {
    for (const std::size_t count : {std::size_t{3}, std::size_t{20'001}, std::size_t{400'003}}) {
      const float sum = static_cast<float>(256 + ranks - 1);
      const float scale = 0.5f;
      for (const std::int32_t reduce : {DTRUN_SUM, DTRUN_AVG, DTRUN_PREMUL_SUM}) {
        const float result = reduce == DTRUN_AVG   ? sum / static_cast<float>(ranks)
                             : reduce == DTRUN_SUM ? sum
                                                   : sum * scale;
        const auto expected = BFloats(std::vector<float>(count, result));
        PlayRanks(ranks, [&](Mailbox& mailbox) {
          auto data = BFloats(std::vector<float>(count, mailbox.rank() == 0 ? 256.0f : 1.0f));
          const auto part = BFloats(std::vector<float>(count * static_cast<std::size_t>(ranks),
                                                       mailbox.rank() == 0 ? 256.0f : 1.0f));
          std::vector<std::uint16_t> scattered(count);
          dtrun_op op = Op(DTRUN_REDUCE_SCATTER, part.data(), scattered.data(), count);
          op.dtype = DTRUN_BFLOAT16;
          op.reduce = reduce;
          op.scale = scale;
          RunCollective(mailbox, op);
          EXPECT_EQ(scattered, expected);
          op.kind = DTRUN_REDUCE;
          op.root = 1;
          op.send = data.data();
          op.recv = scattered.data();
          std::fill(scattered.begin(), scattered.end(), std::uint16_t{0});
          RunCollective(mailbox, op);
          EXPECT_TRUE(mailbox.rank() != 1 || scattered == expected);
          op.kind = DTRUN_ALLREDUCE;
          op.root = -1;
          op.recv = data.data();
          RunCollective(mailbox, op);
          EXPECT_EQ(data, expected);
        });
      }
    }
  }
}

}  // namespace
}  // namespace dtrun::algorithms
