#include "tools/dtrun/torchrun/grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::torchrun {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(Grammar, ReadsNumbersAsPythonDoes) {
  const struct {
    const char* text;
    std::optional<int> number;
  } cases[] = {{"4", 4},    {" 4 ", 4},
               {"+4", 4},   {"-1", -1},
               {"0", 0},    {"", {}},
               {"x", {}},   {"4x", {}},
               {"+", {}},   {"+-4", {}},
               {"4.0", {}}, {"99999999999", {}},
               {"-", {}},   {"2147483647", 2147483647}};
  for (const auto& c : cases) EXPECT_EQ(ParseInt(c.text), c.number) << c.text;
  EXPECT_EQ(ParseFloat("0.5"), 0.5);
  EXPECT_EQ(ParseFloat("5"), 5.0);
  EXPECT_EQ(ParseFloat("inf"), std::nullopt);
  EXPECT_EQ(ParseFloat("fast"), std::nullopt);
}

TEST(Grammar, ReadsOneNumberOfNodesOrARange) {
  EXPECT_EQ(*ParseNodes("3"), std::pair(3, 3));
  EXPECT_EQ(*ParseNodes("1:4"), std::pair(1, 4));
  for (const char* text : {"1:2:3", "x", "", ":", "1:", ":2"}) {
    const auto nodes = ParseNodes(text);
    ASSERT_FALSE(nodes.ok()) << text;
    EXPECT_EQ(nodes.error().text, std::string("expected N or MIN:MAX; found '") + text + "'");
  }
  for (const char* text : {"0", "-1", "3:2", "0:1"}) {
    const auto nodes = ParseNodes(text);
    ASSERT_FALSE(nodes.ok()) << text;
    EXPECT_THAT(nodes.error().text, HasSubstr("at least 1 node"));
  }
}

// Includes the vectors of torch's own test/distributed/elastic/rendezvous/utils_test.py.
TEST(Grammar, ReadsEndpoints) {
  const struct {
    const char* text;
    Endpoint endpoint;
  } cases[] = {
      {"", {"localhost", {}}},
      {"   ", {"localhost", {}}},
      {"dummy", {"dummy", {}}},
      {"dummy:123", {"dummy", 123}},
      {" dummy:0 ", {"dummy", 0}},
      {"dummy:65535", {"dummy", 65535}},
      {"dummy.foo_1-x:1", {"dummy.foo_1-x", 1}},
      {"127.0.0.1:29500", {"127.0.0.1", 29500}},
      {"[::1]", {"::1", {}}},
      {"[::1]:90", {"::1", 90}},
      {"[2001:db8::1]:65000", {"2001:db8::1", 65000}},
      {"fd00::2", {"fd00::2", {}}},
      {" 2001:db8::1:2950 ", {"2001:db8::1:2950", {}}},
  };
  for (const auto& c : cases) {
    const auto endpoint = MeetingPlace(c.text);
    ASSERT_TRUE(endpoint.ok()) << c.text << ": " << endpoint.error().text;
    EXPECT_EQ(*endpoint, c.endpoint) << c.text;
  }
}

TEST(Grammar, RefusesEndpointsThatTorchrunRefuses) {
  for (const char* text : {"dummy:", "dummy:5x", "dummy:65536", "dummy:100000", "dummy:+1", "dummy:-1", ":90",
                           "[]", "du mmy:1", "a/b:1", "user@host:1", "fd00:::2", "me@fd00::2"}) {
    EXPECT_FALSE(MeetingPlace(text).ok()) << text;
  }
}

TEST(Grammar, ReadsTheRendezvousConfig) {
  EXPECT_THAT(*ParseRendezvousConfig(" a = 1 ,b=x=y"), ElementsAre(Pair("a", "1"), Pair("b", "x=y")));
  EXPECT_THAT(*ParseRendezvousConfig("a=1,a=2"), ElementsAre(Pair("a", "2")));
  EXPECT_THAT(*ParseRendezvousConfig("  "), IsEmpty());
  for (const char* text : {"a", "a=", "=1", "a=1,", ",a=1"})
    EXPECT_FALSE(ParseRendezvousConfig(text).ok()) << text;
  EXPECT_EQ(ParseRendezvousConfig("=1,token=sekret1").error().text,
            "expected KEY=VALUE,KEY=VALUE; found '=1,token=(secret)'");
}

TEST(Grammar, ReadsStreamsOfAllRanksOrOfSome) {
  EXPECT_EQ(ParseStreams("0")->For(5), kNoStream);
  EXPECT_EQ(ParseStreams("3")->For(5), kStdout | kStderr);
  const auto some = ParseStreams("0:3,1:0,12:1");
  EXPECT_EQ(some->For(0), 3);
  EXPECT_EQ(some->For(1), 0);
  EXPECT_EQ(some->For(12), 1) << "torchrun itself takes ranks of one digit only";
  EXPECT_EQ(some->For(2), 0) << "ranks that are not named have none";
  for (const char* text :
       {"", "4", "33", "-1", "0:", ":1", "0:4", "0:1,", ",0:1", "0-1", "0:1,1", "a:1", "9999:1"}) {
    const auto streams = ParseStreams(text);
    ASSERT_FALSE(streams.ok()) << text;
    EXPECT_THAT(streams.error().text, HasSubstr(std::string("found '") + text + "'"));
  }
}

TEST(Grammar, ReadsListsOfRanksAndFilters) {
  EXPECT_THAT(*ParseRanks("0,2,11"), ElementsAre(0, 2, 11));
  EXPECT_THAT(*ParseRanks(""), IsEmpty());
  EXPECT_FALSE(ParseRanks("0,,1").ok());
  EXPECT_FALSE(ParseRanks("all").ok());
  EXPECT_THAT(ParseFilters("apple,orange"), ElementsAre("apple", "orange"));
  EXPECT_THAT(ParseFilters("a,,b,c"), ElementsAre("a,b", "c"));
  EXPECT_THAT(ParseFilters(""), ElementsAre(""));
}

TEST(Grammar, FillsThePrefixTemplate) {
  const std::map<std::string, std::string> values = {{"role_name", "trainer"}, {"rank", "7"}};
  EXPECT_EQ(ExpandPrefix("[${role_name}$rank]:", values), "[trainer7]:");
  EXPECT_EQ(ExpandPrefix("$$rank ${other} $ranks ${rank $", values), "$rank ${other} $ranks ${rank $");
  EXPECT_EQ(ExpandPrefix("", values), "");
}

}  // namespace
}  // namespace dtrun::torchrun
