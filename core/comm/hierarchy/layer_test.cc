#include "core/comm/hierarchy/layer.h"

#include <gtest/gtest.h>

namespace dtrun::comm {
namespace {

sdk::Failure FailureOf(int peer, std::vector<int> ranks) {
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  dtrun_error_set(&error, DTRUN_TIMEOUT, peer, "rank 1 is missing");
  dtrun_error_set_vendor(&error, "errno", 110);
  return InWhole(DTRUN_TIMEOUT, error, {.name = "world (host 1)", .ranks = std::move(ranks)});
}

TEST(Layer, MapsTheRankOfAFailureAndLeavesTheBackendsWords) {
  const sdk::Failure failure = FailureOf(1, {4, 7, 11});
  EXPECT_EQ(failure.code(), DTRUN_TIMEOUT);
  EXPECT_EQ(failure.peer(), 7);
  EXPECT_STREQ(failure.what(), "rank 1 is missing; rank 1 of 'world (host 1)' is rank 7 of the communicator");
}

TEST(Layer, AddsNothingWhereTheNumbersAreTheSame) {
  EXPECT_STREQ(FailureOf(1, {0, 1}).what(), "rank 1 is missing");
  EXPECT_STREQ(FailureOf(-1, {0, 1}).what(), "rank 1 is missing");
}

TEST(Layer, TellsItsNumberingWhereTheRankIsNotKnown) {
  const sdk::Failure failure = FailureOf(-1, {4, 7});
  EXPECT_EQ(failure.peer(), -1);
  EXPECT_STREQ(failure.what(),
               "rank 1 is missing; 'world (host 1)' numbers ranks 4 and 7 of the communicator from 0");
  EXPECT_EQ(FailureOf(9, {4, 7}).peer(), -1);
}

}  // namespace
}  // namespace dtrun::comm
