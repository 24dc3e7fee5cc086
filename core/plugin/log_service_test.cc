#include <gmock/gmock.h>

#include "core/plugin/host.h"
#include "core/plugin/services.h"
#include "core/plugin/testing/support.h"

namespace dtrun::plugin {
namespace {

class LogServiceTest : public ::testing::Test {
 protected:
  void TearDown() override { SetLog(DTRUN_LOG_WARN, ""); }
  static std::string Write(int level, const char* topic, const std::string& text) {
    const testing::StderrCapture capture;
    LogService()->write(nullptr, level, topic, {text.c_str(), text.size()});
    return capture.Text();
  }
};

TEST_F(LogServiceTest, WritesOneLineWithRankLevelAndTopic) {
  SetLog(DTRUN_LOG_WARN, "[rank 3] ");
  EXPECT_EQ(Write(DTRUN_LOG_WARN, "gloo", "slow peer"), "dtrun: [rank 3] warning: gloo: slow peer\n");
  EXPECT_EQ(Write(DTRUN_LOG_ERROR, nullptr, "two\nlines"), "dtrun: [rank 3] error: two lines\n");
}

TEST_F(LogServiceTest, KeepsOnlyTheLevelThatWasAskedFor) {
  SetLog(DTRUN_LOG_INFO, "");
  EXPECT_EQ(LogService()->enabled(nullptr, DTRUN_LOG_DEBUG), 0);
  EXPECT_EQ(LogService()->enabled(nullptr, DTRUN_LOG_INFO), 1);
  EXPECT_EQ(Write(DTRUN_LOG_DEBUG, "gloo", "detail"), "");
  EXPECT_EQ(Write(DTRUN_LOG_INFO, "gloo", "fact"), "dtrun: info: gloo: fact\n");
}

TEST_F(LogServiceTest, LeavesErrnoAlone) {
  errno = ENOSPC;
  Write(DTRUN_LOG_ERROR, "x", "y");
  const testing::StderrCapture capture;
  errno = ENOSPC;
  LogService()->write(nullptr, DTRUN_LOG_ERROR, "x", {"y", 1});
  EXPECT_EQ(errno, ENOSPC);
}

}  // namespace
}  // namespace dtrun::plugin
