#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/spec/file.h"

namespace dtrun::spec {
namespace {

std::string HintFor(std::string_view text) {
  auto parsed = ParseToml(text);
  const auto* error = std::get_if<SyntaxError>(&parsed);
  return error == nullptr ? "accepted" : Diagnose(*error, text).hint;
}

// "2:11 this list is not closed"
std::string ProblemOf(std::string_view text) {
  auto parsed = ParseToml(text);
  const auto* error = std::get_if<SyntaxError>(&parsed);
  if (error == nullptr) return "accepted";
  const SyntaxProblem problem = Diagnose(*error, text);
  return fmt::format("{}:{} {}", problem.at.line, problem.at.column, problem.message);
}

TEST(SyntaxHint, KnowsYamlAndJson) {
  EXPECT_EQ(HintFor("job:\n  command: [\"x\"]\n"), "dtrun reads TOML, not YAML; a table begins with [job]");
  EXPECT_EQ(HintFor("[job]\ncommand: [\"x\"]\n"), "dtrun reads TOML, not YAML; write command = [\"x\"]");
  EXPECT_THAT(HintFor("{\"job\": {}}\n"), ::testing::StartsWith("dtrun reads TOML, not JSON"));
}

TEST(SyntaxHint, PutsQuotesAroundAText) {
  EXPECT_EQ(HintFor("[job]\nname = train\n"), "put text in quotes: \"train\"");
  EXPECT_EQ(HintFor("[job]\ncommand = python3\n"), "put text in quotes: \"python3\"");
  EXPECT_EQ(HintFor("[job]\ncommand = python3 train.py --lr 1\n"),
            "put text in quotes: \"python3 train.py --lr 1\"");
  EXPECT_EQ(HintFor("[job]\ngrace = 60s\n"), "put text in quotes: \"60s\"");
  EXPECT_EQ(HintFor("[job]\nenv = { A = yes }\n"), "write true, or put text in quotes: \"yes\"");
  EXPECT_EQ(HintFor("[output]\nfold = True\n"), "write true, in lower case");
  EXPECT_EQ(HintFor("[output]\nfold = off\n"), "write false, or put text in quotes: \"off\"");
}

TEST(SyntaxHint, ShowsNoSecret) {
  EXPECT_EQ(HintFor("[job.env]\nDB_PASSWORD = sekret1\n"), "put text in quotes: \"(secret)\"");
  EXPECT_EQ(HintFor("[job]\nenv = { API_KEY = sekret1, A = 1 }\n"), "put text in quotes: \"(secret)\"");
  EXPECT_EQ(HintFor("[job.env]\nDB_PASSWORD: sekret1\n"),
            "dtrun reads TOML, not YAML; write DB_PASSWORD = (secret)");
}

TEST(SyntaxHint, ShowsTheFirstOfTwo) {
  EXPECT_EQ(HintFor("[job]\ncommand = [\"a\"]\n\ncommand = [\"b\"]\n"), "remove one");
  EXPECT_EQ(HintFor("[job]\nname = \"a\"\n[backend]\nname = \"a\"\nname = \"b\"\n"), "remove one");
  EXPECT_EQ(HintFor("[job]\nname = \"a\"\n[job]\n"), "merge the two");
}

TEST(SyntaxHint, MissesWhatDoesNotEnd) {
  EXPECT_EQ(HintFor("[job]\nname = \"a\n"), "a quote is missing at its end");
  EXPECT_EQ(HintFor("[job\ncommand = 1\n"), "close the name: [job]");
  EXPECT_EQ(HintFor("[job]\ncommand = [\"a\" \"b\"]\n"), "is a ',' missing before it?");
  EXPECT_EQ(HintFor("[job]\ncommand = [\n \"a\"\n \"b\"\n]\n"), "is a ',' missing before it?");
  EXPECT_EQ(HintFor("[job]\ncommand = [\n \"a\",\n b\n]\n"), "put text in quotes: \"b\"");
}

TEST(SyntaxHint, FindsTheListThatIsNotClosed) {
  const char* open = "2:11 this list is not closed";
  EXPECT_EQ(ProblemOf("[job]\ncommand = [\"a\"\nname = \"b\"\n"), open);
  EXPECT_EQ(ProblemOf("[job]\ncommand = [\"a\",\nranks = 2\n"), open);
  EXPECT_EQ(ProblemOf("[job]\ncommand = [\"a\"\n[backend]\nname = \"gloo\"\n"), open);
  EXPECT_EQ(ProblemOf("[job]\ncommand = [\"a\",\n\n# more [\n[job.env]\nA = \"gloo\"\n"), open);
  EXPECT_EQ(ProblemOf("[job]\ncommand = [\"a\",\n"), open);
  EXPECT_EQ(ProblemOf("[job]\ncommand = [\"a]\", 'b',\nranks = 2\n"), open);
  EXPECT_EQ(ProblemOf("[job]\ncommand = [\n  [\"a\"],\n[backend]\nname = \"gloo\"\n"), open);
  EXPECT_EQ(HintFor("[job]\ncommand = [\"a\",\nranks = 2\n"), "add ']'");
}

TEST(SyntaxHint, CorrectsOneLine) {
  EXPECT_EQ(HintFor("; comment\n[job]\n"), "comments begin with #");
  EXPECT_EQ(HintFor("[job]\nranks = 2,\n"), "remove the ','");
  EXPECT_EQ(HintFor("[job]\ncommand == [\"a\"]\n"), "write one '='");
  EXPECT_EQ(HintFor("[job]\nranks\n"), "write ranks = VALUE");
  EXPECT_EQ(HintFor("[job]\nranks"), "write ranks = VALUE");
  EXPECT_EQ(HintFor("[job]\ncwd = \"C:\\data\"\n"),
            "write \\\\ for a backslash, or put the text in single quotes");
  EXPECT_THAT(HintFor("[job.env]\nA = $HOME\n"), ::testing::StartsWith("write the value itself, in quotes"));
}

}  // namespace
}  // namespace dtrun::spec
