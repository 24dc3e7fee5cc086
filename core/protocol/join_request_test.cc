#include "core/protocol/join_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::protocol {
namespace {

using ::testing::HasSubstr;

TEST(JoinRequest, SurvivesItsLine) {
  const std::string digits(64, 'a');
  const JoinRequest request{"job",
                            {"10.0.0.1", "node0"},
                            4711,
                            *protocol::Key::FromHex(digits),
                            2,
                            {{1, "node1"}, {2, "node2"}},
                            std::chrono::seconds(300),
                            std::chrono::seconds(10),
                            "40000-40100"};
  const std::string line = ToLine(request, digits);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto parsed = ParseJoinRequest(line);
  ASSERT_TRUE(parsed) << parsed.error().text;
  EXPECT_EQ(parsed->names, request.names);
  EXPECT_EQ(parsed->port, 4711);
  EXPECT_EQ(parsed->host, 2);
  EXPECT_EQ(parsed->nodes, request.nodes);
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

TEST(JoinRequest, FindsANodeBySlurmsNameForIt) {
  const std::map<int, std::string> nodes = {{1, "node1"}, {2, "node2"}};
  EXPECT_EQ(*NumberAmong(nodes, "node2"), 2);
  EXPECT_THAT(NumberAmong(nodes, "node3").error().text, HasSubstr("'node3'"));
  EXPECT_FALSE(NumberAmong(nodes, nullptr));
}

}  // namespace
}  // namespace dtrun::protocol
