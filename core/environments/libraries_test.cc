#include "core/environments/libraries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/network/testing.h"

namespace dtrun::environments {
namespace {

using network::Decision;
using network::HostOffer;
using network::Network;
using network::TwoNetworks;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

Network Eth0() { return {"eth0", "10.5.0.1", 24, "", true, false, false}; }

// Checks a value that is set on all hosts.
std::string Check(const std::string& variable, const std::string& value, const Decision& decision) {
  return CheckInterfaces(variable, std::vector<std::string>(decision.evidence.hosts().size(), value),
                         decision);
}

TEST(Variables, MeanOneInterfaceOnly) {
  EXPECT_THAT(
      InterfaceVariables({Eth0()}, 0),
      AllOf(Contains(Pair("NCCL_SOCKET_IFNAME", "=eth0")), Contains(Pair("NCCL_SOCKET_FAMILY", "AF_INET")),
            Contains(Pair("GLOO_SOCKET_IFNAME", "eth0")), Contains(Pair("TP_SOCKET_IFNAME", "eth0")),
            Contains(Pair("HOROVOD_GLOO_IFACE", "eth0")), Contains(Pair("UCX_NET_DEVICES", "eth0")),
            Contains(Pair("OMPI_MCA_btl_tcp_if_include", "eth0")),
            Contains(Pair("OMPI_MCA_oob_tcp_if_include", "eth0")),
            Contains(Pair("PRTE_MCA_prte_if_include", "eth0"))));
}

TEST(Variables, OpenMpiTakesNamesForIpv6) {
  Network network = Eth0();
  network.address = "fd00::5";
  EXPECT_THAT(InterfaceVariables({network}, 0), AllOf(Contains(Pair("OMPI_MCA_btl_tcp_if_include", "eth0")),
                                                      Contains(Pair("NCCL_SOCKET_FAMILY", "AF_INET6"))));
}

TEST(Variables, ANameThatMeansAnotherAddressIsNotGiven) {
  Network network = Eth0();
  network.named = false;
  EXPECT_THAT(InterfaceVariables({network}, 0),
              AllOf(Not(Contains(Key("NCCL_SOCKET_IFNAME"))),
                    Contains(Pair("OMPI_MCA_btl_tcp_if_include", "10.5.0.0/24"))));
  network.address = "fd00::5";
  EXPECT_THAT(InterfaceVariables({network}, 0), IsEmpty());
}

TEST(Variables, ANameThatListsCannotSayIsNotGiven) {
  for (const char* name : {"lan,0", "^lan", "=lan"}) {
    Decision decision = TwoNetworks(true);
    std::vector<HostOffer> hosts = decision.evidence.hosts();
    for (HostOffer& host : hosts) host.offer.candidates[0].interface = name;
    decision.evidence = network::Evidence(std::move(hosts));
    EXPECT_THAT(InterfaceVariables(NetworksOf(decision), 0),
                AllOf(Not(Contains(Key("NCCL_SOCKET_IFNAME"))), Not(Contains(Key("GLOO_SOCKET_IFNAME"))),
                      Not(Contains(Key("UCX_NET_DEVICES"))),
                      Contains(Pair("OMPI_MCA_btl_tcp_if_include", "10.5.0.0/24"))))
        << name;
  }
}

TEST(Variables, OpenMpiIsToldTheSameOnAllHosts) {
  const Network elsewhere{"ens3", "10.5.0.2", 24, "", true, false, false};
  const Network routed{"eth0", "10.6.0.2", 32, "", true, false, false};
  const auto told = [](const std::vector<Network>& networks) {
    const std::string value = InterfaceVariables(networks, 0)["OMPI_MCA_btl_tcp_if_include"];
    EXPECT_EQ(InterfaceVariables(networks, 1)["OMPI_MCA_btl_tcp_if_include"], value);
    return value;
  };
  EXPECT_EQ(told({Eth0(), elsewhere}), "10.5.0.0/24");
  EXPECT_EQ(told({elsewhere, routed}), "10.5.0.0/24,10.6.0.2/32");
  EXPECT_EQ(told({Eth0(), routed}), "eth0");
}

TEST(Variables, RdmaIsRestrictedOnlyWhenAskedFor) {
  Network network = Eth0();
  network.rdma = "mlx5_0:1";
  network.host_has_rdma = true;
  EXPECT_THAT(InterfaceVariables({network}, 0),
              AllOf(Not(Contains(Key("NCCL_IB_HCA"))), Not(Contains(Key("UCX_NET_DEVICES")))));
  network.asked_for = true;
  EXPECT_THAT(InterfaceVariables({network}, 0), AllOf(Contains(Pair("NCCL_IB_HCA", "=mlx5_0:1")),
                                                      Contains(Pair("UCX_NET_DEVICES", "mlx5_0:1"))));
}

TEST(OwnValue, WhatIsProvenIsFine) {
  const Decision decision = TwoNetworks(true);
  EXPECT_EQ(Check("NCCL_SOCKET_IFNAME", "eth1", decision), "");
  EXPECT_EQ(Check("NCCL_SOCKET_IFNAME", "=eth1", decision), "");
  EXPECT_EQ(Check("NCCL_SOCKET_IFNAME", "^docker,lo", decision), "");
  EXPECT_EQ(Check("GLOO_SOCKET_IFNAME", "eth0", decision), "");
  EXPECT_EQ(Check("OMPI_MCA_btl_tcp_if_include", "10.6.0.0/16", decision), "");
  EXPECT_EQ(Check("UCX_NET_DEVICES", "mlx5_0:1", decision), "");
  EXPECT_EQ(Check("PATH", "eth7", decision), "");
}

TEST(OwnValue, WhatIsNotProvenNamesTheHosts) {
  EXPECT_EQ(Check("NCCL_SOCKET_IFNAME", "eth1", TwoNetworks(false)),
            "on node1, node2 it means eth1 there, which is not known to reach all hosts");
}

TEST(OwnValue, WhatCannotWorkSaysWhy) {
  const Decision decision = TwoNetworks(true);
  EXPECT_THAT(Check("NCCL_SOCKET_IFNAME", "docker", decision),
              HasSubstr("docker0 there, which is a virtual bridge"));
  EXPECT_THAT(Check("GLOO_SOCKET_IFNAME", "docker", decision), HasSubstr("means no interface there"));
  EXPECT_THAT(Check("GLOO_SOCKET_IFNAME", "=eth0", decision), HasSubstr("means no interface there"));
  EXPECT_THAT(Check("OMPI_MCA_btl_tcp_if_include", "10.9.0.0/16", decision), HasSubstr("no interface"));
}

TEST(OwnValue, AnExclusionMeansTheRest) {
  const Decision decision = TwoNetworks(true);
  EXPECT_EQ(Check("OMPI_MCA_btl_tcp_if_exclude", "lo,docker0", decision), "");
  EXPECT_EQ(Check("UCX_NET_DEVICES", "^eth0", decision), "");
  EXPECT_EQ(Check("OMPI_MCA_btl_tcp_if_exclude", "10.5.0.0/24", TwoNetworks(false)),
            "on node1, node2 it means eth1 there, which is not known to reach all hosts");
}

TEST(Variables, ThoseThatNameInterfacesAreKnown) {
  for (const char* name : {"NCCL_SOCKET_IFNAME", "UCX_NET_DEVICES", "OMPI_MCA_oob_tcp_if_include",
                           "OMPI_MCA_btl_tcp_if_exclude"}) {
    EXPECT_TRUE(NamesInterfaces(name)) << name;
  }
  for (const char* name : {"NCCL_SOCKET_FAMILY", "NCCL_P2P_DISABLE", "PATH"}) {
    EXPECT_FALSE(NamesInterfaces(name)) << name;
  }
}

TEST(MeansNoInterface, ByTheGrammarOfTheLibrary) {
  network::Interface card;
  card.name = "eth0";
  card.addresses = {{asio::ip::make_address("10.5.0.1"), 24}};
  const auto wrong = [&](const char* variable, const char* value) {
    return MeansNoInterface(variable, value, {card});
  };
  EXPECT_TRUE(wrong("GLOO_SOCKET_IFNAME", "eth7"));
  EXPECT_TRUE(wrong("GLOO_SOCKET_IFNAME", "eth"));
  EXPECT_TRUE(wrong("NCCL_SOCKET_IFNAME", "=eth"));
  EXPECT_TRUE(wrong("OMPI_MCA_btl_tcp_if_include", "10.9.0.0/16"));
  EXPECT_FALSE(wrong("GLOO_SOCKET_IFNAME", "eth0"));
  EXPECT_FALSE(wrong("NCCL_SOCKET_IFNAME", "eth"));
  EXPECT_FALSE(wrong("NCCL_SOCKET_IFNAME", "^eth7"));
  EXPECT_FALSE(wrong("OMPI_MCA_btl_tcp_if_include", "10.5.0.0/16"));
  EXPECT_FALSE(wrong("OMPI_MCA_btl_tcp_if_exclude", "eth7"));
  EXPECT_FALSE(wrong("UCX_NET_DEVICES", "mlx5_0:1"));
  EXPECT_FALSE(wrong("PATH", "eth7"));
}

TEST(Variables, OnlyOpenMpisHaveAnOpposite) {
  EXPECT_EQ(Opposite("OMPI_MCA_btl_tcp_if_include"), "OMPI_MCA_btl_tcp_if_exclude");
  EXPECT_EQ(Opposite("PRTE_MCA_prte_if_include"), "PRTE_MCA_prte_if_exclude");
  EXPECT_EQ(Opposite("NCCL_SOCKET_IFNAME"), "");
}

}  // namespace
}  // namespace dtrun::environments
