#include "dtrun/torch/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace dtrun::torch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Property;
using ::testing::SizeIs;
using ::testing::Throws;

std::vector<std::int64_t> WholeEpoch(Sampler& sampler) { return sampler.next(sampler.samples_per_rank()); }

TEST(Sampler, VisitsEverySampleOncePerEpoch) {
  Sampler sampler(1000, 0, 1, {.seed = 7});
  std::vector<std::int64_t> samples = WholeEpoch(sampler);
  EXPECT_THAT(samples, SizeIs(1000));
  EXPECT_THAT(std::set<std::int64_t>(samples.begin(), samples.end()), SizeIs(1000));
  EXPECT_FALSE(std::is_sorted(samples.begin(), samples.end()));
}

TEST(Sampler, GivesRanksTogetherTheGlobalBatchesOfOneRank) {
  Sampler alone(96, 0, 1, {.seed = 3});
  Sampler first(96, 0, 2, {.seed = 3});
  Sampler second(96, 1, 2, {.seed = 3});
  for (int batch = 0; batch < 6; ++batch) {
    std::vector<std::int64_t> whole = alone.next(16);
    std::vector<std::int64_t> dealt = first.next(8);
    const std::vector<std::int64_t> rest = second.next(8);
    dealt.insert(dealt.end(), rest.begin(), rest.end());
    EXPECT_THAT(dealt, ::testing::UnorderedElementsAreArray(whole));
  }
  EXPECT_THAT(first.next(8), IsEmpty());
}

TEST(Sampler, WrapsAroundSoThatAllRanksGetEquallyMany) {
  std::multiset<std::int64_t> seen;
  for (int rank = 0; rank < 3; ++rank) {
    Sampler sampler(10, rank, 3, {.shuffle = false});
    const auto samples = WholeEpoch(sampler);
    EXPECT_THAT(samples, SizeIs(4));
    seen.insert(samples.begin(), samples.end());
  }
  EXPECT_THAT(seen, ElementsAre(0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST(Sampler, ServesADataSetSmallerThanTheWorld) {
  Sampler sampler(2, 4, 5, {.shuffle = false});
  EXPECT_THAT(WholeEpoch(sampler), ElementsAre(0));
}

TEST(Sampler, ShufflesEachEpochAndEachSeedAnew) {
  Sampler sampler(100, 0, 1, {.seed = 1});
  const auto first = WholeEpoch(sampler);
  sampler.set_epoch(1);
  EXPECT_NE(WholeEpoch(sampler), first);
  sampler.set_epoch(0);
  EXPECT_EQ(WholeEpoch(sampler), first);
  Sampler other(100, 0, 1, {.seed = 2});
  EXPECT_NE(WholeEpoch(other), first);
}

TEST(Sampler, IsTheSameOnEveryMachine) {
  // Written down once: a change would break the resumption of older checkpoints.
  Sampler sampler(8, 0, 1, {.seed = 42});
  EXPECT_THAT(WholeEpoch(sampler), ElementsAre(2, 4, 6, 1, 3, 5, 0, 7));
}

TEST(Sampler, EndsAnEpochWithAShortBatchAndThenNothing) {
  Sampler sampler(10, 0, 2, {.shuffle = false});
  EXPECT_THAT(sampler.next(3), ElementsAre(0, 2, 4));
  EXPECT_THAT(sampler.next(3), ElementsAre(6, 8));
  EXPECT_THAT(sampler.next(3), IsEmpty());
}

TEST(Sampler, ResumesExactlyWhereItWas) {
  Sampler sampler(1000, 1, 2, {.seed = 5});
  sampler.set_epoch(3);
  (void)sampler.next(77);
  Sampler resumed(1000, 1, 2, {.seed = 5});
  resumed.resume(sampler.epoch(), sampler.position());
  EXPECT_EQ(resumed.next(50), sampler.next(50));
}

TEST(Sampler, ResumesWithAnotherNumberOfRanks) {
  Sampler alone(1000, 0, 1, {.seed = 5});
  (void)alone.next(128);
  Sampler half(1000, 0, 2, {.seed = 5});
  half.resume(alone.epoch(), alone.position());
  EXPECT_EQ(half.next(1)[0], alone.next(1)[0]);
}

TEST(Sampler, RefusesAPositionThatTheRanksCannotShare) {
  Sampler sampler(1000, 0, 3);
  EXPECT_THAT(
      [&] { sampler.resume(0, 128); },
      Throws<Failure>(Property(&Failure::what, HasSubstr("cannot resume at sample 128 with 3 ranks"))));
}

TEST(Sampler, RefusesAnEmptyDataSetAndARankOutsideTheWorld) {
  EXPECT_THAT([] { Sampler(0, 0, 1); }, Throws<Failure>(Property(&Failure::what, HasSubstr("empty"))));
  EXPECT_THAT([] { Sampler(10, 2, 2); },
              Throws<Failure>(Property(&Failure::what, HasSubstr("rank 2 of 2 does not exist"))));
}

}  // namespace
}  // namespace dtrun::torch
