// The verdicts of recorded jobs (tests/logs/README.md): what each one finds is in expected.txt, and its words
// in prose.txt. DTRUN_GOLDEN=write writes both anew.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "core/verdict/cause.h"
#include "core/verdict/event_log.h"
#include "core/verdict/text.h"
#include "core/verdict/verdict.h"

namespace dtrun::verdict {
namespace {

namespace fs = std::filesystem;

fs::path Logs() { return fs::path(__FILE__).parent_path().parent_path().parent_path() / "tests" / "logs"; }

std::string ReadAll(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

std::string Found(const Facts& facts) {
  const Cause cause = FindCause(facts);
  std::vector<int> blamed;
  for (const std::size_t index : cause.suspicion.indices) blamed.push_back(facts.ranks[index].blamed());
  const bool of_rank = cause.kind == Cause::Kind::kRank;
  const char* const why = SuspicionName(cause.suspicion.kind);
  return fmt::format(
      "class={} exit={} rank={} first={} blamed=[{}] why={} known={}", ClassName(cause.exit_class),
      ExitCode(facts), of_rank ? facts.ranks[cause.index].blamed() : -1,
      of_rank ? facts.ranks[cause.first].blamed() : -1, fmt::join(blamed, ","), why == nullptr ? "-" : why,
      of_rank && facts.ranks[cause.index].known ? facts.ranks[cause.index].known->finding.failure->id : "-");
}

TEST(Replay, FindsInRecordedJobsWhatItFoundThen) {
  std::set<fs::path> files;
  for (const auto& file : fs::directory_iterator(Logs())) {
    if (file.path().extension() == ".log") files.insert(file.path());
  }
  ASSERT_FALSE(files.empty()) << Logs();
  std::string found, prose;
  for (const fs::path& file : files) {
    const Result<Story> story = Replay(ReadAll(file));
    ASSERT_TRUE(story) << file << ": " << story.error().text;
    found += fmt::format("{}: {}\n", file.stem().string(), Found(story->facts()));
    prose += fmt::format("== {}\n{}", file.stem().string(), VerdictText(story->facts()));
  }
  const char* const golden = std::getenv("DTRUN_GOLDEN");
  if (golden != nullptr && std::string_view(golden) == "write") {
    std::ofstream(Logs() / "expected.txt") << found;
    std::ofstream(Logs() / "prose.txt") << prose;
  }
  EXPECT_EQ(found, ReadAll(Logs() / "expected.txt"));
  EXPECT_EQ(prose, ReadAll(Logs() / "prose.txt"));
}

}  // namespace
}  // namespace dtrun::verdict
