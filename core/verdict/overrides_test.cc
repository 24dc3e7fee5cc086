#include "core/verdict/overrides.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::verdict {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(RendezvousVariables, AreThoseByWhichRanksFindEachOther) {
  EXPECT_THAT(RendezvousVariables({{"RANK", "1"}, {"OMP_NUM_THREADS", "2"}, {"MASTER_PORT", "29777"}}),
              ElementsAre(Pair("MASTER_PORT", "29777"), Pair("RANK", "1")));
}

TEST(OverridesOf, AreThoseThatDiffer) {
  const std::map<std::string, std::string> given = {
      {"MASTER_PORT", "29777"}, {"RANK", "1"}, {"WORLD_SIZE", "2"}};
  const auto found = OverridesOf(1, given, {{"MASTER_PORT", "12355"}, {"RANK", "1"}});
  EXPECT_EQ(OverridesText(found), "MASTER_PORT to 12355, where dtrun set 29777");
  EXPECT_THAT(OverridesOf(1, given, given), IsEmpty());
  EXPECT_EQ(OverridesText({{1, "RANK", "1", ""}}), "RANK to nothing, where dtrun set 1");
}

}  // namespace
}  // namespace dtrun::verdict
