// Texts from libraries' issue trackers, each with its thread: nearly all are recognised, and none is mistaken
// for something else. Names and addresses were replaced.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/failures/finding.h"

namespace dtrun::failures {
namespace {

Json Texts(const std::string& name) {
  std::ifstream file(std::string(TEXTS) + "/" + name);
  return ParseJson(std::string{std::istreambuf_iterator<char>(file), {}});
}

Json Threads() { return Texts("threads.json"); }

std::string IdOf(const std::string& text) {
  const auto findings = FindFailures(text);
  const Finding* const foremost = Foremost(findings);
  return foremost == nullptr ? "" : foremost->failure->id;
}

TEST(Threads, NineOfTenTextsAreKnown) {
  const Json threads = Threads();
  std::size_t known = 0;
  std::set<std::string> addresses;
  for (const auto& one : threads) {
    addresses.insert(one.at("thread").get<std::string>());
    const auto text = one.at("text").get<std::string>();
    known += Foremost(FindFailures(text)) == nullptr ? 0 : 1;
  }
  EXPECT_GE(threads.size(), 200u);
  EXPECT_GE(addresses.size(), 150u);
  EXPECT_GE(10 * known, 9 * threads.size()) << known << " of " << threads.size();
}

TEST(Threads, NoneIsTakenForSomethingElse) {
  for (const auto& one : Threads()) {
    const auto text = one.at("text").get<std::string>(), id = one.at("id").get<std::string>();
    EXPECT_EQ(IdOf(text), id) << one.at("thread") << "\n" << text;
  }
}

// Texts chosen before the table was checked against them. "blind" is the first result, "id" the current one.
TEST(Blind, EachTextIsTakenForWhatItIs) {
  using Counts = std::map<std::string, int>;
  const Json blind = Texts("blind.json");
  std::vector<Counts> first, after;
  for (const auto& set : blind.at("sets")) {
    Counts counts, later;
    for (const auto& one : set.at("texts")) {
      ++counts[one.at("blind").get<std::string>()];
      ++later[one.at("after").get<std::string>()];
      const auto text = one.at("text").get<std::string>();
      EXPECT_EQ(IdOf(text), one.at("id").get<std::string>()) << one.at("thread") << "\n" << text;
    }
    first.push_back(counts);
    after.push_back(later);
  }
  // docs/development.md quotes these numbers.
  const std::vector<Counts> told = {
      {{"right", 24}, {"incomplete", 7}, {"wrong", 2}, {"unknown", 41}, {"out of scope", 7}},
      {{"right", 10}, {"incomplete", 4}, {"unknown", 25}, {"out of scope", 1}}};
  const std::vector<Counts> told_after = {
      {{"right", 70}, {"incomplete", 4}, {"out of scope", 7}},
      {{"right", 34}, {"incomplete", 1}, {"unknown", 4}, {"out of scope", 1}}};
  EXPECT_EQ(first, told);
  EXPECT_EQ(after, told_after);
}

}  // namespace
}  // namespace dtrun::failures
