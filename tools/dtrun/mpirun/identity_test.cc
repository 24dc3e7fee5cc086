#include "tools/dtrun/mpirun/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::mpirun {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Lookup In(const Variables& variables) {
  return [&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

const Variables kOpenMpiRank = {{"OMPI_COMM_WORLD_RANK", "3"},
                                {"OMPI_COMM_WORLD_SIZE", "6"},
                                {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
const Variables kHydraRank = {
    {"PMI_RANK", "3"}, {"PMI_SIZE", "6"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
const Variables kPlan = {{"DTRUN_WORLD_SIZE", "6"},
                         {"DTRUN_LOCAL_WORLD_SIZE", "2"},
                         {"DTRUN_HOST_COUNT", "3"},
                         {"DTRUN_FIRST_RANK", "2"}};

TEST(ReadIdentity, KnowsBothFamilies) {
  EXPECT_EQ(ReadIdentity(In(kOpenMpiRank)).value().served, pmi::Kind::kPmix);
  EXPECT_EQ(ReadIdentity(In(kHydraRank)).value().served, pmi::Kind::kPmi1);
  for (const Variables& variables : {kOpenMpiRank, kHydraRank}) {
    const auto identity = ReadIdentity(In(variables));
    ASSERT_TRUE(identity) << identity.error().text;
    EXPECT_EQ(identity->rank, 3);
    EXPECT_EQ(identity->size, 6);
    EXPECT_EQ(identity->local_rank, 1);
    EXPECT_EQ(identity->local_size, 2);
  }
}

TEST(ReadIdentity, SaysWhatIsMissingOrWrong) {
  EXPECT_THAT(ReadIdentity(In({})).error().text, HasSubstr("neither OMPI_COMM_WORLD_RANK nor PMI_RANK"));
  Variables variables = kHydraRank;
  variables.erase("MPI_LOCALNRANKS");
  EXPECT_THAT(ReadIdentity(In(variables)).error().text, HasSubstr("MPI_LOCALNRANKS is not set"));
  variables["MPI_LOCALNRANKS"] = "two";
  EXPECT_THAT(ReadIdentity(In(variables)).error().text, HasSubstr("MPI_LOCALNRANKS is 'two'"));
}

TEST(RankVariables, NameTheRank) {
  const auto variables = RankVariables({3, 6, 1, 2}, In(kPlan));
  ASSERT_TRUE(variables) << variables.error().text;
  EXPECT_EQ(*variables,
            (Variables{{"DTRUN_RANK", "3"}, {"DTRUN_LOCAL_RANK", "1"}, {"RANK", "3"}, {"LOCAL_RANK", "1"}}));
}

TEST(RankVariables, RefuseAnotherWorldThanThePlans) {
  EXPECT_THAT(RankVariables({0, 1, 0, 1}, In(kPlan)).error().text,
              HasSubstr("mpirun has started 1 ranks, but the job has 6"));
  EXPECT_THAT(RankVariables({0, 6, 0, 6}, In(kPlan)).error().text, HasSubstr("6 ranks on this host"));
  EXPECT_THAT(RankVariables({1, 6, 0, 2}, In(kPlan)).error().text,
              HasSubstr("mpirun numbers this process 1, and the plan 2"));
}

TEST(CheckHostProcess, WantsOnePerHost) {
  EXPECT_TRUE(CheckHostProcess({2, 3, 0, 1}, In(kPlan)));
  EXPECT_FALSE(CheckHostProcess({2, 6, 0, 1}, In(kPlan)));
  EXPECT_THAT(CheckHostProcess({2, 3, 0, 3}, In(kPlan)).error().text, HasSubstr("3 processes on this host"));
}

}  // namespace
}  // namespace dtrun::mpirun
