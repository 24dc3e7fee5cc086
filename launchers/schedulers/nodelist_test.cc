#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launchers/schedulers/reading.h"

namespace dtrun::schedulers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string NodelistError(std::string_view text) {
  try {
    ExpandNodelist(text);
  } catch (const sdk::Failure& failure) {
    return failure.what();
  }
  return "no error";
}

TEST(ExpandNodelist, ExpandsRangesWithTheirZeros) {
  EXPECT_THAT(ExpandNodelist("node[1-3,07-09]"),
              ElementsAre("node1", "node2", "node3", "node07", "node08", "node09"));
  EXPECT_THAT(ExpandNodelist("n[8-11]"), ElementsAre("n8", "n9", "n10", "n11"));
  EXPECT_THAT(ExpandNodelist("n[098-100]"), ElementsAre("n098", "n099", "n100"));
}

TEST(ExpandNodelist, ExpandsSeveralBracketsWithTheLastFastest) {
  EXPECT_THAT(ExpandNodelist("gpu-[a,b][01-02]-ib"),
              ElementsAre("gpu-a01-ib", "gpu-a02-ib", "gpu-b01-ib", "gpu-b02-ib"));
}

TEST(ExpandNodelist, TakesPlainNamesAndSeveralGroups) {
  EXPECT_THAT(ExpandNodelist("login"), ElementsAre("login"));
  EXPECT_THAT(ExpandNodelist("a1,b[2-3],c4"), ElementsAre("a1", "b2", "b3", "c4"));
}

TEST(ExpandNodelist, RefusesMalformedLists) {
  EXPECT_THAT(NodelistError(""), HasSubstr("an empty name"));
  EXPECT_THAT(NodelistError("a,,b"), HasSubstr("an empty name"));
  EXPECT_THAT(NodelistError("a[1-2"), HasSubstr("'[' is not closed"));
  EXPECT_THAT(NodelistError("a[]"), HasSubstr("an empty element"));
  EXPECT_THAT(NodelistError("a[1,]"), HasSubstr("an empty element"));
  EXPECT_THAT(NodelistError("a[3-1]"), HasSubstr("range '3-1' runs backwards"));
  EXPECT_THAT(NodelistError("a[1-]"), HasSubstr("range '1-' has no last number"));
  EXPECT_THAT(NodelistError("a[1-b]"), HasSubstr("range '1-b' has no last number"));
  EXPECT_THAT(NodelistError("a]"), HasSubstr("'a]' is not a host name"));
  EXPECT_THAT(NodelistError("a[[1]]"), HasSubstr("'a[1]' is not a host name"));
  EXPECT_THAT(NodelistError("a b"), HasSubstr("'a b' is not a host name"));
  EXPECT_THAT(NodelistError("a[1-2],a2"), HasSubstr("host 'a2' is in it twice"));
}

TEST(ExpandNodelist, StaysSmallWhateverTheRange) {
  EXPECT_THAT(ExpandNodelist("n[1-65536]"), SizeIs(65536));
  EXPECT_THAT(NodelistError("n[1-65537]"), HasSubstr("more than 65536 hosts"));
  EXPECT_THAT(NodelistError("n[0-999999999]"), HasSubstr("more than 65536 hosts"));
  EXPECT_THAT(NodelistError("n[1-9999999999]"), HasSubstr("at most 9 digits"));
  EXPECT_THAT(NodelistError("n[1-60000,60001-120000]"), HasSubstr("more than 65536 hosts"));
  std::string many = "n[";
  for (int i = 0; i < 10'000; ++i) many += "0-65535,";
  EXPECT_THAT(NodelistError(many + "1]"), HasSubstr("more than 65536 hosts"));
  EXPECT_THAT(NodelistError(std::string(100'000, 'n') + "[0-65535]"), HasSubstr("more than 255 characters"));
  EXPECT_THAT(NodelistError("n[1-999][1-999]"), HasSubstr("more than 65536 hosts"));
  EXPECT_THAT(NodelistError("n[1-60000],m[1-60000]"), HasSubstr("more than 65536 hosts"));
}

TEST(ExpandCounts, ExpandsRepetitions) {
  EXPECT_THAT(ExpandCounts("2(x3),1"), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(ExpandCounts("48"), ElementsAre(48));
}

TEST(ExpandCounts, RefusesMalformedCounts) {
  for (const char* text :
       {"", "2(x3", "2(x)", "2(x0)", "(x3)", "a", "2(3)", "-1", "2,", "2(x99999)", "9999999999"}) {
    EXPECT_THROW(ExpandCounts(text), sdk::Failure) << text;
  }
}

TEST(CompressCounts, IsTheInverse) {
  EXPECT_EQ(CompressCounts({2, 2, 2, 1}), "2(x3),1");
  EXPECT_EQ(CompressCounts({1, 2, 2}), "1,2(x2)");
  EXPECT_EQ(CompressCounts({}), "");
}

}  // namespace
}  // namespace dtrun::schedulers
