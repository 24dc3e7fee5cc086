#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/environments/dialect.h"

namespace dtrun::environments {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string ErrorOf(const std::map<std::string, std::string>& counts, int ranks) {
  const auto roles = AssignRoles(counts, ranks);
  return roles.ok() ? "no error" : roles.error().text;
}

TEST(AssignRoles, GoesFromChiefToEvaluatorWhateverTheOrderGiven) {
  EXPECT_THAT(*AssignRoles({{"evaluator", "1"}, {"worker", "2"}, {"chief", "1"}, {"ps", "1"}}, 5),
              ElementsAre("chief", "worker", "worker", "ps", "evaluator"));
}

TEST(AssignRoles, NoCountsAreNoRoles) { EXPECT_THAT(*AssignRoles({}, 4), IsEmpty()); }

TEST(AssignRoles, RefusesWhatDoesNotFitTheJob) {
  EXPECT_THAT(ErrorOf({{"worker", "2"}}, 3), HasSubstr("roles for 2 ranks, and the job has 3"));
  EXPECT_THAT(ErrorOf({{"worker", "4"}}, 3),
              HasSubstr("'4' ranks as worker: expected a number from 0 to the job's 3"));
  EXPECT_THAT(ErrorOf({{"worker", "two"}}, 3), HasSubstr("'two' ranks as worker"));
  EXPECT_THAT(ErrorOf({{"chief", "2"}}, 2), HasSubstr("2 chiefs"));
  EXPECT_THAT(ErrorOf({{"wroker", "2"}}, 2), HasSubstr("unknown role 'wroker'; did you mean 'worker'?"));
  EXPECT_THAT(ErrorOf({{"x", "2"}}, 2), HasSubstr("there are chief, worker, ps, evaluator"));
}

}  // namespace
}  // namespace dtrun::environments
