#include "core/plugin/hosts_wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::plugin::wire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kBytes[] = "\xff\x01 \xc3\xa9";

TEST(HostsWire, CarriesAnEnvironmentWhateverBytesItHas) {
  const auto read = DecodeHostsRequest(Encode(HostsRequest{"{}", {{"A", kBytes}, {kBytes, "1"}}}));
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(read->environment, (hosts::Environment{{"A", kBytes}, {kBytes, "1"}}));
}

TEST(HostsWire, CarriesAnAllocation) {
  hosts::Allocation sent;
  sent.hosts = {{"node0", 4}, {"node1", {}}};
  sent.count = {1, 2};
  sent.everywhere = sent.rank_port_taken = true;
  sent.own_index = 1;
  sent.root_address = "node0";
  sent.rank_port = 29500;
  sent.processes_per_host = "gpu";
  sent.evidence = "A_VARIABLE";
  sent.implies = {"pmi"};
  sent.sharing = "export it";
  const auto read = DecodeAllocation(Encode(sent));
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(read->hosts, sent.hosts);
  EXPECT_EQ(read->count, sent.count);
  EXPECT_TRUE(read->everywhere && read->rank_port_taken);
  EXPECT_EQ(read->own_index, 1);
  EXPECT_EQ(read->root_address, "node0");
  EXPECT_EQ(read->rank_port, 29500);
  EXPECT_EQ(read->processes_per_host, "gpu");
  EXPECT_EQ(read->evidence, "A_VARIABLE");
  EXPECT_THAT(read->implies, ElementsAre("pmi"));
  EXPECT_EQ(read->sharing, "export it");
}

TEST(HostsWire, CarriesACallAndItsCommands) {
  const ConnectCall sent{"{}", {{"node1", "node2"}, {"/opt/dtrun", kBytes}, {{"A", "1"}}}};
  const auto call = DecodeConnectCall(Encode(sent));
  ASSERT_TRUE(call) << call.error().text;
  EXPECT_EQ(call->request.hosts, sent.request.hosts);
  EXPECT_EQ(call->request.argv, sent.request.argv);
  EXPECT_EQ(call->request.environment, sent.request.environment);
  const auto commands =
      DecodeCommands(Encode(std::vector<hosts::StartCommand>{{{"srun", kBytes}, {0, 1}, "N", "try", ": t"}}));
  ASSERT_TRUE(commands) << commands.error().text;
  ASSERT_EQ(commands->size(), 1u);
  EXPECT_THAT((*commands)[0].argv, ElementsAre("srun", kBytes));
  EXPECT_THAT((*commands)[0].hosts, ElementsAre(0u, 1u));
  EXPECT_EQ((*commands)[0].host_variable, "N");
  EXPECT_EQ((*commands)[0].trial, "try");
  EXPECT_EQ((*commands)[0].ending, ": t");
}

TEST(HostsWire, MakesAnErrorOfWhatIsNoAnswer) {
  for (const char* line : {"", "{}", R"({"allocation": 3})", R"({"allocation": {"hosts": [[]]}})"}) {
    const auto read = DecodeAllocation(line);
    ASSERT_FALSE(read) << line;
    EXPECT_THAT(read.error().text, HasSubstr("invalid answer")) << line;
  }
  EXPECT_FALSE(DecodeCommands(R"({"commands": [{}]})"));
}

}  // namespace
}  // namespace dtrun::plugin::wire
