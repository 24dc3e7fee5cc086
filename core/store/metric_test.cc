#include "core/store/metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::store {
namespace {

using ::testing::HasSubstr;
using Names = std::vector<std::string>;

TEST(MetricName, IsOneOfPrometheus) {
  for (const std::string& good : Names{"loss", "a:b", "_x", "L2_norm", std::string(kMaxMetricName, 'a')})
    EXPECT_TRUE(CheckMetricName(good)) << good;
  for (const std::string& bad : Names{"", "1st", "train/loss", "loss ", "lo\xc3\xb6ss", "a\nb", "{x}"})
    EXPECT_FALSE(CheckMetricName(bad)) << bad;
  EXPECT_FALSE(CheckMetricName(std::string(kMaxMetricName + 1, 'a')));
}

TEST(MetricName, ErrorsNameTheNameAndOneThatIsAllowed) {
  EXPECT_THAT(CheckMetricName("train/loss").error().text, HasSubstr("'train/loss' has '/' at position 6"));
  EXPECT_THAT(CheckMetricName("train/loss").error().text, HasSubstr("use 'train_loss'"));
  EXPECT_THAT(CheckMetricName("1st").error().text, HasSubstr("use '_1st'"));
  EXPECT_THAT(CheckMetricName("dtrun_x").error().text, HasSubstr("use 'x'"));
}

}  // namespace
}  // namespace dtrun::store
