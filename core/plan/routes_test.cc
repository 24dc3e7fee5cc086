#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/contract/environment.h"
#include "core/plan/pmi.h"
#include "core/plan/steps.h"
#include "core/spec/read.h"

namespace dtrun::plan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class RoutesTest : public ::testing::Test {
 protected:
  RoutesTest() {
    device_.asked = true;
    device_.plugins = {{"cuda", "/p/libdtrun_device_cuda.so", "build-id 0f"}};
    plan_.hosts = {{"node0"}};
    plan_.backend = "gloo";
  }

  spec::JobSpec Settings() {
    spec::Request request;
    request.command = {"true"};
    request.sets = sets_;
    return spec::Load(request, {}).spec;
  }
  Status Add() {
    settings_ = Settings();
    return AddRoutes({settings_, device_, hardware_, reported_, nullptr}, &plan_);
  }
  // A line for each route.
  std::vector<std::string> Lines() {
    const Status added = Add();
    if (!added) return {added.error().text};
    std::vector<std::string> lines;
    for (const Route& route : plan_.routes) lines.push_back(RouteText(route));
    return lines;
  }
  std::map<std::string, std::string> Variables() {
    settings_ = Settings();
    return DeviceVariables({settings_, device_, hardware_, reported_, nullptr}, 0);
  }
  static Hardware Gpus(std::size_t count, binding::Vendor vendor = binding::Vendor::kNvidia) {
    Hardware hardware;
    hardware.gpus.resize(count);
    hardware.vendor = vendor;
    return hardware;
  }
  void UseNccl() {
    Backend nccl{"nccl", "/p/libdtrun_backend_nccl.so", "{}", {}};
    nccl.info.push_back({{{"library", "NCCL 2.27.5"}, {"memory", "device"}, {"p2p", "on: 2 of 2 proven"}},
                         {},
                         "build-id aa"});
    device_.backend = std::move(nccl);
    device_.named = true;
  }

  std::vector<std::string> sets_;
  spec::JobSpec settings_;
  DeviceMemory device_;
  Hardware hardware_;
  std::vector<Hardware> reported_;
  Plan plan_;
};

TEST_F(RoutesTest, AreNotToldWhereNoDeviceIsToBeExpected) { EXPECT_THAT(Lines(), IsEmpty()); }

TEST_F(RoutesTest, RanksKnowThePluginsWhereNoDeviceIsToBeExpected) {
  sets_ = {"backend.staging=off"};
  EXPECT_THAT(Variables(),
              UnorderedElementsAre(Pair(contract::kDevices, "cuda=/p/libdtrun_device_cuda.so#build-id 0f"),
                                   Pair(contract::kStaging, "off")));
}

TEST_F(RoutesTest, OfADeviceBackend) {
  UseNccl();
  EXPECT_THAT(Lines(), ElementsAre("cpu memory: shm", "cuda memory: nccl (NCCL 2.27.5, p2p on)"));
  EXPECT_EQ(plan_.device_backend, "nccl");
  EXPECT_THAT(Variables(),
              UnorderedElementsAre(Pair(contract::kDeviceBackend, "nccl"),
                                   Pair(contract::kDeviceBackendPath, "/p/libdtrun_backend_nccl.so"),
                                   Pair(contract::kDeviceBackendFileId, "build-id aa"),
                                   Pair(contract::kDeviceBackendOptions, "{}"),
                                   Pair(contract::kDevices, "cuda=/p/libdtrun_device_cuda.so#build-id 0f"),
                                   Pair(contract::kStaging, "auto")));
}

TEST_F(RoutesTest, OfHostsAreJoinedByTheBackend) {
  UseNccl();
  plan_.hosts.push_back({"node1"});
  plan_.backend_facts = {{"interface", "eth0 10.0.0.1"}};
  EXPECT_EQ(Lines()[0], "cpu memory: shm+gloo on eth0 10.0.0.1");
  sets_ = {"comm.local=none"};
  EXPECT_EQ(Lines()[0], "cpu memory: gloo on eth0 10.0.0.1");
}

TEST_F(RoutesTest, AGpuHostSaysWhereItsMemoryGoes) {
  hardware_ = Gpus(2);
  EXPECT_THAT(Lines(), ElementsAre("cpu memory: shm",
                                   "cuda memory: staging over shm, because gloo moves host memory"));
  EXPECT_THAT(Variables(),
              UnorderedElementsAre(Pair(contract::kDevices, "cuda=/p/libdtrun_device_cuda.so#build-id 0f"),
                                   Pair(contract::kStaging, "auto")));
}

