#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/output/output.h"

namespace dtrun::output {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class Lines : public ::testing::Test {
 protected:
  std::vector<std::string> Texts() const {
    std::vector<std::string> texts;
    for (const auto& [text, continues] : emitted_) texts.push_back(text);
    return texts;
  }

  std::vector<std::pair<std::string, bool>> emitted_;
  LineAssembler lines_{
      [this](std::string_view text, bool continues) { emitted_.emplace_back(text, continues); }};
};

TEST_F(Lines, EndAtNewlines) {
  lines_.Feed("one\n\nthree\nfo");
  EXPECT_THAT(Texts(), ElementsAre("one", "", "three"));
  EXPECT_EQ(lines_.State(), "fo");
  lines_.Feed("ur\n");
  EXPECT_THAT(Texts(), ElementsAre("one", "", "three", "four"));
  EXPECT_EQ(lines_.State(), "");
}

TEST_F(Lines, ComeOutTheSameHoweverTheBytesAreSplit) {
  const char bytes[] = "\033[32mgrün\033[0m €\r\n 1%\r 2%\n日本\0語\n😀 5%\r\n\n\rlast 😀";
  const std::string input(bytes, sizeof bytes - 1);
  lines_.Feed(input);
  lines_.Close();
  const auto whole = std::exchange(emitted_, {});
  ASSERT_EQ(whole.size(), 6u);
  EXPECT_EQ(whole[0].first, "\033[32mgrün\033[0m €");
  EXPECT_EQ(whole[1].first, " 2%");
  EXPECT_EQ(whole[2].first, std::string("日本\0語", 10));
  EXPECT_EQ(whole[3].first, "😀 5%");
  EXPECT_EQ(whole[4].first, "");
  EXPECT_EQ(whole[5].first, "last 😀");
  for (std::size_t first = 0; first <= input.size(); ++first) {
    for (std::size_t second = first; second <= input.size(); ++second) {
      lines_.Feed(input.substr(0, first));
      lines_.Feed(input.substr(first, second - first));
      lines_.Feed(input.substr(second));
      lines_.Close();
      ASSERT_EQ(std::exchange(emitted_, {}), whole) << first << " " << second;
    }
  }
}

TEST_F(Lines, OfABarAreItsLastState) {
  lines_.Feed("\r 10%");
  EXPECT_TRUE(lines_.redrawn());
  EXPECT_EQ(lines_.State(), " 10%");
  lines_.Feed("\r 20%\r");
  EXPECT_EQ(lines_.State(), " 20%");
  lines_.Feed("\r 30%\r");
  EXPECT_THAT(Texts(), IsEmpty());
  lines_.Feed("\n");
  EXPECT_THAT(Texts(), ElementsAre(" 30%"));
  EXPECT_FALSE(lines_.redrawn());
}

TEST_F(Lines, OfABarThatWasWipedAreEmpty) {
  lines_.Feed("\r 10%\r      \r");
  EXPECT_EQ(lines_.State(), "");
  lines_.Close();
  EXPECT_THAT(Texts(), IsEmpty());
  lines_.Feed(" 10%\r\033[2K\rdone\n");
  EXPECT_THAT(Texts(), ElementsAre("done"));
}

TEST_F(Lines, LeftUnfinishedComeAtTheEndOfFile) {
  lines_.Feed("no newline");
  lines_.Close();
  lines_.Feed(" 99%\r");
  lines_.Close();
  lines_.Feed("   ");
  lines_.Close();
  lines_.Close();
  EXPECT_THAT(Texts(), ElementsAre("no newline", " 99%", "   "));
}

TEST_F(Lines, OfTheLongestLengthAreWhole) {
  const std::string longest(LineAssembler::kLongestLine, 'x');
  lines_.Feed(longest + "\n" + longest);
  lines_.Feed("\r\n");
  EXPECT_THAT(emitted_, ElementsAre(Pair(longest, false), Pair(longest, false)));
}

TEST_F(Lines, OverTheLongestLengthComeInPieces) {
  std::string line = "a";
  while (line.size() < 3 * LineAssembler::kLongestLine) line += "😀";
  for (const std::size_t step : {line.size(), std::size_t{1000}}) {
    emitted_.clear();
    for (std::size_t at = 0; at < line.size(); at += step) lines_.Feed(line.substr(at, step));
    lines_.Feed("\nshort\n");
    ASSERT_EQ(emitted_.size(), 5u);
    std::string joined;
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(emitted_[i].second, i > 0);
      EXPECT_LE(emitted_[i].first.size(), LineAssembler::kLongestLine);
      EXPECT_EQ(emitted_[i].first.size() % 4, i == 0 ? 1u : 0u) << "a piece ends inside a character";
      joined += emitted_[i].first;
    }
    EXPECT_EQ(joined, line);
    EXPECT_THAT(emitted_[4], Pair("short", false));
  }
}

TEST_F(Lines, ForgetThePiecesBeforeABarThatWasWiped) {
  lines_.Feed(std::string(LineAssembler::kLongestLine + 1, 'x') + "\r \r\n");
  ASSERT_EQ(emitted_.size(), 2u);
  EXPECT_THAT(emitted_[1], Pair("", false));
}

}  // namespace
}  // namespace dtrun::output
