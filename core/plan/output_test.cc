#include "core/plan/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/spec/read.h"

namespace dtrun::plan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

Result<output::Style> StyleWith(std::vector<std::string> sets) {
  spec::Request request;
  request.sets = std::move(sets);
  request.command = {"true"};
  const spec::Loaded loaded =
      spec::Load(request, [](auto, const auto&, const auto&) { return options::Schema(); });
  EXPECT_THAT(loaded.problems, IsEmpty());
  return StyleOf(loaded.spec);
}

TEST(StyleOf, ShowsAllRanksByDefault) {
  const auto style = StyleWith({});
  ASSERT_TRUE(style);
  EXPECT_FALSE(style->ranks);
  EXPECT_TRUE(style->Shows(7));
  EXPECT_FALSE(style->fold || style->timestamps);
  EXPECT_EQ(style->prefix, output::Prefix::kAuto);
}

TEST(StyleOf, ReadsTheTable) {
  const auto style = StyleWith({"output.ranks=0,4-5", "output.fold=true", "output.timestamps=true",
                                "output.prefix=host", "output.color=never"});
  ASSERT_TRUE(style);
  EXPECT_THAT(style->ranks, Optional(ElementsAre(0, 4, 5)));
  EXPECT_FALSE(style->Shows(3));
  EXPECT_TRUE(style->fold && style->timestamps);
  EXPECT_EQ(style->prefix, output::Prefix::kHost);
  EXPECT_EQ(style->colour, output::ColourWhen::kNever);
}

TEST(StyleOf, NoneIsNoRank) { EXPECT_THAT(StyleWith({"output.ranks=none"})->ranks, Optional(IsEmpty())); }

TEST(StyleOf, TheFormerNameOfThePrefixStillWorks) {
  EXPECT_EQ(StyleWith({"logs.prefix=none"})->prefix, output::Prefix::kNone);
}

TEST(StyleOf, RefusesRanksThatAreNoList) {
  const auto style = StyleWith({"output.ranks=first"});
  ASSERT_FALSE(style);
  EXPECT_THAT(style.error().text, AllOf(HasSubstr("output.ranks"), HasSubstr("--set"), HasSubstr("\"0,4-7\""),
                                        HasSubstr("found \"first\"")));
}

TEST(RanksThatAreMissing, NamesThem) {
  EXPECT_EQ(RanksThatAreMissing({}, 2), "");
  EXPECT_EQ(RanksThatAreMissing({.ranks = std::vector{0, 1}}, 2), "");
  EXPECT_EQ(RanksThatAreMissing({.ranks = std::vector{0, 2, 3}}, 2),
            "output.ranks names 2-3, and the ranks of this job are 0-1");
}

}  // namespace
}  // namespace dtrun::plan
