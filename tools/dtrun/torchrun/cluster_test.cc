#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/dtrun/torchrun/arguments.h"
#include "tools/dtrun/torchrun/translate.h"

namespace dtrun::torchrun {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

Arguments Given(Words words) {
  words.push_back("train.py");
  const auto parsed = Parse(Program::kTorchrun, words, {});
  EXPECT_TRUE(parsed.ok()) << parsed.error().text;
  return parsed.ok() ? parsed->arguments : Arguments{};
}

Result<Rendezvous> Meet(const Words& words, bool is_this_host = false) {
  return RendezvousOf(Given(words), "uuid", [=](const std::string&, int) { return is_this_host; });
}

std::string Refusal(const Words& words) {
  const auto rendezvous = Meet(words);
  EXPECT_FALSE(rendezvous.ok());
  return rendezvous.ok() ? "" : rendezvous.error().text;
}

TEST(RendezvousOf, OneNodeNeedsNoPlace) {
  for (const Words& words : {Words{}, Words{"--standalone"}, Words{"--standalone", "--rdzv-backend", "etcd"},
                             Words{"--nnodes", "1:3", "--standalone", "--rdzv-endpoint", "h:1"}}) {
    const auto rendezvous = Meet(words);
    ASSERT_TRUE(rendezvous.ok()) << rendezvous.error().text;
    EXPECT_EQ(rendezvous->run_id, "uuid");
    EXPECT_EQ(rendezvous->host, "");
    EXPECT_EQ(rendezvous->port, std::nullopt);
    EXPECT_EQ(rendezvous->most_nodes, 1);
  }
  const auto c10d = Meet({"--rdzv-backend", "c10d", "--rdzv-endpoint", "elsewhere:1", "--rdzv-id", "j"});
  EXPECT_EQ(c10d->run_id, "j");
  EXPECT_EQ(c10d->host, "");
  EXPECT_EQ(Meet({"--rdzv-backend", "c10d", "--rdzv-id", ""})->run_id, "uuid");
}

TEST(RendezvousOf, StaticMeetsAtTheMasterOrTheEndpoint) {
  const auto port = Meet({"--master-port", "1234"});
  EXPECT_EQ(port->run_id, "none");
  EXPECT_EQ(port->host, "127.0.0.1");
  EXPECT_EQ(port->port, 1234);

  const auto nodes = Meet({"--nnodes", "2", "--node-rank", "1", "--master-addr", "[::1]"});
  EXPECT_EQ(nodes->host, "::1");
  EXPECT_EQ(nodes->port, 29500);
  EXPECT_EQ(nodes->node, 1);
  EXPECT_EQ(nodes->nodes, 2);

  for (const char* bare : {"fd00::2", "2001:db8::1:2950"})
    EXPECT_EQ(Meet({"--nnodes", "2", "--node-rank", "1", "--master-addr", bare})->host, bare);

  const auto endpoint = Meet({"--nnodes=1:2", "--rdzv-endpoint", "h:7", "--master-port", "8"});
  EXPECT_EQ(endpoint->host, "h");
  EXPECT_EQ(endpoint->port, 7);
  EXPECT_EQ(endpoint->nodes, 2) << "static is MAX nodes";
  EXPECT_EQ(Meet({"--nnodes=2", "--rdzv-endpoint", "h:7", "--rdzv-conf", "join_timeout=5"})->join_timeout,
            "5");
  EXPECT_EQ(
      Meet({"--nnodes=2", "--rdzv-endpoint", "h:7", "--rdzv-conf", "timeout=6,join_timeout=5"})->join_timeout,
      "6")
      << "torchrun's word for static";
}

TEST(RendezvousOf, C10dMakesTheEndpointsHostTheRoot) {
  const Words words = {"--nnodes",        "1:3", "--rdzv-backend", "c10d",
                       "--rdzv-endpoint", "h",   "--rdzv-conf",    "join_timeout=60"};
  const auto other = Meet(words, false);
  EXPECT_EQ(other->node, std::nullopt);
  EXPECT_EQ(other->port, 29400);
  EXPECT_EQ(other->nodes, 1);
  EXPECT_EQ(other->most_nodes, 3);
  EXPECT_EQ(other->join_timeout, "60");
  EXPECT_EQ(Meet(words, true)->node, 0);
  Words told = words;
  told.back() = "is_host=0";
  EXPECT_EQ(Meet(told, true)->node, std::nullopt) << "is_host is above what the name says";
  told.back() = "is_host=true";
  EXPECT_EQ(Meet(told, false)->node, 0);
}

TEST(RendezvousOf, RefusesByName) {
  EXPECT_THAT(Refusal({"--standalone", "--nnodes", "2"}),
              HasSubstr("--nnodes=2: --standalone is for one node"));
  EXPECT_THAT(Refusal({"--rdzv-backend", "etcd-v2"}), HasSubstr("--rdzv-backend=etcd-v2"));
  EXPECT_THAT(Refusal({"--nnodes", "2", "--rdzv-endpoint", "h"}),
              HasSubstr("static needs a port; write h:29500"));
  EXPECT_THAT(Refusal({"--nnodes", "2", "--node-rank", "2"}), HasSubstr("--node-rank=2: there are 2 nodes"));
  EXPECT_THAT(Refusal({"--nnodes", "2", "--master-addr", "a b"}),
              HasSubstr("--master-addr: expected a host name"));
  EXPECT_THAT(Refusal({"--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "h:x"}),
              HasSubstr("--rdzv-endpoint: 'h:x' has no port"));
  EXPECT_THAT(Refusal({"--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-conf", "store_type=file"}),
              HasSubstr("--rdzv-conf: store_type=file"));
  EXPECT_THAT(Refusal({"--nnodes", "2", "--rdzv-conf", "insecure=maybe"}),
              HasSubstr("--rdzv-conf: insecure=maybe: expected true or false"));
}

TEST(ClusterSettings, SaysWhereTheNodesMeetAndWhoThisOneIs) {
  const Arguments arguments = Given({"--nnodes", "2", "--node-rank", "1", "--master-addr", "[::1]",
                                     "--max-restarts", "3", "--rdzv-conf", "timeout=60"});
  const auto rendezvous = RendezvousOf(arguments, "", [](const std::string&, int) { return false; });
  std::map<std::string, std::string> values, places;
  for (const spec::Given& given : ClusterSettings(arguments, *rendezvous)) {
    values[given.key] = std::get<std::string>(given.value);
    places[given.key] = given.origin.place;
  }
  EXPECT_EQ(values, (std::map<std::string, std::string>{{"restart.max", "3"},
                                                        {"cluster.connect", "manual"},
                                                        {"cluster.root", "[::1]:29500"},
                                                        {"cluster.host_index", "1"},
                                                        {"cluster.host_count", "2"},
                                                        {"cluster.oversubscribe", "true"},
                                                        {"cluster.join_timeout", "60s"}}));
  EXPECT_EQ(places["cluster.root"], "--master-addr");
  const Arguments port =
      Given({"--nnodes", "2", "--node-rank", "1", "--master-addr", "h", "--master-port", "29501"});
  for (const spec::Given& given :
       ClusterSettings(port, *RendezvousOf(port, "", [](const std::string&, int) { return false; }))) {
    if (given.key == "cluster.root") {
      EXPECT_EQ(given.origin.place, "--master-port");
    }
  }
  EXPECT_EQ(places["restart.max"], "--max-restarts");
}

TEST(ClusterSettings, AnElasticJobSaysHowFewNodesWillDo) {
  const Arguments arguments = Given({"--nnodes", "2:4", "--rdzv-backend", "c10d", "--rdzv-endpoint", "h",
                                     "--rdzv-conf", "last_call_timeout=5"});
  const auto rendezvous = RendezvousOf(arguments, "", [](const std::string&, int) { return false; });
  std::map<std::string, std::string> values;
  for (const spec::Given& given : ClusterSettings(arguments, *rendezvous)) {
    values[given.key] = std::get<std::string>(given.value);
  }
  EXPECT_EQ(values, (std::map<std::string, std::string>{{"cluster.connect", "manual"},
                                                        {"cluster.root", "h:29400"},
                                                        {"cluster.host_count", "4"},
                                                        {"cluster.oversubscribe", "true"},
                                                        {"cluster.min_hosts", "2"},
                                                        {"cluster.last_call", "5s"}}));
}

}  // namespace
}  // namespace dtrun::torchrun
