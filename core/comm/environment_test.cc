#include "core/comm/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace dtrun::comm {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

using Variables = std::map<std::string, std::string>;

const std::string kKey(64, 'a');

Variables Complete() {
  return {{"DTRUN_RANK", "3"},
          {"DTRUN_WORLD_SIZE", "8"},
          {"DTRUN_LOCAL_RANK", "1"},
          {"DTRUN_LOCAL_WORLD_SIZE", "2"},
          {"DTRUN_NODE_RANK", "1"},
          {"DTRUN_HOST_COUNT", "4"},
          {"DTRUN_JOB", "mnist"},
          {"DTRUN_GENERATION", "2"},
          {"DTRUN_STORE", "/run/store"},
          {"DTRUN_JOB_KEY", kKey},
          {"DTRUN_BACKEND", "gloo"},
          {"DTRUN_BACKEND_PATH", "/lib/gloo.so"},
          {"DTRUN_BACKEND_FILE_ID", "build-id 0f"},
          {"DTRUN_BACKEND_OPTIONS", "{}"},
          {"DTRUN_BACKEND_TIMEOUT", "90s"}};
}

Result<Environment> Read(const Variables& variables) {
  return ReadEnvironment([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Variables With(const std::string& name, const std::string& value) {
  Variables variables = Complete();
  variables[name] = value;
  return variables;
}

TEST(Environment, OfAProgramThatDtrunDidNotStartIsAWorldOfOne) {
  const Result<Environment> e = Read({{"PATH", "/bin"}, {"RANK", "5"}});
  ASSERT_TRUE(e.ok());
  EXPECT_FALSE(e->launched);
  EXPECT_EQ(e->rank, 0);
  EXPECT_EQ(e->world_size, 1);
}

TEST(Environment, OfARankHasDevicePluginsBetweenColons) {
  const Result<Environment> e =
      Read(With("DTRUN_DEVICES", "cuda=/p/libdtrun_device_cuda.so#build-id 0f:npu=/p/npu.so"));
  ASSERT_TRUE(e.ok()) << e.error().text;
  ASSERT_EQ(e->devices.size(), 2u);
  EXPECT_EQ(e->devices[0].name, "cuda");
  EXPECT_EQ(e->devices[0].path, "/p/libdtrun_device_cuda.so");
  EXPECT_EQ(e->devices[0].file_id, "build-id 0f");
  EXPECT_EQ(e->devices[1].path, "/p/npu.so");
}

TEST(Environment, DevicePluginsOfPathsWithColonOrHashAreRefusedAndSoAreTwoOfAName) {
  for (const auto& [text, said] :
       {std::pair("cuda=/a:b/x.so", "has 'b/x.so'; expected name=/path"),
        {"cuda=/a#b/x.so#build-id 0f", "has 'cuda=/a#b/x.so#build-id 0f'; expected"},
        {"cuda=x.so", "where no path has ':' or '#': move such a plugin"},
        {"=/a", "has '=/a'"},
        {"cuda=/a:", "has ''"},
        {"cuda=/a#", "has 'cuda=/a#'"},
        {"cuda=/a:cuda=/b", "has the device 'cuda' twice"}}) {
    const Result<Environment> e = Read(With("DTRUN_DEVICES", text));
    ASSERT_FALSE(e.ok()) << text;
    EXPECT_THAT(e.error().text, HasSubstr(said)) << text;
  }
}

TEST(Environment, OfARankIsReadWhole) {
  const Result<Environment> e = Read(Complete());
  ASSERT_TRUE(e.ok()) << e.error().text;
  EXPECT_TRUE(e->launched);
  EXPECT_EQ(e->rank, 3);
  EXPECT_EQ(e->world_size, 8);
  EXPECT_EQ(e->local_rank, 1);
  EXPECT_EQ(e->local_world_size, 2);
  EXPECT_EQ(e->node_rank, 1);
  EXPECT_EQ(e->host_count, 4);
  EXPECT_EQ(e->job, "mnist");
  EXPECT_EQ(e->generation, 2u);
  EXPECT_EQ(e->store, "/run/store");
  EXPECT_EQ(e->job_key, kKey);
  EXPECT_EQ(e->backend.name, "gloo");
  EXPECT_EQ(e->backend.path, "/lib/gloo.so");
  EXPECT_EQ(e->backend.file_id, "build-id 0f");
  EXPECT_EQ(e->backend.options, "{}");
  EXPECT_EQ(e->device_backend.name, "");
  EXPECT_TRUE(e->staging);
  EXPECT_EQ(e->timeout, 90s);
}

TEST(Environment, NamesTheVariablesThatAreMissing) {
  Variables variables = Complete();
  variables.erase("DTRUN_RANK");
  variables["DTRUN_JOB_KEY"] = "";
  const Result<Environment> e = Read(variables);
  ASSERT_FALSE(e.ok());
  EXPECT_EQ(e.error().code, DTRUN_FAILED_PRECONDITION);
  EXPECT_THAT(e.error().text, HasSubstr("DTRUN_JOB_KEY, DTRUN_RANK are missing"));
}

TEST(Environment, NeedsNoPluginWhenTheBackendIsNone) {
  Variables variables = With("DTRUN_BACKEND", "none");
  variables.erase("DTRUN_BACKEND_PATH");
  variables.erase("DTRUN_BACKEND_FILE_ID");
  variables.erase("DTRUN_BACKEND_OPTIONS");
  EXPECT_TRUE(Read(variables).ok());
  variables["DTRUN_BACKEND"] = "gloo";
  ASSERT_FALSE(Read(variables).ok());
  EXPECT_THAT(Read(variables).error().text, HasSubstr("DTRUN_BACKEND_PATH"));
}

// Without the id, any file at the path would be loaded.
TEST(Environment, NeedsTheIdOfThePluginsFile) {
  Variables variables = Complete();
  variables.erase("DTRUN_BACKEND_FILE_ID");
  const Result<Environment> e = Read(variables);
  ASSERT_FALSE(e.ok());
  EXPECT_EQ(e.error().code, DTRUN_FAILED_PRECONDITION);
  EXPECT_THAT(e.error().text, HasSubstr("DTRUN_BACKEND_FILE_ID is missing"));
  EXPECT_EQ(Read(With("DTRUN_BACKEND_FILE_ID", "any"))->backend.file_id, "");
}

TEST(Environment, RefusesNumbersThatAreNotWhollyNumbersOrOutOfTheirRange) {
  const std::pair<const char*, const char*> bad[] = {{"DTRUN_RANK", "8"},
                                                     {"DTRUN_RANK", "-1"},
                                                     {"DTRUN_RANK", "3x"},
                                                     {"DTRUN_RANK", " 3"},
                                                     {"DTRUN_RANK", "+3"},
                                                     {"DTRUN_RANK", "99999999999999999999"},
                                                     {"DTRUN_WORLD_SIZE", "0"},
                                                     {"DTRUN_LOCAL_RANK", "2"},
                                                     {"DTRUN_LOCAL_WORLD_SIZE", "9"},
                                                     {"DTRUN_GENERATION", "-1"},
                                                     {"DTRUN_HOST_COUNT", "0"},
                                                     {"DTRUN_NODE_RANK", "4"},
                                                     {"DTRUN_HOST_RANKS", "2,2,2"},
                                                     {"DTRUN_HOST_RANKS", "2,2,2,2,"},
                                                     {"DTRUN_HOST_RANKS", "2,2,4,0"},
                                                     {"DTRUN_HOST_RANKS", "2 2 2 2"},
                                                     {"DTRUN_BACKEND_TIMEOUT", "5"}};
  for (const auto& [name, value] : bad) {
    const Result<Environment> e = Read(With(name, value));
    ASSERT_FALSE(e.ok()) << name << "=" << value;
    EXPECT_EQ(e.error().code, DTRUN_INVALID_ARGUMENT);
    EXPECT_THAT(e.error().text, HasSubstr(name));
  }
}

TEST(Environment, KnowsTheHostOfEachRank) {
  EXPECT_TRUE(Read(Complete())->HostOfRanks().empty()) << "the variable is not set";
  const Result<Environment> told = Read(With("DTRUN_HOST_RANKS", "1,3,2(x2)"));
  ASSERT_TRUE(told) << told.error().text;
  EXPECT_THAT(told->HostOfRanks(), ::testing::ElementsAre(0, 1, 1, 1, 2, 2, 3, 3));
  Environment emulated;
  emulated.world_size = 3;
  EXPECT_THAT(emulated.HostOfRanks(), ::testing::ElementsAre(0, 0, 0));
  emulated.emulated_hosts = 2;
  EXPECT_THAT(emulated.HostOfRanks(), ::testing::ElementsAre(0, 0, 1));
}

Variables OneOfSeveral(const std::string& local_rank) {
  Variables variables = With("DTRUN_FIRST_RANK", "2");
  variables.erase("DTRUN_RANK");
  variables.erase("DTRUN_LOCAL_RANK");
  variables["LOCAL_RANK"] = local_rank;
  return variables;
}

TEST(Environment, TakesTheLocalRankOfALauncherOfTheUsersOwn) {
  Variables variables = OneOfSeveral("1");
  variables["LOCAL_WORLD_SIZE"] = "2";
  variables["WORLD_SIZE"] = "8";
  const Result<Environment> e = Read(variables);
  ASSERT_TRUE(e.ok()) << e.error().text;
  EXPECT_EQ(e->rank, 3);
  EXPECT_EQ(e->local_rank, 1);
}

TEST(Environment, NeedsALocalRankWhereSeveralRanksShareAProcess) {
  Variables variables = OneOfSeveral("");
  EXPECT_THAT(Read(variables).error().text, HasSubstr("LOCAL_RANK does not say"));
  EXPECT_THAT(Read(OneOfSeveral("2")).error().text, HasSubstr("LOCAL_RANK is '2'"));
}

TEST(Environment, RefusesALauncherThatStartsAnotherNumberOfRanks) {
  for (const char* name : {"LOCAL_WORLD_SIZE", "WORLD_SIZE"}) {
    Variables variables = OneOfSeveral("0");
    variables[name] = "4";
    ASSERT_FALSE(Read(variables).ok()) << name;
    EXPECT_THAT(Read(variables).error().text, HasSubstr(std::string(name) + " is '4', but the job has"));
  }
}

TEST(Environment, RefusesRelativePaths) {
  EXPECT_FALSE(Read(With("DTRUN_STORE", "store")).ok());
  EXPECT_FALSE(Read(With("DTRUN_BACKEND_PATH", "gloo.so")).ok());
}

TEST(Environment, NeverPrintsTheKeyThatItRefuses) {
  const Result<Environment> e = Read(With("DTRUN_JOB_KEY", "topsecret"));
  ASSERT_FALSE(e.ok());
  EXPECT_THAT(e.error().text, HasSubstr("DTRUN_JOB_KEY"));
  EXPECT_THAT(e.error().text, Not(HasSubstr("topsecret")));
}

}  // namespace
}  // namespace dtrun::comm
