// What people have reported in the trackers of libraries, each text with its thread: nearly all are known,
// and none is taken for something else. Names and addresses in them were replaced.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <string>

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

// Texts that were drawn before anybody looked what is known. "blind" is what was said of them then; the rest
// of the test holds what has been learnt from them since.
TEST(Blind, EachTextIsTakenForWhatItIs) {
  const Json blind = Texts("blind.json");
  std::map<std::string, int> first;
  for (const auto& one : blind.at("texts")) {
    ++first[one.at("blind").get<std::string>()];
    const auto text = one.at("text").get<std::string>();
    EXPECT_EQ(IdOf(text), one.at("id").get<std::string>()) << one.at("thread") << "\n" << text;
  }
  // docs/failures.md tells these numbers.
  const std::map<std::string, int> told = {
      {"right", 24}, {"incomplete", 7}, {"wrong", 2}, {"unknown", 41}, {"out of scope", 7}};
  EXPECT_EQ(first, told);
}

}  // namespace
}  // namespace dtrun::failures
