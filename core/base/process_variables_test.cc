#include "core/base/process_variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace dtrun {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

const auto kShared = std::make_shared<const ProcessVariables::Map>(
    ProcessVariables::Map{{"B", "1"}, {"D", "2"}, {"RANK", "0"}});

ProcessVariables OfRank(const std::string& rank) {
  ProcessVariables variables = {{"A", "a"}, {"B", "1"}, {"D", "2"}, {"RANK", rank}, {"Z", "z"}};
  variables.ShareWith(kShared);
  return variables;
}

TEST(ProcessVariables, ReadAlikeWhetherSharedOrNot) {
  const ProcessVariables variables = OfRank("7");
  EXPECT_EQ(variables.shared(), kShared);
  EXPECT_THAT(variables,
              ElementsAre(Pair("A", "a"), Pair("B", "1"), Pair("D", "2"), Pair("RANK", "7"), Pair("Z", "z")));
  EXPECT_EQ(variables.size(), 5u);
  EXPECT_EQ(variables.at("RANK"), "7");
  EXPECT_EQ(variables.at("D"), "2");
  EXPECT_THROW(variables.at("C"), std::out_of_range);
  EXPECT_EQ(variables.find("B")->second, "1");
  EXPECT_EQ((++variables.find("B"))->first, "D");
  EXPECT_EQ(variables.find("RANK")->second, "7");
  EXPECT_EQ(variables.find("C"), variables.end());
  EXPECT_FALSE(variables.contains("C"));
  EXPECT_EQ(variables, ProcessVariables({{"A", "a"}, {"B", "1"}, {"D", "2"}, {"RANK", "7"}, {"Z", "z"}}));
}

TEST(ProcessVariables, ChangeForOneProcessAlone) {
  ProcessVariables first = OfRank("0");
  const ProcessVariables second = first;
  first["B"] += "0";
  first["C"] = "3";
  EXPECT_FALSE(first.emplace("D", "9"));
  EXPECT_TRUE(first.emplace("E", "5"));
  EXPECT_EQ(first.at("B"), "10");
  EXPECT_EQ(first.at("C"), "3");
  EXPECT_EQ(first.at("D"), "2");
  EXPECT_EQ(second, OfRank("0"));
}

TEST(ProcessVariables, OfAProcessThatLacksOneAreItsOwn) {
  ProcessVariables variables = {{"B", "1"}, {"RANK", "1"}};
  variables.ShareWith(kShared);
  EXPECT_THAT(variables, ElementsAre(Pair("B", "1"), Pair("RANK", "1")));
}

TEST(ProcessVariables, AreReplacedOnceForAllThatShareThem) {
  ProcessVariables first = OfRank("0"), second = OfRank("1");
  ProcessVariables::Known known;
  int calls = 0;
  const auto doubled = [&](const std::string& value) {
    ++calls;
    return value + value;
  };
  first.Replace(doubled, &known);
  second.Replace(doubled, &known);
  EXPECT_EQ(first.at("B"), "11");
  EXPECT_EQ(second.at("RANK"), "11");
  EXPECT_EQ(first.shared(), second.shared());
  EXPECT_EQ(calls, 2 + 3 + 3);  // A and Z; three shared ones; RANK, A and Z
  EXPECT_EQ(kShared->at("B"), "1");
}

}  // namespace
}  // namespace dtrun
