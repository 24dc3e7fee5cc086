#include <gmock/gmock.h>

#include "core/log/log.h"
#include "core/plugin/host.h"
#include "core/plugin/services.h"

namespace dtrun::plugin {
namespace {

using ::testing::EndsWith;

class LogServiceTest : public ::testing::Test {
 protected:
  LogServiceTest() {
    log::WriteTo([this](std::string_view line) { lines_ += line; });
  }
  ~LogServiceTest() override {
    log::WriteTo(nullptr);
    log::Start({}, "", std::nullopt);
  }
  static void Keep(const char* levels, std::optional<int> rank = std::nullopt) {
    log::Start(*log::ParseOptions(levels, nullptr), "node1", rank);
  }
  static void Write(int level, const char* topic, const std::string& text) {
    LogService()->write(nullptr, level, topic, {text.c_str(), text.size()});
  }

  std::string lines_;
};

TEST_F(LogServiceTest, WritesOneLineWithHostRankLevelAndTopic) {
  Keep("warn", 3);
  Write(DTRUN_LOG_WARN, "gloo", "slow peer");
  EXPECT_THAT(lines_, EndsWith(" node1 rank 3 warn gloo: slow peer\n"));
  Write(DTRUN_LOG_ERROR, nullptr, "two\nlines");
  EXPECT_THAT(lines_, EndsWith(" node1 rank 3 error plugin: two lines\n"));
}

TEST_F(LogServiceTest, KeepsOnlyTheLevelThatWasAskedFor) {
  Keep("info,ucx=error");
  EXPECT_EQ(LogService()->enabled(nullptr, DTRUN_LOG_DEBUG), 0);
  EXPECT_EQ(LogService()->enabled(nullptr, DTRUN_LOG_INFO), 1);
  Write(DTRUN_LOG_DEBUG, "gloo", "detail");
  Write(DTRUN_LOG_INFO, "ucx", "fact");
  EXPECT_EQ(lines_, "");
  Write(DTRUN_LOG_INFO, "gloo", "fact");
  EXPECT_THAT(lines_, EndsWith(" node1 info gloo: fact\n"));
}

TEST_F(LogServiceTest, LevelsOutOfRangeAreTheNearest) {
  Keep("error");
  Write(99, "gloo", "loud");
  EXPECT_THAT(lines_, EndsWith(" error gloo: loud\n"));
  Write(-1, "gloo", "quiet");
  EXPECT_THAT(lines_, EndsWith(" error gloo: loud\n"));
}

TEST(LogService, ShowsWhatATerminalWouldObey) {
  std::string line;
  log::WriteTo([&](std::string_view one) { line += one; });
  const std::string text = "a\x1b[2Jb\nc";
  const std::string topic = "top\nic\x1b]0;x\a" + std::string(200, 'y');
  LogService()->write(nullptr, DTRUN_LOG_ERROR, topic.c_str(), {text.data(), text.size()});
  log::WriteTo(nullptr);
  EXPECT_THAT(line, ::testing::HasSubstr("error top\\nic\\u001b]0;x\\u0007yyy"));
  EXPECT_THAT(line, ::testing::EndsWith("y: a\\u001b[2Jb c\n"));
  EXPECT_LT(line.size(), 200u);
}

}  // namespace
}  // namespace dtrun::plugin
