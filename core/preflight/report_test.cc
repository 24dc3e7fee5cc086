#include "core/preflight/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json.h"

namespace dtrun::preflight {
namespace {

using ::testing::HasSubstr;

Answer At(double clock, const std::string& library, const std::string& why_not = "") {
  Answer answer;
  answer.clock_seconds = clock;
  answer.backends = {{"gloo", why_not, library}};
  return answer;
}

TEST(Compare, NamesTheClockThatIsFurthestOff) {
  const auto checks =
      Compare({{"n0", At(1000.1, "Gloo 1")}, {"n1", At(940, "Gloo 1")}, {"n2", At(1030, "Gloo 1")}}, 1000);
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].level, Level::kWarning);
  EXPECT_EQ(checks[0].what, "the clock of n1 is 60.0 s behind the root's");
  EXPECT_EQ(Compare({{"n0", At(1000.1, "")}, {"n1", At(1001.5, "")}}, 1000)[0].level, Level::kOk);
  EXPECT_TRUE(Compare({{"n0", At(5, "")}}, 1000).empty());
}

TEST(Compare, NamesLibrariesThatDiffer) {
  const auto checks =
      Compare({{"n0", At(0, "Gloo 1")}, {"n1", At(0, "Gloo 2")}, {"n2", At(0, "", "gone")}}, 0);
  ASSERT_EQ(checks.size(), 2u);
  EXPECT_EQ(checks[1].topic, "backend gloo");
  EXPECT_EQ(checks[1].what, "hosts differ: Gloo 1 on n0; Gloo 2 on n1; not usable on n2");
}

TEST(DoctorReport, IsAsBadAsItsWorst) {
  DoctorReport report{
      {{"n0", {{"names", Level::kOk, "fine"}, {"blas", Level::kWarning, "slow", "install another"}}}}, {}};
  EXPECT_EQ(Worst(report), Level::kWarning);
  EXPECT_EQ(Worst({{{"n0", {{"backend nccl", Level::kNotHere, "no GPU"}}}}, {}}), Level::kOk);
  EXPECT_EQ(ToText(report),
            "n0\n"
            "  ok       names        fine\n"
            "  warning  blas         slow\n"
            "                        next: install another\n"
            "0 problems, 1 warning\n");
  report.between = {{"clocks", Level::kProblem, "off", "set them"}};
  EXPECT_EQ(Worst(report), Level::kProblem);
  EXPECT_THAT(ToText(report), HasSubstr("between hosts\n  problem  clocks"));
  const auto json = ToJson(report);
  EXPECT_EQ(json["worst"], "problem");
  EXPECT_EQ(json["hosts"][0]["checks"][1]["fix"], "install another");
}

TEST(DoctorReport, ShowsNoTextThatATerminalObeys) {
  const DoctorReport report{
      {{"a\x1b[2J", {{"names", Level::kWarning, "its name\n'\x1b]0;x\x07'", "rename '\x1b[2J'"}}}}, {}};
  EXPECT_EQ(ToText(report).find_first_of("\x1b\x07"), std::string::npos) << ToText(report);
  EXPECT_THAT(ToText(report), HasSubstr("a\\u001b[2J\n"));
}

}  // namespace
}  // namespace dtrun::preflight
