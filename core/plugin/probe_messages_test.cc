#include "core/plugin/probe_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::string EveryByte() {
  std::string bytes;
  for (int byte = 1; byte < 256; ++byte) bytes += static_cast<char>(byte);
  return bytes;
}

template <class T>
T Through(const T& message) {
  if constexpr (std::is_constructible_v<FromProbe, T>) {
    return std::get<T>(DecodeAnswer(Encode(FromProbe(message)).substr(4)).value());
  } else {
    return std::get<T>(DecodeRequest(Encode(ToProbe(message)).substr(4)).value());
  }
}

LaunchPlan Carried(const LaunchPlan& sent) {
  LaunchPlan read;
  AddTo(&read, Through(PartOf(sent, false)));
  return read;
}

TEST(ProbeMessages, CarryADescription) {
  Description sent;
  sent.file.name = "demo";
  sent.version = "1";
  sent.abi = "0.1";
  options::Spec spec;
  spec.key = "backend.options.mode";
  spec.type = options::Type::kEnum;
  spec.default_text = "a";
  spec.choices = {"a", "b"};
  spec.secret = true;
  sent.options = {spec};
  const Description got = Through(sent);
  EXPECT_EQ(got.file.name, "demo");
  ASSERT_EQ(got.options.size(), 1u);
  EXPECT_EQ(got.options[0].type, options::Type::kEnum);
  EXPECT_EQ(got.options[0].default_text, "a");
  EXPECT_EQ(got.options[0].min_text, std::nullopt);
  EXPECT_THAT(got.options[0].choices, ElementsAre("a", "b"));
  EXPECT_TRUE(got.options[0].secret);
}

TEST(ProbeMessages, CarryRequestsAndAnswers) {
  EXPECT_EQ(Through(LaunchRequest{"{\n}", 3, 2}).options, "{\n}");
  EXPECT_EQ(Through(LaunchRequest{"{}", 3, 2}).local_ranks, 2);
  const LaunchInfo info = Through(LaunchInfo{{{"library", "x 1"}}, {{"A", EveryByte()}}});
  EXPECT_THAT(info.facts, ElementsAre(Pair("library", "x 1")));
  EXPECT_THAT(info.env, ElementsAre(Pair("A", EveryByte())));
  const Error error = Through(Error{DTRUN_VENDOR, "no device", 4});
  EXPECT_EQ(error.code, DTRUN_VENDOR);
  EXPECT_EQ(error.text, "no device");
  EXPECT_EQ(error.peer, 4);
}

TEST(ProbeMessages, AreErrorsIfTheyAreBroken) {
  for (const char* frame : {"", "hello", "\x7f", "\1\1"}) {
    const auto got = DecodeAnswer(frame);
    ASSERT_FALSE(got.ok()) << frame;
    EXPECT_THAT(got.error().text, HasSubstr("malformed answer of a plugin probe")) << frame;
  }
}

TEST(ProbeMessages, CarryAnAllocation) {
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
  const hosts::Allocation read = Through(sent);
  EXPECT_EQ(read.hosts, sent.hosts);
  EXPECT_EQ(read.count, sent.count);
  EXPECT_TRUE(read.everywhere && read.rank_port_taken);
  EXPECT_EQ(read.own_index, 1);
  EXPECT_EQ(read.root_address, "node0");
  EXPECT_EQ(read.rank_port, 29500);
  EXPECT_EQ(read.processes_per_host, "gpu");
  EXPECT_EQ(read.evidence, "A_VARIABLE");
  EXPECT_THAT(read.implies, ElementsAre("pmi"));
  EXPECT_EQ(read.sharing, "export it");
}

TEST(ProbeMessages, CarryACallAndItsCommands) {
  const ConnectCall sent{"{}", {{"node1", "node2"}, {"/opt/dtrun", EveryByte()}, {{"A", "1"}}}};
  const ConnectCall call = Through(sent);
  EXPECT_EQ(call.request.hosts, sent.request.hosts);
  EXPECT_EQ(call.request.argv, sent.request.argv);
  EXPECT_EQ(call.request.environment, sent.request.environment);
  const auto commands = Through(StartCommands{{{{"srun", EveryByte()}, {0, 1}, "N", "try", ": t"}}}).commands;
  ASSERT_EQ(commands.size(), 1u);
  EXPECT_THAT(commands[0].argv, ElementsAre("srun", EveryByte()));
  EXPECT_THAT(commands[0].hosts, ElementsAre(0u, 1u));
  EXPECT_EQ(commands[0].host_variable, "N");
  EXPECT_EQ(commands[0].trial, "try");
  EXPECT_EQ(commands[0].ending, ": t");
}

