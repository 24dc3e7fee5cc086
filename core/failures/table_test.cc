// Checks the table against the texts in testing/: each failure is recognised, and nothing else is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "core/failures/finding.h"

namespace dtrun::failures {
namespace {

struct Text {
  std::string id;
  std::string text;
  std::vector<std::string> said;  // substrings expected in the sentences
};

std::vector<std::string> LinesOf(const std::string& name) {
  std::ifstream file(std::string(TEXTS) + "/" + name);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::vector<Text> KnownTexts() {
  std::vector<Text> texts;
  for (const std::string& line : LinesOf("known.txt")) {
    if (line.starts_with("== ")) {
      texts.push_back({line.substr(3), "", {}});
    } else if (texts.empty()) {
      continue;  // the heading
    } else if (line.starts_with("> ")) {
      texts.back().said.push_back(line.substr(2));
    } else {
      texts.back().text += line + "\n";
    }
  }
  return texts;
}

std::vector<std::string> UnrelatedTexts() {
  std::vector<std::string> texts(1);
  for (const std::string& line : LinesOf("unrelated.txt")) {
    if (line == "--") {
      texts.emplace_back();
    } else {
      texts.back() += line + "\n";
    }
  }
  return texts;
}

TEST(Table, EveryTextIsRecognisedAsTheFailureThatItIs) {
  for (const Text& text : KnownTexts()) {
    const auto findings = FindFailures(text.text);
    const Finding* const foremost = Foremost(findings);
    ASSERT_NE(foremost, nullptr) << text.id << "\n" << text.text;
    EXPECT_EQ(foremost->failure->id, text.id) << text.text;
    for (const std::string& said : text.said) {
      EXPECT_THAT(foremost->what + "\n" + foremost->fix, ::testing::HasSubstr(said)) << text.text;
    }
  }
}

TEST(Table, EveryFailureHasAText) {
  std::set<std::string_view> tested;
  const std::vector<Text> texts = KnownTexts();
  for (const Text& text : texts) tested.insert(text.id);
  for (const auto& failure : Known()->failures()) EXPECT_TRUE(tested.contains(failure->id)) << failure->id;
}

TEST(Table, UnrelatedTextsMatchNothing) {
  const std::vector<std::string> texts = UnrelatedTexts();
  EXPECT_GE(texts.size(), 70u);
  for (const std::string& text : texts) {
    const auto findings = FindFailures(text);
    EXPECT_TRUE(findings.empty()) << findings.front().failure->id << " in:\n" << text;
  }
}

TEST(Table, IsWellFormed) {
  std::set<std::string_view> ids;
  EXPECT_GE(Known()->failures().size(), 185u);
  EXPECT_THAT(Known()->problems(), ::testing::IsEmpty());
  for (const auto& failure : Known()->failures()) {
    EXPECT_TRUE(ids.insert(failure->id).second) << failure->id << " stands twice";
    EXPECT_FALSE(failure->what.empty() || failure->fix.empty() || failure->source.empty()) << failure->id;
    EXPECT_FALSE(failure->texts.empty()) << failure->id;
    for (const std::string_view said : {failure->what, failure->fix}) {
      EXPECT_FALSE(said.ends_with('.')) << said;
      EXPECT_EQ(std::ranges::count(said, '['), std::ranges::count(said, ']')) << said;
    }
    for (const std::string_view pattern : failure->texts) {
      EXPECT_GE(failures::Anchor(pattern).size(), 5u) << pattern << " begins with too little";
      EXPECT_EQ(std::ranges::count(pattern, '{'), std::ranges::count(pattern, '}')) << pattern;
      // Two captures in a row, or an open one in the middle, would match anything.
      EXPECT_EQ(pattern.find("}{"), pattern.npos) << pattern;
    }
  }
}

// Each capture that a sentence needs outside brackets occurs in every pattern.
TEST(Table, SentencesNameOnlyWhatTheirPatternsCapture) {
  for (const auto& failure : Known()->failures()) {
    for (const std::string_view pattern : failure->texts) {
      failures::Captures captures;
      for (std::size_t at = pattern.find('{'); at != pattern.npos; at = pattern.find('{', at + 1)) {
        std::string name(pattern.substr(at + 1, pattern.find('}', at) - at - 1));
        if (name.ends_with("...")) name.resize(name.size() - 3);
        captures.emplace_back(name, "@" + name);
      }
      for (const std::string& said :
           {failures::Fill(failure->what, captures), failures::Fill(failure->fix, captures)}) {
        EXPECT_EQ(said.find("  "), said.npos) << said << " by " << pattern;
      }
      for (std::string_view rest = failure->what; !rest.empty();) {
        const std::size_t open = rest.find_first_of("[{");
        if (open == rest.npos) break;
        const bool bracket = rest[open] == '[';
        const std::size_t close = rest.find(bracket ? ']' : '}', open);
        const std::string_view name = rest.substr(open + 1, close - open - 1);
        if (!bracket) {
          EXPECT_TRUE(std::ranges::any_of(captures, [&](const auto& one) { return one.first == name; }))
              << name << " is not in '" << pattern << "' of " << failure->id;
        }
        rest.remove_prefix(close + 1);
      }
    }
  }
}

std::string MeaningOf(std::string_view text) {
  const auto findings = FindFailures(text);
  const Finding* const foremost = Foremost(findings);
  return foremost == nullptr ? "" : foremost->what + "; " + foremost->fix;
}

TEST(Table, TellsTheSevenCausesOfNcclsInternalErrorApart) {
  using ::testing::HasSubstr;
  EXPECT_THAT(MeaningOf("Bootstrap : no socket interface found"), HasSubstr("NCCL_SOCKET_IFNAME"));
  EXPECT_THAT(MeaningOf("ncclSocketInit: connecting to address  with family 59936 is neither AF_INET(2)"),
              HasSubstr("no usable address"));
  EXPECT_THAT(MeaningOf("Message truncated : received 256 bytes instead of 4"),
              HasSubstr("one sent 256 bytes where 4 were expected"));
  EXPECT_THAT(MeaningOf("ncclSocketConnect: wrong socket state 7"),
              HasSubstr("after the peer had closed it"));
  EXPECT_THAT(MeaningOf("Proxy Call to rank 3 failed (Setup)"), HasSubstr("for rank 3 lost its peer"));
  EXPECT_THAT(MeaningOf("Comm 0x7f91b4000d60 is in abort state"), HasSubstr("aborted already"));
  EXPECT_THAT(MeaningOf("NET/IB : Attempted to connect incompatible devices: [0]mlx5_0:1/IB and "
                        "[2]mlx5_2:1/RoCE. Try selecting NICs of only one link type using NCCL_IB_HCA"),
              HasSubstr("[0]mlx5_0:1/IB and [2]mlx5_2:1/RoCE"));
}

}  // namespace
}  // namespace dtrun::failures
