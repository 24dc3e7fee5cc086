#include "tools/dtrun/report/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace dtrun::report {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Escaped, LeavesNoMarkup) {
  EXPECT_EQ(Escaped("<script>\"a\"&'b'"), "&lt;script&gt;&quot;a&quot;&amp;&#39;b&#39;");
  EXPECT_THAT(Escaped("a\x1b[31m\n"), Not(HasSubstr("\x1b")));
}

TEST(Ticks, AreRound) {
  EXPECT_THAT(Ticks(0, 10), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_EQ(Ticks(0, 1).size(), 6u);
  EXPECT_LE(Ticks(-3, 1e9).size(), 8u);
  EXPECT_THAT(Ticks(5, 5), ElementsAre(5));
}

TEST(Fewer, KeepsPeaks) {
  std::vector<std::pair<double, double>> points;
  for (int i = 0; i < 10000; ++i) points.emplace_back(i, i == 4321 ? 99 : 1);
  const auto fewer = Fewer(points, 100);
  EXPECT_LE(fewer.size(), 100u);
  EXPECT_THAT(fewer, ::testing::Contains(std::pair(4321.0, 99.0)));
  EXPECT_EQ(Fewer({{1, 2}}, 100).size(), 1u);
}

TEST(Figure, HasALineForEachOfAFewRanks) {
  const std::string figure = Figure(
      {"loss <b>", "s", {{"rank 0", {{0, 1}, {1, 2}}}, {"rank 1", {{0, 3}, {1, kNan}, {2, 4}}}}, {0.5}});
  EXPECT_THAT(figure, AllOf(HasSubstr("loss &lt;b&gt;"), Not(HasSubstr("<b>\"")), HasSubstr("class=\"l l0\""),
                            HasSubstr("class=\"l l1\""), HasSubstr("class=\"mark\""), Not(HasSubstr("nan"))));
}

TEST(Figure, HasABandForMany) {
  std::vector<Line> lines;
  for (int rank = 0; rank < 1024; ++rank) {
    Line line{"rank " + std::to_string(rank), {}};
    for (int i = 0; i < 50; ++i) line.points.emplace_back(i, rank);
    lines.push_back(line);
  }
  const std::string figure = Figure({"loss", "s", lines});
  EXPECT_THAT(figure, AllOf(HasSubstr("class=\"band\""), HasSubstr("1024 ranks"), HasSubstr("rank 1023")));
  EXPECT_LT(figure.size(), 20000u);
}

TEST(Figure, OfNothingIsEmpty) {
  EXPECT_EQ(Figure({"loss", "s", {}}), "");
  EXPECT_EQ(Figure({"loss", "s", {{"rank 0", {}}}}), "");
  EXPECT_NE(Figure({"loss", "s", {{"rank 0", {{1, kNan}}}}}), "");
  EXPECT_THAT(Figure({"loss", "s", {{"rank 0", {{1, 5}}}}}), HasSubstr("<circle"));
}

}  // namespace
}  // namespace dtrun::report