TEST(ProbeMessages, CarryAJobWhateverBytesItHas) {
  PlanRequest sent;
  sent.options = "{}";
  sent.job.name = "demo";
  sent.job.argv = {"prog", EveryByte(), ""};
  sent.job.hosts = {{"node0", 0, 2, 8}, {"node1", 2, 1, 4}};
  sent.job.world_size = 3;
  sent.job.inherited = {{"A", "1"}, {EveryByte(), EveryByte()}};
  const PlanRequest read = Through(sent);
  EXPECT_EQ(read.job.argv, sent.job.argv);
  EXPECT_EQ(read.job.inherited, sent.job.inherited);
  EXPECT_EQ(read.job.world_size, 3);
  ASSERT_EQ(read.job.hosts.size(), 2u);
  EXPECT_EQ(read.job.hosts[1].name, "node1");
  EXPECT_EQ(read.job.hosts[1].first_rank, 2);
  EXPECT_EQ(read.job.hosts[1].cores, 4);
}

TEST(ProbeMessages, CarryAPlan) {
  LaunchPlan sent;
  sent.processes.push_back({1, 2, 0, 3, {"a", EveryByte()}, {{"X", EveryByte()}}, {"GONE"}, "/w"});
  sent.notes = {"note"};
  const LaunchPlan read = Carried(sent);
  ASSERT_EQ(read.processes.size(), 1u);
  const PlannedProcess& process = read.processes[0];
  EXPECT_EQ(process.host, 1);
  EXPECT_EQ(process.rank, 2);
  EXPECT_EQ(process.local_rank, 0);
  EXPECT_EQ(process.rank_count, 3);
  EXPECT_THAT(process.argv, ElementsAre("a", EveryByte()));
  EXPECT_THAT(process.env, ElementsAre(Pair("X", EveryByte())));
  EXPECT_THAT(process.unset, ElementsAre("GONE"));
  EXPECT_EQ(process.cwd, "/w");
  EXPECT_THAT(read.notes, ElementsAre("note"));
}

TEST(ProbeMessages, TellEachProcessByWhatItHasAlone) {
  LaunchPlan sent;
  constexpr int kRanks = 1000;
  const auto shared =
      std::make_shared<const ProcessVariables::Map>(ProcessVariables::Map{{"SAME", std::string(200, 'x')}});
  for (const bool sharing : {false, true}) {
    sent.processes.clear();
    for (int rank = 0; rank < kRanks; ++rank) {
      sent.processes.push_back({rank / 2,
                                rank,
                                rank % 2,
                                1,
                                {"prog", "--same"},
                                {{"SAME", std::string(200, 'x')}, {"RANK", std::to_string(rank)}},
                                {},
                                "/w"});
      if (sharing) sent.processes.back().env.ShareWith(shared);
    }
    sent.processes[7].argv = {"other"};
    sent.processes[8].unset = {"GONE"};
    sent.processes[9].cwd = "/elsewhere";
    sent.processes[10].env = {{"RANK", "10"}};  // without SAME
    sent.processes[11].env["MORE"] = "";
    EXPECT_LT(Encode(FromProbe(PartOf(sent, false))).size(), 100u * kRanks);
    const LaunchPlan read = Carried(sent);
    ASSERT_EQ(read.processes.size(), sent.processes.size());
    for (std::size_t i = 0; i < sent.processes.size(); ++i) {
      const PlannedProcess &one = read.processes[i], &other = sent.processes[i];
      EXPECT_EQ(std::tie(one.host, one.rank, one.local_rank, one.argv, one.unset, one.cwd),
                std::tie(other.host, other.rank, other.local_rank, other.argv, other.unset, other.cwd))
          << i;
      EXPECT_EQ(one.env, other.env) << i;
    }
  }
}

TEST(ProbeMessages, CarryAPlanInParts) {
  LaunchPlan first, last, read;
  first.processes.push_back({0, 0, 0, 1, {"a"}, {{"X", "0"}}, {}, "/w"});
  last.processes.push_back({0, 1, 1, 1, {"a"}, {{"X", "1"}}, {}, "/w"});
  AddTo(&read, Through(PartOf(first, true)));
  AddTo(&read, Through(PartOf(last, false)));
  ASSERT_EQ(read.processes.size(), 2u);
  EXPECT_EQ(read.processes[1].env.at("X"), "1");
}

}  // namespace
}  // namespace dtrun::plugin
