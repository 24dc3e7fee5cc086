#include "core/hosts/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/hosts/testing.h"

namespace dtrun::hosts {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using testing::Batch;
using testing::FakeLaunchers;
using testing::NotThere;

// The detected platform, or the problem with its variables, which need not be complete.
std::string Detected(const Environment& environment, Launchers* launchers = nullptr) {
  const auto found = FromEnvironment(environment, "auto", launchers);
  if (found) return found->platform;
  const std::string& text = found.error().text;
  return text.starts_with("\"auto\"") ? "error: " + text : text.substr(1, text.find('"', 1) - 1);
}

TEST(DetectPlatform, KnowsAPlatformByItsOwnVariables) {
  EXPECT_EQ(Detected({{"OMPI_COMM_WORLD_RANK", "0"}}), "openmpi");
  EXPECT_EQ(Detected({{"PMI_RANK", "0"}}), "pmi");
  EXPECT_EQ(Detected({{"CLUSTER_SPEC", "{}"}, {"RANK", "0"}}), "vertex");
  EXPECT_EQ(Detected({{"PET_NNODES", "2"}, {"RANK", "0"}, {"WORLD_SIZE", "4"}}), "kubeflow");
  EXPECT_EQ(Detected({{"TORCHELASTIC_RUN_ID", "r"}, {"RANK", "0"}}), "torchrun");
  EXPECT_EQ(Detected({{"K_MPI_JOB_ROLE", "launcher"}}), "mpijob");
}

TEST(DetectPlatform, AnMpiLauncherOfAPlatformIsThatPlatform) {
  EXPECT_EQ(Detected({{"AZ_BATCH_MASTER_NODE", "a:1"}, {"OMPI_COMM_WORLD_RANK", "0"}}), "azureml");
}

TEST(DetectPlatform, LaunchersAreAskedWhereNoBuiltInPlatformIsThere) {
  FakeLaunchers launchers;
  launchers.all["batch"] = {Batch({{"n1", 2}}), false};
  launchers.all["other"] = {NotThere(), false};
  EXPECT_EQ(Detected({{"RANK", "0"}}, &launchers), "batch");
  EXPECT_EQ(Detected({{"CLUSTER_SPEC", "{}"}}, &launchers), "vertex");
  EXPECT_EQ(launchers.asked, 2);
  launchers.all["batch"].finds = Error{DTRUN_INVALID_ARGUMENT, "BATCH_JOB says 3"};
  EXPECT_THAT(FromEnvironment({}, "auto", &launchers).error().text, HasSubstr("BATCH_JOB says 3"));
  launchers.all["batch"].finds = NotThere();
  EXPECT_THAT(Detected({}, &launchers), HasSubstr("no platform has set its variables"));
}

TEST(DetectPlatform, AnMpiLauncherInAnAllocationIsTheAllocationsOrAskedAbout) {
  FakeLaunchers launchers;
  launchers.all["batch"] = {Batch({{"n1", 2}}), false};
  EXPECT_THAT(Detected({{"OMPI_COMM_WORLD_RANK", "0"}}, &launchers),
              AllOf(HasSubstr("openmpi (by OMPI_COMM_WORLD_RANK), batch (by BATCH_JOB)"),
                    HasSubstr("say which one")));
  EXPECT_THAT(Detected({{"PMI_RANK", "0"}}, &launchers), HasSubstr("several platforms"));
  launchers.all["batch"].finds->implies = {"pmi"};
  EXPECT_EQ(Detected({{"PMI_RANK", "0"}}, &launchers), "batch");
  launchers.all["second"] = {Batch({{"n1", 2}}), false};
  EXPECT_THAT(Detected({}, &launchers), HasSubstr("batch (by BATCH_JOB), second (by BATCH_JOB)"));
}

TEST(DetectPlatform, ABareRankIsNeverGuessed) {
  EXPECT_THAT(Detected({{"RANK", "1"}, {"WORLD_SIZE", "2"}}),
              AllOf(HasSubstr("RANK=1, WORLD_SIZE=2 set, and no variable tells which platform"),
                    HasSubstr("\"gcp\"")));
}

TEST(DetectPlatform, NothingIsNotFound) {
  const auto platform = FromEnvironment({{"HOME", "/root"}, {"PMI_RANK", ""}}, "auto");
  ASSERT_FALSE(platform.ok());
  EXPECT_EQ(platform.error().code, DTRUN_NOT_FOUND);
}

TEST(FromEnvironment, ReadsTheNamedPlatform) {
  const Environment host = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "m"}, {"MASTER_PORT", "1"}};
  EXPECT_EQ(FromEnvironment(host, "gcp")->own_index, 1);
  FakeLaunchers launchers;
  launchers.all["batch"] = {Batch({{"n1", {}}, {"n2", {}}}), false};
  EXPECT_EQ(FromEnvironment({}, "batch", &launchers)->hosts.size(), 2u);
}

TEST(FromEnvironment, SuggestsTheNearestPlatform) {
  FakeLaunchers launchers;
  launchers.all["batch"] = {NotThere(), false};
  EXPECT_THAT(FromEnvironment({}, "bacth", &launchers).error().text, HasSubstr("did you mean \"batch\"?"));
  EXPECT_THAT(FromEnvironment({}, "vertx").error().text, HasSubstr("did you mean \"vertex\"?"));
  EXPECT_THAT(FromEnvironment({}, "x", &launchers).error().text,
              AllOf(HasSubstr("there are auto, openmpi"), HasSubstr(", torchrun, batch")));
}

TEST(Platforms, ReportWhatIsMissingInAnEmptyEnvironment) {
  for (const Platform& platform : Platforms()) {
    const auto allocation = platform.read({});
    ASSERT_FALSE(allocation.ok()) << platform.name;
    EXPECT_THAT(allocation.error().text,
                AllOf(HasSubstr(std::string("\"") + platform.name + "\": "), HasSubstr("unset")));
  }
}

TEST(RendezvousPort, IsNoPortOfTheRanksAndFarFromItsNeighbours) {
  EXPECT_EQ(RendezvousPort(29500), 14517);
  for (int port = 1; port <= 65535; ++port) {
    const int rendezvous = RendezvousPort(port);
    ASSERT_NE(rendezvous, port);
    ASSERT_GE(rendezvous, 10'000);
    ASSERT_LE(rendezvous, 20'000);
    ASSERT_NE(rendezvous, RendezvousPort(port + 1));
  }
}

TEST(Platforms, SayHowTheirHostsComeToShareAKey) {
  for (const Platform& platform : Platforms()) {
    EXPECT_EQ(std::string_view(platform.sharing).empty(), std::string_view(platform.name) == "mpijob")
        << platform.name;
  }
}

}  // namespace
}  // namespace dtrun::hosts
