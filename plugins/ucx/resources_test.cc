#include "resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::ucx_plugin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::ThrowsMessage;

const std::vector<Resource> kEthernet = {{"self", "memory0", false}, {"tcp", "lo", true},
                                         {"tcp", "docker0", true},   {"tcp", "eth0", true},
                                         {"posix", "memory", false}, {"cma", "memory", false}};

std::vector<Resource> WithInfiniband() {
  std::vector<Resource> all = kEthernet;
  all.push_back({"rc_mlx5", "mlx5_0:1", true});
  all.push_back({"ud_mlx5", "mlx5_0:1", true});
  return all;
}

Wanted Transports(const std::string& list) {
  return {.transports = list, .devices = std::nullopt, .rdma = false};
}
Wanted Devices(const std::string& list) {
  return {.transports = std::nullopt, .devices = list, .rdma = false};
}
const Wanted kRdma{.transports = std::nullopt, .devices = std::nullopt, .rdma = true};

TEST(Select, TakesLoopbackAndSharedMemoryOnOneHost) {
  const Selection selection = Select(kEthernet, {"eth0"}, {}, true);
  EXPECT_EQ(selection.transports, "all");
  EXPECT_EQ(selection.devices, "lo");
  EXPECT_EQ(selection.Text(true), "posix/memory,cma/memory,tcp/lo");
}

TEST(Select, TakesTheDefaultRouteBetweenHostsAndNoBridge) {
  EXPECT_EQ(Select(kEthernet, {"eth0"}, {}, false).devices, "eth0");
  EXPECT_EQ(Select(kEthernet, {"eth0"}, {}, false).Text(false), "tcp/eth0");
  EXPECT_EQ(Select(kEthernet, {}, {}, false).devices, "docker0") << "the first that is not loopback";
}

TEST(Select, PrefersRdmaDevices) {
  const Selection selection = Select(WithInfiniband(), {"eth0"}, {}, false);
  EXPECT_EQ(selection.devices, "mlx5_0:1");
  EXPECT_EQ(selection.why_not_rdma, "");
}

TEST(Select, SaysWhyThereIsNoRdma) {
  EXPECT_THAT(Select(kEthernet, {}, {}, true).why_not_rdma, HasSubstr("InfiniBand"));
  EXPECT_THAT(Select(WithInfiniband(), {}, Transports("tcp,sm,self"), true).why_not_rdma,
              HasSubstr("options"));
}

TEST(Select, UnderstandsAliasesExclusionsAndAuxiliaries) {
  EXPECT_EQ(Select(WithInfiniband(), {}, Transports("ib,sm,self"), false).Text(false),
            "rc_mlx5/mlx5_0:1,ud_mlx5/mlx5_0:1");
  EXPECT_EQ(Select(kEthernet, {}, Transports("^sm"), true).Text(true), "tcp/lo");
  EXPECT_EQ(Select(WithInfiniband(), {}, Transports("rc,ud:aux"), false).usable.size(), 2u);
  EXPECT_EQ(Select(kEthernet, {}, Transports("\\tcp"), true).Text(true), "tcp/lo");
}

TEST(Select, RefusesUnknownNamesAndListsWhatExists) {
  EXPECT_THAT([] { Select(kEthernet, {}, Transports("tpc,self"), true); },
              ThrowsMessage<sdk::Failure>(AllOf(HasSubstr("'tpc'"), HasSubstr("self,tcp,posix,cma"))));
  EXPECT_THAT([] { Select(kEthernet, {}, Devices("eth7"), true); },
              ThrowsMessage<sdk::Failure>(AllOf(HasSubstr("'eth7'"), HasSubstr("lo,docker0,eth0"))));
  EXPECT_THAT([] { Select(kEthernet, {}, Devices("^lo"), true); },
              ThrowsMessage<sdk::Failure>(HasSubstr("name the devices to use")));
}

TEST(Select, RefusesAChoiceThatLeavesNothing) {
  EXPECT_THAT([] { Select(kEthernet, {}, Transports("rc"), true); },
              ThrowsMessage<sdk::Failure>(HasSubstr("leaves nothing")));
  EXPECT_THAT([] { Select(kEthernet, {}, Transports("sm,self"), false); },
              ThrowsMessage<sdk::Failure>(HasSubstr("no network")));
}

TEST(Select, FailsWhenRdmaIsRequiredAndMissing) {
  EXPECT_THAT([] { Select(kEthernet, {}, kRdma, false); },
              ThrowsMessage<sdk::Failure>(AllOf(HasSubstr("required = \"rdma\""), HasSubstr("InfiniBand"),
                                                HasSubstr("tcp/eth0"), HasSubstr("required = \"any\""))));
}

TEST(Select, KeepsTcpOutWhenRdmaIsRequired) {
  EXPECT_EQ(Select(WithInfiniband(), {"eth0"}, kRdma, false).Text(false),
            "rc_mlx5/mlx5_0:1,ud_mlx5/mlx5_0:1");
  Wanted all = kRdma;
  all.transports = "all";
  all.devices = "all";
  EXPECT_THAT(Select(WithInfiniband(), {"eth0"}, all, false).transports, ::testing::Not(HasSubstr("tcp")));
}

}  // namespace
}  // namespace dtrun::ucx_plugin