TEST_F(RoutesTest, OfADeviceFallBackToStagingWithTheReason) {
  device_.named = true;
  device_.why_not = "nccl cannot be used: on node1: no libnccl.so.2";
  plan_.hosts.push_back({"node1"});
  reported_ = {Gpus(1), Gpus(0)};
  EXPECT_EQ(Lines()[1],
            "cuda memory: staging over shm+gloo, because nccl cannot be used: on node1: no libnccl.so.2; no "
            "GPU is visible on node1");
}

TEST_F(RoutesTest, WithoutStagingAnUnusableDeviceBackendIsRefused) {
  sets_ = {"backend.staging=off"};
  device_.named = true;
  device_.why_not = "nccl cannot be used: no GPU; install one";
  EXPECT_THAT(
      Lines(),
      ElementsAre(AllOf(HasSubstr("--set backend.staging: \"off\", and no backend moves cuda"),
                        HasSubstr("(nccl cannot be used: no GPU; install one); set it to \"auto\", or "))));
}

TEST_F(RoutesTest, WithoutStagingAGpuHostIsToldAndNotRefused) {
  sets_ = {"backend.staging=off"};
  hardware_ = Gpus(1);
  EXPECT_EQ(Lines()[1], "cuda memory: none, because backend.staging is \"off\" and gloo moves host memory");
  EXPECT_EQ(Variables().at(contract::kStaging), "off");
}

TEST_F(RoutesTest, WithoutADevicePluginNothingIsStaged) {
  hardware_ = Gpus(1);
  device_.plugins.clear();
  EXPECT_EQ(Lines()[1],
            "cuda memory: none, because gloo moves host memory, and there is no device plugin 'cuda'");
  device_.kind = "cuda";
  EXPECT_THAT(Lines()[0], HasSubstr("add the folder of libdtrun_device_cuda.so with --plugin-dir"));
}

TEST_F(RoutesTest, OneBackendMayMoveBoth) {
  hardware_ = Gpus(1);
  device_.by_host = true;
  EXPECT_EQ(Lines()[1], "cuda memory: gloo");
}

TEST_F(RoutesTest, HostsWithDevicesOfTwoKindsAreRefusedWhereTheyAreWanted) {
  plan_.hosts.push_back({"node1"});
  reported_ = {Gpus(1), Gpus(1, binding::Vendor::kAmd)};
  EXPECT_EQ(Lines().size(), 2u);
  EXPECT_THAT(plan_.warnings, ElementsAre(HasSubstr("node0 has NVIDIA GPUs, node1 has AMD GPUs")));
  sets_ = {"job.processes_per_host=gpu"};
  EXPECT_THAT(Lines(),
              ElementsAre(HasSubstr("--set job.processes_per_host: the devices of a job are of one")));
  sets_.clear();
  device_.kind = "cuda";
  reported_ = {Gpus(1, binding::Vendor::kAmd), Gpus(0)};
  EXPECT_THAT(Lines(), ElementsAre(HasSubstr("one kind, here cuda, and node0 has AMD GPUs; leave out")));
}

TEST_F(RoutesTest, PluginsOfAllKindsAreOffered) {
  device_.plugins = {{"npu", "/p/libdtrun_device_npu.so"}, {"cuda", "/p/libdtrun_device_cuda.so"}};
  EXPECT_EQ(Variables().at(contract::kDevices),
            "npu=/p/libdtrun_device_npu.so:cuda=/p/libdtrun_device_cuda.so");
}

TEST_F(RoutesTest, AreUnknownBeforeAnybodyIsAsked) {
  UseNccl();
  device_.asked = false;
  EXPECT_THAT(Lines(), IsEmpty());
}

TEST_F(RoutesTest, AJobWithoutABackendHasNone) {
  UseNccl();
  plan_.backend = "none";
  EXPECT_THAT(Lines(), IsEmpty());
}

TEST(Pmi, IsWantedForTheLowestOfAStack) {
  const spec::JobSpec spec;
  EXPECT_EQ(WantedPmi(spec, "delay > bf16 > mpi", 2, 4, "/bin/true"), pmi::Kind::kPmix);
  EXPECT_EQ(WantedPmi(spec, "mpi", 2, 4, "/bin/true"), pmi::Kind::kPmix);
  EXPECT_EQ(WantedPmi(spec, "mpi > gloo", 2, 4, "/bin/true"), pmi::Kind::kNone);
}

}  // namespace
}  // namespace dtrun::plan
