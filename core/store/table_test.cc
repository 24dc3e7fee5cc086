#include "core/store/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Table, KeepsTheLastValue) {
  Table table;
  EXPECT_EQ(table.Find("k"), nullptr);
  EXPECT_TRUE(table.Set("k", "a"));
  EXPECT_TRUE(table.Set("k", "b"));
  ASSERT_NE(table.Find("k"), nullptr);
  EXPECT_EQ(*table.Find("k"), "b");
}

TEST(Table, CountsFromZeroAndBelow) {
  Table table;
  EXPECT_EQ(*table.Add("n", 5), 5);
  EXPECT_EQ(*table.Add("n", -7), -2);
  EXPECT_EQ(*table.Find("n"), "-2");
}

TEST(Table, RefusesToAddToWhatIsNoCounter) {
  Table table;
  EXPECT_TRUE(table.Set("n", "12x"));
  ASSERT_FALSE(table.Add("n", 1).ok());
  EXPECT_THAT(table.Add("n", 1).error().text, HasSubstr("'n'"));
  EXPECT_EQ(*table.Find("n"), "12x");
}

TEST(Table, RefusesASumThatOverflowsAndKeepsTheValue) {
  Table table;
  ASSERT_TRUE(table.Add("n", INT64_MAX).ok());
  EXPECT_FALSE(table.Add("n", 1).ok());
  EXPECT_EQ(*table.Add("n", 0), INT64_MAX);
}

TEST(Table, ComparesBeforeItSets) {
  Table table;
  const std::string old = "old";
  EXPECT_FALSE(*table.CompareSet("k", &old, "x"));
  EXPECT_TRUE(*table.CompareSet("k", nullptr, "old"));
  EXPECT_FALSE(*table.CompareSet("k", nullptr, "x"));
  EXPECT_TRUE(*table.CompareSet("k", &old, "new"));
  EXPECT_EQ(*table.Find("k"), "new");
}

TEST(Table, SaysWhetherAnErasedKeyExisted) {
  Table table;
  EXPECT_TRUE(table.Set("k", "v"));
  EXPECT_TRUE(table.Erase("k"));
  EXPECT_FALSE(table.Erase("k"));
}

TEST(Table, AnswersAWaitForPresentKeysAtOnce) {
  Table table;
  EXPECT_TRUE(table.Set("a", ""));
  EXPECT_EQ(table.Wait({"a", "a"}, [](const std::string*) { FAIL(); }), 0u);
  EXPECT_EQ(table.Wait({}, [](const std::string*) { FAIL(); }), 0u);
}

TEST(Table, WakesAWaitWhenItsLastKeyArrivesAndOnlyOnce) {
  Table table;
  int woken = 0;
  EXPECT_NE(
      table.Wait({"a", "b", "c"}, [&](const std::string* failed) { woken += failed == nullptr ? 1 : 100; }),
      0u);
  EXPECT_TRUE(table.Set("c", ""));
  EXPECT_TRUE(table.Set("a", ""));
  EXPECT_EQ(woken, 0);
  EXPECT_TRUE(table.Set("b", ""));
  EXPECT_TRUE(table.Set("b", "again"));
  EXPECT_EQ(woken, 1);
  EXPECT_EQ(table.waits(), 0u);
}

TEST(Table, WaitsAgainForAKeyThatWasErasedMeanwhile) {
  Table table;
  int woken = 0;
  table.Wait({"a", "b"}, [&](const std::string* failed) { woken += failed == nullptr ? 1 : 100; });
  EXPECT_TRUE(table.Set("a", ""));
  table.Erase("a");
  EXPECT_TRUE(table.Set("b", ""));
  EXPECT_EQ(woken, 0);
  EXPECT_TRUE(table.Set("a", ""));
  EXPECT_EQ(woken, 1);
}

TEST(Table, CountersWakeToo) {
  Table table;
  int woken = 0;
  table.Wait({"n"}, [&](const std::string* failed) { woken += failed == nullptr ? 1 : 100; });
  ASSERT_TRUE(table.Add("n", 0).ok());
  EXPECT_EQ(woken, 1);
}

TEST(Table, NeverWakesACancelledWait) {
  Table table;
  const std::uint64_t wait = table.Wait({"a"}, [](const std::string*) { FAIL(); });
  table.Cancel(wait);
  table.Cancel(wait);
  EXPECT_TRUE(table.Set("a", ""));
  EXPECT_EQ(table.waits(), 0u);
}

TEST(Table, LetsAWokenWaitCancelAnother) {
  Table table;
  std::vector<int> woken;
  std::uint64_t second = 0;
  table.Wait({"a"}, [&](const std::string*) {
    woken.push_back(1);
    table.Cancel(second);
  });
  second = table.Wait({"a"}, [&](const std::string*) { woken.push_back(2); });
  table.Wait({"a"}, [&](const std::string*) { woken.push_back(3); });
  EXPECT_TRUE(table.Set("a", ""));
  EXPECT_THAT(woken, ElementsAre(1, 3));
}

TEST(Table, EndsTheWaitsThatAreInVain) {
  Table table;
  std::vector<std::string> said;
  const auto hear = [&](const std::string* failed) { said.push_back(failed == nullptr ? "there" : *failed); };
  EXPECT_TRUE(table.Set("c/b", ""));
  table.Wait({"c/a"}, hear);
  table.Wait({"c/b", "c/a"}, hear);
  table.Wait({"d/a"}, hear);
  table.Fail("c/", "in vain");
  table.Fail("c/", "for another reason");
  EXPECT_THAT(said, ElementsAre("in vain", "in vain"));
  EXPECT_EQ(table.waits(), 1u);
  ASSERT_NE(table.WhyNever({"c/a"}), nullptr);
  EXPECT_EQ(*table.WhyNever({"c/b", "c/a"}), "in vain");
  EXPECT_EQ(table.WhyNever({"c/b"}), nullptr);  // it is there
  EXPECT_EQ(table.WhyNever({"c", "d/a"}), nullptr);
  EXPECT_TRUE(table.Set("d/a", ""));
  EXPECT_EQ(said.back(), "there");
}

TEST(Table, LetsAWaitThatIsInVainCancelAnother) {
  Table table;
  int woken = 0;
  std::uint64_t second = 0;
  table.Wait({"a"}, [&](const std::string*) {
    ++woken;
    table.Cancel(second);
  });
  second = table.Wait({"a"}, [](const std::string*) { FAIL(); });
  table.Fail("a", "in vain");
  EXPECT_EQ(woken, 1);
}

TEST(Table, TellsWhoWritesThatItIsFullAndTakesWhatIsErased) {
  Table table(1000);
  ASSERT_TRUE(table.Set("a", std::string(400, 'x')));
  const Status full = table.Set("bb", std::string(400, 'x'));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, DTRUN_OUT_OF_MEMORY);
  EXPECT_EQ(
      full.error().text,
      "the job's store is full: it holds 529 bytes of at most 1000, and cannot take 530 for key 'bb'; erase "
      "keys that no rank needs");
  EXPECT_EQ(table.Find("bb"), nullptr);
  EXPECT_FALSE(table.CompareSet("bb", nullptr, std::string(400, 'x')));
  EXPECT_TRUE(table.Set("a", std::string(700, 'x'))) << "in place of the value before";
  EXPECT_TRUE(table.Erase("a"));
  EXPECT_TRUE(table.Set("bb", std::string(400, 'x')));
}

}  // namespace
}  // namespace dtrun::store
