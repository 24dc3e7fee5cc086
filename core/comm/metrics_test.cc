#include "core/comm/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/store/testing/local_store.h"

namespace dtrun::comm {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::chrono::milliseconds kEnough = 60s;

TEST(MetricsOfARank, SendsTheNewestValueOfEachName) {
  store::testing::LocalStore store;
  Metrics metrics(store.AddressOf(0));
  for (int step = 0; step < 1000; ++step) ASSERT_TRUE(metrics.Set("loss", step, step));
  ASSERT_TRUE(metrics.Set("speed", 2.5, std::nullopt));
  metrics.End(kEnough);
  EXPECT_THAT(store.events().entries(), Contains("rank 0: loss 999.000000 at 999"));
  EXPECT_THAT(store.events().entries(), Contains("rank 0: speed 2.500000"));
  EXPECT_THAT(store.events().entries(), Not(Contains(StartsWith("joined"))))
      << "a metric does not make a rank join";
  EXPECT_LT(store.events().entries().size(), 100u);
  const std::size_t sent = store.events().entries().size();
  EXPECT_TRUE(metrics.Set("loss", 1, std::nullopt));
  metrics.End(kEnough);
  EXPECT_EQ(store.events().entries().size(), sent) << "no value is kept after the end";
}

TEST(MetricsOfARank, BadNamesAndTooManyNamesAreErrors) {
  store::testing::LocalStore store;
  Metrics metrics(store.AddressOf(0));
  EXPECT_THAT(metrics.Set("train/loss", 1, {}).error().text, HasSubstr("train_loss"));
  for (std::size_t i = 0; i < store::kMaxMetrics; ++i)
    ASSERT_TRUE(metrics.Set("n" + std::to_string(i), 1, {}));
  EXPECT_THAT(metrics.Set("one_more", 1, {}).error().text, HasSubstr("allowed are 256"));
  EXPECT_TRUE(metrics.Set("n0", 1, {}));
  metrics.End(kEnough);
}

TEST(MetricsOfARank, AreDroppedWithoutDtrunAndWithoutAnAgent) {
  Metrics alone{std::nullopt};
  EXPECT_TRUE(alone.Set("loss", 1, 1));
  EXPECT_FALSE(alone.Set("1", 1, 1));
  alone.End(kEnough);
  Metrics lost(store::Address{"/nonexistent/store", std::string(64, 'a'), 0, 0});
  EXPECT_TRUE(lost.Set("loss", std::numeric_limits<double>::quiet_NaN(), 1));
  lost.End(kEnough);
}

}  // namespace
}  // namespace dtrun::comm
