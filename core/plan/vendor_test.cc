#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/network/testing.h"
#include "core/plan/steps.h"

namespace dtrun::plan {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

using Variables = std::map<std::string, std::string>;

struct Vendor : ::testing::Test {
  std::vector<Variables> Of(const network::Decision* network) {
    by_host.resize(2, Variables(backend.begin(), backend.end()));
    return VendorEnvironments({hosts, by_host, network, user, inherited}, &notes);
  }
  std::vector<Host> hosts{{"node1"}, {"node2"}};
  std::vector<std::pair<std::string, std::string>> backend;  // of both hosts
  std::vector<Variables> by_host;
  Variables user, inherited;
  std::vector<std::string> notes;
};

TEST_F(Vendor, EveryLibraryHearsOfTheNetwork) {
  const network::Decision decision = network::TwoNetworks();
  EXPECT_THAT(Of(&decision)[1], AllOf(Contains(Pair("GLOO_SOCKET_IFNAME", "eth0")),
                                      Contains(Pair("OMPI_MCA_btl_tcp_if_include", "eth0"))));
  EXPECT_THAT(notes, IsEmpty());
}

TEST_F(Vendor, AVariableOfTheUsersWinsAndIsChecked) {
  const network::Decision decision = network::TwoNetworks(false);
  inherited = {{"GLOO_SOCKET_IFNAME", "eth1"}};
  user = {{"NCCL_SOCKET_IFNAME", "=eth0"}};
  EXPECT_THAT(Of(&decision)[0],
              AllOf(Not(Contains(Key("GLOO_SOCKET_IFNAME"))), Not(Contains(Key("NCCL_SOCKET_IFNAME")))));
  EXPECT_THAT(
      notes,
      ElementsAre("GLOO_SOCKET_IFNAME=eth1 is yours and is kept; dtrun would set eth0; on node1, node2 it "
                  "means eth1 there, which is not known to reach all hosts"));
}

TEST_F(Vendor, AnOptionOfTheBackendWinsAndIsChecked) {
  const network::Decision decision = network::TwoNetworks();
  backend = {{"GLOO_SOCKET_IFNAME", "eth7"}};
  EXPECT_THAT(Of(&decision)[0], Contains(Pair("GLOO_SOCKET_IFNAME", "eth7")));
  EXPECT_THAT(
      notes,
      ElementsAre("GLOO_SOCKET_IFNAME=eth7 is what backend.options say and is kept; dtrun would set eth0; "
                  "on node1, node2 it means no interface there"));
}

TEST_F(Vendor, WhatABackendRepeatsIsStillTheUsers) {
  const network::Decision decision = network::TwoNetworks();
  backend = {{"UCX_NET_DEVICES", "eth1"}};
  inherited = {{"UCX_NET_DEVICES", "eth1"}};
  Of(&decision);
  EXPECT_THAT(notes, ElementsAre("UCX_NET_DEVICES=eth1 is yours and is kept; dtrun would set eth0"));
}

TEST_F(Vendor, AVariableStandsAgainstAnOption) {
  const network::Decision decision = network::TwoNetworks();
  backend = {{"NCCL_SOCKET_IFNAME", "=eth1"}};
  user = {{"NCCL_SOCKET_IFNAME", "=eth0"}};
  Of(&decision);
  EXPECT_THAT(notes, ElementsAre("NCCL_SOCKET_IFNAME==eth0 is yours and is kept; dtrun would set =eth1"));
}

TEST_F(Vendor, NothingIsIncludedBesideAnExclusion) {
  const network::Decision decision = network::TwoNetworks();
  user = {{"OMPI_MCA_btl_tcp_if_exclude", "lo,eth0"}};
  const Variables first = Of(&decision)[0];
  EXPECT_THAT(first, AllOf(Not(Contains(Key("OMPI_MCA_btl_tcp_if_include"))),
                           Contains(Pair("OMPI_MCA_oob_tcp_if_include", "eth0"))));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0],
              HasSubstr("dtrun would set OMPI_MCA_btl_tcp_if_include=eth0, which conflicts with it"));
}

TEST_F(Vendor, AnOptionThatMeansAnotherInterfaceOnEachHostIsCheckedThere) {
  const network::Decision decision = network::TwoNetworks();
  by_host = {{{"GLOO_SOCKET_IFNAME", "eth1"}}, {{"GLOO_SOCKET_IFNAME", "eth7"}}};
  Of(&decision);
  EXPECT_THAT(notes,
              ElementsAre("node1: GLOO_SOCKET_IFNAME=eth1; node2: GLOO_SOCKET_IFNAME=eth7 is what "
                          "backend.options say and is kept; dtrun would set eth0; on node2 it means no "
                          "interface there"));
}

TEST_F(Vendor, WhatOneHostMustDoWithoutNoneUses) {
  hosts[1].backend_facts = {{"agree NCCL_P2P_DISABLE", "1"}, {"agree DTRUN_P2P", "off"}};
  by_host = {{{"NCCL_P2P_DISABLE", "1"}, {"DTRUN_P2P", "off"}}, {{"DTRUN_P2P", "on"}}};
  for (const Variables& host : Of(nullptr))
    EXPECT_THAT(host, ElementsAre(Pair("DTRUN_P2P", "off"), Pair("NCCL_P2P_DISABLE", "1")));
  EXPECT_THAT(notes,
              ElementsAre("DTRUN_P2P=off on all hosts, because node1 needs it and ranks must agree",
                          "NCCL_P2P_DISABLE=1 on all hosts, because node1 needs it and ranks must agree"));
}

TEST_F(Vendor, OnlyWhatTheBackendDeclaresIsAgreedOn) {
  by_host = {{{"NCCL_P2P_DISABLE", "1"}}, {}};
  EXPECT_THAT(Of(nullptr)[1], IsEmpty());
  EXPECT_THAT(notes, IsEmpty());
}

TEST_F(Vendor, WhatTheUserHasSetIsNotAgreedOn) {
  hosts[0].backend_facts = {{"agree NCCL_P2P_DISABLE", "1"}};
  by_host = {{{"NCCL_P2P_DISABLE", "1"}}, {}};
  inherited = {{"NCCL_P2P_DISABLE", "0"}};
  for (const Variables& host : Of(nullptr)) EXPECT_THAT(host, IsEmpty());
}

TEST_F(Vendor, WithoutANetworkTheBackendsOwnAreLeft) {
  backend = {{"NCCL_P2P_DISABLE", "1"}};
  inherited = {{"NCCL_P2P_DISABLE", "0"}};
  EXPECT_THAT(Of(nullptr)[0], IsEmpty());
  EXPECT_THAT(notes, ElementsAre("NCCL_P2P_DISABLE=0 is yours and is kept; dtrun would set 1"));
}

}  // namespace
}  // namespace dtrun::plan
