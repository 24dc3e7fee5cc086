#include "core/job/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::job {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// Two hosts with one rank each, on a known network.
plan::Plan TwoHosts() {
  plan::Plan plan;
  plan.network = "10.0.0.0/24";
  plan.hosts = {{.name = "node0", .address = "10.0.0.1"}, {.name = "node1", .address = "10.0.0.2"}};
  plan.processes.resize(2);
  return plan;
}

TEST(Rendezvous, TellsEachHostOfTheOthersAndOfItself) {
  boost::asio::io_context loop;
  const plan::Plan plan = TwoHosts();
  const std::vector<membership::RemoteHost*> remote(2);
  const auto rendezvous = Rendezvous::Open(
      loop, plan, remote,
      {{.master_port = 4000, .task_ports = {}, .store = "/a/store", .recorder = "/a/recorder"},
       {.task_ports = {{1, 4001}}, .store = "/b/store", .recorder = "/b/recorder"}});
  ASSERT_TRUE(rendezvous);
  const std::vector<Tokens> tokens = rendezvous->TokensFor({{"given", "to all"}});
  ASSERT_EQ(tokens.size(), 2u);
  EXPECT_THAT(
      tokens[1],
      UnorderedElementsAre(Pair("given", "to all"), Pair(plan::kTokenPort, "4000"),
                           Pair(plan::kTokenAddress, "10.0.0.1"), Pair(plan::HostAddressToken(1), "10.0.0.2"),
                           Pair(plan::TaskPortToken(1), "4001"), Pair(plan::kTokenStore, "/b/store"),
                           Pair(plan::kTokenRecorder, "/b/recorder")));
  EXPECT_EQ(tokens[0].at(plan::kTokenStore), "/a/store");
  EXPECT_EQ(tokens[0].at(plan::kTokenAddress), "10.0.0.1");
  EXPECT_THAT(rendezvous->Ports(), ElementsAre(4000, 4001));
}

TEST(Rendezvous, OfOneHostNeedsNoAddresses) {
  boost::asio::io_context loop;
  plan::Plan plan;
  plan.processes.resize(1);
  const std::vector<membership::RemoteHost*> remote(1);
  const auto rendezvous = Rendezvous::Open(
      loop, plan, remote, {{.task_ports = {}, .store = "/a/store", .recorder = "/a/recorder"}});
  ASSERT_TRUE(rendezvous);
  EXPECT_THAT(rendezvous->TokensFor({}),
              ElementsAre(UnorderedElementsAre(Pair(plan::kTokenStore, "/a/store"),
                                               Pair(plan::kTokenRecorder, "/a/recorder"))));
  EXPECT_THAT(rendezvous->Ports(), IsEmpty());
}

TEST(Rendezvous, ServesHorovodWhereThePlanAsksForIt) {
  boost::asio::io_context loop;
  plan::Plan plan = TwoHosts();
  plan.dialects = {"horovod"};
  const std::vector<membership::RemoteHost*> remote(2);
  const auto rendezvous = Rendezvous::Open(loop, plan, remote, {{}, {}});
  ASSERT_TRUE(rendezvous) << rendezvous.error().text;
  ASSERT_EQ(rendezvous->Ports().size(), 1u);
  EXPECT_THAT(rendezvous->TokensFor({})[1],
              ::testing::Contains(Pair("⟦rendezvous_port⟧", std::to_string(rendezvous->Ports()[0]))));
}

}  // namespace
}  // namespace dtrun::job
