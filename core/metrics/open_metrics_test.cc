#include "core/metrics/open_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace dtrun::metrics {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(OpenMetricsPage, HasTheNewestValueOfEachSeries) {
  Journal journal(-1, "/nowhere/metrics.jsonl", 0600);
  journal.Add("loss", 1, {0.5, 7, {}});
  journal.Add("loss", 1, {0.25, 8, {}});
  journal.Add("loss", 0, {std::numeric_limits<double>::quiet_NaN(), {}, {}});
  journal.Add(kProcessor, 1, {2.5, {}, {}});
  journal.Add(kRestarts, kOfTheJob, {3, {}, {}});
  control::Answer now;
  now.job = "a\"b";
  now.state = "running";
  now.age = std::chrono::milliseconds(1500);
  const std::string page =
      OpenMetrics(journal, now, [](int rank) { return rank == 1 ? "node\\1" : "node0"; });
  EXPECT_THAT(page, HasSubstr("dtrun_job_info{name=\"a\\\"b\","));
  EXPECT_THAT(page, HasSubstr("dtrun_job_state{dtrun_job_state=\"running\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("dtrun_job_state{dtrun_job_state=\"ending\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("dtrun_job_age_seconds 1.5\n"));
  EXPECT_THAT(page, HasSubstr("# TYPE dtrun_job_restarts counter\n# HELP dtrun_job_restarts How"));
  EXPECT_THAT(page, HasSubstr("dtrun_job_restarts_total 3\n"));
  EXPECT_THAT(page, HasSubstr("# UNIT dtrun_rank_cpu_seconds seconds\n"));
  EXPECT_THAT(page, HasSubstr("dtrun_rank_cpu_seconds_total{rank=\"1\",host=\"node\\\\1\"} 2.5\n"));
  EXPECT_THAT(page, HasSubstr("dtrun_metric{name=\"loss\",rank=\"1\",host=\"node\\\\1\"} 0.25\n"));
  EXPECT_THAT(page, HasSubstr("dtrun_metric{name=\"loss\",rank=\"0\",host=\"node0\"} NaN\n"));
  EXPECT_THAT(page, HasSubstr("dtrun_metric_step{name=\"loss\",rank=\"1\",host=\"node\\\\1\"} 8\n"));
  EXPECT_THAT(page, EndsWith("\n# EOF\n"));
}

}  // namespace
}  // namespace dtrun::metrics
