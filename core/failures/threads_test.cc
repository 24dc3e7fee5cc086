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

Json Threads() {
  std::ifstream file(std::string(TEXTS) + "/threads.json");
  return ParseJson(std::string{std::istreambuf_iterator<char>(file), {}});
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
    const auto findings = FindFailures(text);
    const Finding* const foremost = Foremost(findings);
    EXPECT_EQ(foremost == nullptr ? "" : foremost->failure->id, id) << one.at("thread") << "\n" << text;
  }
}

}  // namespace
}  // namespace dtrun::failures
