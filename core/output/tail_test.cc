#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/output/display.h"

namespace dtrun::output {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Tail, GivesTheLastLinesOldestFirst) {
  Tail tail;
  EXPECT_THAT(tail.Last(3), IsEmpty());
  for (const char* line : {"one", "", "three", "four"}) tail.Append(line);
  EXPECT_THAT(tail.Last(3), ElementsAre("", "three", "four"));
  EXPECT_THAT(tail.Last(9), ElementsAre("one", "", "three", "four"));
  EXPECT_THAT(tail.Last(0), IsEmpty());
}

TEST(Tail, IsBoundedInBytes) {
  Tail tail;
  for (int i = 0; i < 10000; ++i) tail.Append(std::to_string(i) + std::string(1019, 'x'));
  const auto lines = tail.Last(100);
  EXPECT_EQ(lines.size(), Tail::kBytes / 1023);
  EXPECT_EQ(lines.back().substr(0, 5), "9999x");
}

TEST(Tail, CutsALongLineAtACharacter) {
  Tail tail;
  tail.Append("before");
  std::string line(1, 'a');
  while (line.size() < 100'000) line += "é";
  tail.Append(line);
  const auto lines = tail.Last(2);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "before");
  EXPECT_EQ(lines[1], line.substr(0, Tail::kLineBytes - 5) + " …");
}

}  // namespace
}  // namespace dtrun::output
