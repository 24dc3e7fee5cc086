#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/protocol/hello.h"

namespace dtrun::protocol {
namespace {

using ::testing::HasSubstr;

const std::string kDigits(64, 'a');

JoinRequest ARequest() {
  return {"job",
          {"10.0.0.1", "node0"},
          4711,
          *protocol::Key::FromHex(kDigits),
          2,
          {{1, "node1"}, {2, "node2"}},
          std::chrono::seconds(300),
          std::chrono::seconds(10),
          "40000-40100",
          "NODE"};
}

TEST(JoinRequest, SurvivesItsLine) {
  const std::string& digits = kDigits;
  const JoinRequest request = ARequest();
  const std::string line = ToLine(request, digits);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto parsed = ParseJoinRequest(line);
  ASSERT_TRUE(parsed) << parsed.error().text;
  EXPECT_EQ(parsed->names, request.names);
  EXPECT_EQ(parsed->port, 4711);
  EXPECT_EQ(parsed->host, 2);
  EXPECT_EQ(parsed->nodes, request.nodes);
  EXPECT_EQ(parsed->node_variable, "NODE");
  EXPECT_EQ(parsed->lost_after, std::chrono::seconds(10));
  EXPECT_EQ(parsed->port_range, "40000-40100");
  EXPECT_TRUE(std::equal(parsed->key.data(), parsed->key.data() + protocol::Key::kBytes, request.key.data()));
}

TEST(JoinRequest, RefusesWhatNoRootHasWrittenAndSaysWhatToDo) {
  for (const char* line : {"", "hello", "{}", "[1]", R"({"key": 3})"}) {
    const auto parsed = ParseJoinRequest(line);
    ASSERT_FALSE(parsed) << line;
    EXPECT_THAT(parsed.error().text, HasSubstr("dtrun --config FILE"));
  }
}

TEST(NumberAmong, FindsANodeByTheVariableThatNamesIt) {
  const JoinRequest request = ARequest();
  const auto never = [](const std::string&) { return false; };
  EXPECT_EQ(*NumberAmong(request, "node2", never), 2);
  EXPECT_THAT(NumberAmong(request, "node3", never).error().text, HasSubstr("NODE is 'node3'"));
  EXPECT_THAT(NumberAmong(request, nullptr, never).error().text, HasSubstr("NODE is unset"));
}

TEST(NumberAmong, AsksTheHostItselfWhereThereIsNoVariable) {
  JoinRequest request = ARequest();
  request.node_variable.clear();
  EXPECT_EQ(*NumberAmong(request, nullptr, [](const std::string& name) { return name == "node2"; }), 2);
  EXPECT_FALSE(NumberAmong(request, nullptr, [](const std::string&) { return false; }));
}

}  // namespace
}  // namespace dtrun::protocol
