#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/plan/steps.h"

namespace dtrun::plan {
namespace {

using ::testing::HasSubstr;

const std::map<std::string, std::string> kVariables = {{"RANK", "3"}, {"WORLD_SIZE", "8"}};

TEST(Expand, ReplacesEveryKnownName) {
  EXPECT_EQ(*Expand("--rank=${RANK}/${WORLD_SIZE}", kVariables), "--rank=3/8");
  EXPECT_EQ(*Expand("plain", kVariables), "plain");
}

TEST(Expand, LeavesOtherDollarsAlone) {
  EXPECT_EQ(*Expand("$RANK costs $5 $", kVariables), "$RANK costs $5 $");
}

TEST(Expand, EscapesABraceForTheShell) {
  EXPECT_EQ(*Expand("echo $${HOME} ${RANK}", kVariables), "echo ${HOME} 3");
  EXPECT_EQ(*Expand("$$${RANK}", kVariables), "$${RANK}");
}

TEST(Expand, RefusesUnknownNamesWithTheNearestAndTheEscape) {
  const auto result = Expand("${RANKK}", kVariables);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().text, HasSubstr("did you mean '${RANK}'"));
  EXPECT_THAT(result.error().text, HasSubstr("'$${RANKK}'"));
}

TEST(Expand, RefusesAnUnclosedBrace) { EXPECT_FALSE(Expand("${RANK", kVariables).ok()); }

}  // namespace
}  // namespace dtrun::plan
