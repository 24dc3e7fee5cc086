#include "tools/dtrun/trace/document.h"

#include <gtest/gtest.h>

#include <map>

#include "tools/dtrun/trace/clocks.h"

namespace dtrun::trace {
namespace {

TEST(TraceDocument, IsJsonWithOrderedRows) {
  Document document;
  document.NameProcess(1, "a \"process\"", 1);
  document.NameRow({1, 2}, "row\n", 2);
  document.Span({1, 2}, "inner", "c", 2'000'000'500, 2'000'000'600);
  document.Span({1, 2}, "outer", "c", 2'000'000'500, 2'000'001'500, {{"bytes", 4}});
  document.Instant({1, 2}, "before", "c", 1'000'000'000);
  document.Span({1, 2}, "backwards", "c", 3'000'000'000, 2'900'000'000);
  const Json json = ParseJson(document.Text(1'000'000'000));
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["baseTimeNanoseconds"], 1'000'000'000);
  std::vector<std::string> names;
  double last = -1;
  for (const Json& event : json["traceEvents"]) {
    for (const char* member : {"ph", "ts", "pid", "tid", "name"})
      EXPECT_TRUE(event.contains(member)) << event.dump();
    if (event["ph"] == "M") continue;
    names.push_back(event["name"].get<std::string>());
    EXPECT_GE(event["ts"].get<double>(), last);
    last = event["ts"].get<double>();
    if (event["ph"] == "X") {
      EXPECT_GE(event["dur"].get<double>(), 0);
    }
  }
  EXPECT_EQ(names, (std::vector<std::string>{"before", "outer", "inner", "backwards"}));
  EXPECT_EQ(json["traceEvents"][5]["dur"], 1.0);
  EXPECT_EQ(json["traceEvents"][5]["ts"], 1'000'000.5);
}

TEST(TraceDocument, WithoutEventsIsJsonToo) { EXPECT_TRUE(ParseJson(Document().Text(0)).is_object()); }

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(TraceClocks, ShiftAHostByWhatWasMeasured) {
  Clocks clocks;
  clocks.Add("b", 10 * kSecond, 5 * kSecond, 1000);
  EXPECT_EQ(clocks.AtRoot("b", 20 * kSecond), 15 * kSecond);
  EXPECT_EQ(clocks.AtRoot("b", 6 * kSecond), 1 * kSecond);
  EXPECT_EQ(clocks.AtRoot("unknown", 20 * kSecond), 20 * kSecond);
  EXPECT_FALSE(clocks.Knows("unknown"));
}

TEST(TraceClocks, ADifferenceWithinItsUncertaintyIsNone) {
  Clocks clocks;
  clocks.Add("a", 0, 900, 1000);
  EXPECT_EQ(clocks.AtRoot("a", kSecond), kSecond);
}

TEST(TraceClocks, ADriftIsSpreadEvenlyAndTimesStayInOrder) {
  Clocks clocks;
  clocks.Add("b", 0, kSecond, 10);
  clocks.Add("b", 100 * kSecond, 2 * kSecond, 10);
  EXPECT_NEAR(static_cast<double>(clocks.AtRoot("b", 51 * kSecond)), 49.5 * kSecond, kSecond / 100);
  std::int64_t last = -10 * kSecond;
  for (std::int64_t time = 0; time < 150 * kSecond; time += kSecond / 7) {
    const std::int64_t at = clocks.AtRoot("b", time);
    EXPECT_GE(at, last);
    last = at;
  }
}

}  // namespace
}  // namespace dtrun::trace
