#include "core/verdict/story.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "core/base/json.h"
#include "core/verdict/event_log.h"
#include "core/verdict/verdict.h"
#include "core/wire/json.h"

namespace dtrun::verdict {
namespace {

using ::testing::HasSubstr;
using What = fact::Noted::What;

// The text of a file, and of the one before.
struct File {
  std::string text, before;
  EventLog::Write Writer() {
    return [this](std::string_view line, bool anew) {
      if (anew) before = std::exchange(text, {});
      if (std::exchange(full, false)) {
        text += line.substr(0, line.size() / 2);
        return false;
      }
      text += line;
      return true;
    };
  }
  bool full = false;  // the next line is written by half
};

fact::Began Generation(std::uint64_t number, int ranks = 2) {
  fact::Began began;
  began.generation = number;
  began.logs = "/runs/j/1";
  for (int rank = 0; rank < ranks; ++rank) began.processes.push_back({rank, 1, "node0", "/usr/bin/python3"});
  return began;
}

void AddAFailure(EventLog& log, std::uint64_t generation = 0) {
  log.Add(Generation(generation));
  log.Add(fact::Started{{1}, 42});
  log.Add(fact::Joined{{1}}, "rank 1");
  log.Add(fact::Reported{{0}, {1, "lost rank 1", {0, 1}}}, "rank 0");
  log.Add(fact::Overrode{{0}, "RANK", "0", "1"});
  log.Add(fact::Places{
      false, {{{0}, {.stand = stacks::Stand::kMayWait, .phrase = "in flock", .text = "", .waits_for = 1}}}});
  log.Add(fact::PrintedError{{1}});
  log.Add(fact::Ended{{1}, {3, 0}, 0});
  log.Add(fact::FailedFirst{{1}});
  log.Add(fact::SaidBefore{{0}, {"still here", "\xff"}});
  log.Add(fact::Noted{What::kStacks});
  log.Add(fact::Ended{{0}, {0, SIGTERM}, SIGTERM});
  log.Add(fact::SaidLast{{{1}, {"ValueError: x"}}, {"/runs/j/1/rank-1.err"}, false});
  log.Add(fact::Over());
  failures::LogFinding found;
  found.finding = {std::make_shared<failures::KnownFailure>(), "a cause", "a fix", "ValueError: x", 7, 0, 1};
  found.file = "/runs/j/1/rank-1.err";
  log.Add(fact::Recognised{{1}, found});
}

TEST(EventLog, GivesTheSameVerdictAgain) {
  File file;
  EventLog log(file.Writer());
  log.Add(fact::Opened{1, "j", "/runs/j/1", "2026-11-28T00:00:00Z"});
  AddAFailure(log);
  AddAFailure(log, 1);
  const Result<Story> story = Replay(file.text);
  ASSERT_TRUE(story) << story.error().text;
  EXPECT_EQ(VerdictJson(*story), VerdictJson(log.story()));
  EXPECT_THAT(VerdictText(story->facts()), HasSubstr("rank 1 exited with code 3\n"));
  EXPECT_THAT(VerdictText(story->facts()),
              HasSubstr("rank 0 waited for the lock of a file that rank 1 held\n"));
  EXPECT_EQ(story->facts().ranks[1].known->finding.what, "a cause");
}

TEST(EventLog, IsJudgedByWhatIsThereWhereverItIsCut) {
  File file;
  EventLog log(file.Writer());
  log.Add(fact::Opened{1, "j", "/runs/j/1", "2026-11-28T00:00:00Z"});
  AddAFailure(log);
  for (std::size_t size = 0; size < file.text.size(); ++size) {
    const Result<Story> story = Replay(file.text.substr(0, size));
    if (!story) continue;
    EXPECT_FALSE(VerdictJson(*story).empty());
    EXPECT_EQ(story->facts().cut, story->begun() && !story->over());
  }
  const auto failed = file.text.find("failed-first");
  const Result<Story> story = Replay(file.text.substr(0, file.text.find('\n', failed)));
  EXPECT_EQ(ExitCode(story->facts()), 3);
  EXPECT_THAT(VerdictText(story->facts()), HasSubstr("rank 1 exited with code 3\n"));
  EXPECT_THAT(VerdictText(story->facts()), HasSubstr("rank 0 was still running when the record ended"));
  EXPECT_THAT(VerdictText(story->facts()),
              HasSubstr("  last output of rank 1: not recorded; look at /runs/j/1/rank-1.*\n"));
}

TEST(EventLog, TellsWhereRanksWereOfAJobThatRuns) {
  File file;
  EventLog log(file.Writer());
  log.Add(fact::Opened{1, "j", "/runs/j/1", ""});
  log.Add(Generation(0));
  log.Add(fact::Places{
      false,
      {{{1}, {.rank = 1, .stand = stacks::Stand::kWaits, .phrase = "in all_reduce at t.py:3", .text = ""}}}});
  EXPECT_THAT(VerdictText(Replay(file.text)->facts()), HasSubstr("rank 1 in all_reduce at t.py:3"));
}

TEST(EventLog, IsBoundedHoweverLongAJobRuns) {
  constexpr std::size_t kMost = 200'000;
  File file;
  EventLog log(file.Writer(), EventLog::Clock::now(), kMost);
  log.Add(fact::Opened{1, "j", "/runs/j/1", ""});
  log.Add(Generation(0));
  for (int i = 0; i < 10'000; ++i) log.Add(fact::PrintedError{{0}});
  EXPECT_LT(file.text.size(), kMost + 1000);
  for (std::uint64_t generation = 1; generation < 1000; ++generation) AddAFailure(log, generation);
  EXPECT_LT(file.text.size(), kMost);
  EXPECT_EQ(VerdictJson(*Replay(file.text)), VerdictJson(log.story()));
  EXPECT_EQ(Replay(file.text)->earlier().omitted,
            999 - GenerationSummary::kFirst - GenerationSummary::kLatest);
}

TEST(EventLog, TellsThatRecordsAreMissingUntilANewFileBegins) {
  constexpr std::size_t kMost = 2000;
  File file;
  EventLog log(file.Writer(), EventLog::Clock::now(), kMost);
  log.Add(fact::Opened{1, "j", "/runs/j/1", ""});
  log.Add(Generation(0));
  EXPECT_FALSE(Replay(file.text)->gap());
  for (int i = 0; i < 100; ++i) log.Add(fact::PrintedError{{0}});
  EXPECT_TRUE(Replay(file.text)->gap());
  EXPECT_LT(file.text.size(), kMost + 200) << "it is told once";
  log.Add(Generation(1));
  EXPECT_FALSE(Replay(file.text)->gap());
}

TEST(EventLog, LosesOnlyTheLineThatAFullDiskCut) {
  File file;
  EventLog log(file.Writer());
  log.Add(fact::Opened{1, "j", "/runs/j/1", ""});
  log.Add(Generation(0));
  file.full = true;
  log.Add(fact::Joined{{0}});
  log.Add(fact::Ended{{1}, {3, 0}, 0});
  const Result<Story> story = Replay(file.text);
  ASSERT_TRUE(story);
  EXPECT_TRUE(story->gap());
  EXPECT_FALSE(story->facts().ranks[0].joined);
  EXPECT_EQ(story->facts().ranks[1].ending->code, 3);
}

TEST(EventLog, TellsOfARecordThatItCannotRead) {
  File file;
  EventLog log(file.Writer());
  log.Add(fact::Opened{1, "j", "/runs/j/1", ""});
  AddAFailure(log);
  EXPECT_FALSE(Replay(file.text)->gap());
  const std::string code = "\"code\":3";
  file.text.replace(file.text.find(code), code.size(), "\"code\":99999999999");
  EXPECT_TRUE(Replay(file.text)->gap());
}

// Collects the numbers in lists of fields that may hold any value.
class Unbounded {
 public:
  static constexpr bool kWrites = true;

  template <class T, class... Limits>
  void operator()(const char* name, const T& value, Limits... limits) {
    if constexpr (requires { EnumNames(value); } || std::is_constructible_v<std::string, const T&> ||
                  std::is_same_v<T, bool> || std::is_same_v<T, std::map<std::string, std::string>>) {
    } else if constexpr (wire::Number<T> || std::is_same_v<T, std::chrono::nanoseconds>) {
      if (!(IsBound(limits) || ...)) found.push_back(fact + "." + name);
    } else if constexpr (requires { typename T::value_type; }) {  // a list or an optional
      (*this)(name, typename T::value_type{}, limits...);
    } else {
      wire::FieldsOf(*this, value);
    }
  }

  std::string fact;
  std::vector<std::string> found;

 private:
  template <class T>
  static constexpr bool IsBound(wire::Between<T>) {
    return true;
  }
  template <class Limit>
  static constexpr bool IsBound(Limit) {
    return false;
  }
};

template <class... Facts>
std::vector<std::string> UnboundedOf(std::variant<Facts...>) {
  Unbounded io;
  ((io.fact = Facts::kName, wire::FieldsOf(io, Facts{})), ...);
  return io.found;
}

TEST(Fact, BoundsEveryNumber) { EXPECT_THAT(UnboundedOf(fact::Any()), ::testing::IsEmpty()); }

TEST(EventLog, SkipsARecordOfATimeThatCannotBe) {
  const std::string opened =
      R"({"at":0,"from":"root","kind":"opened","version":1,"job":"j","folder":"","began":""})";
  EXPECT_FALSE(Replay(opened + "\n" + R"({"at":1,"from":"root","kind":"over"})")->gap());
  for (const char* const at : {"-1", "9223372036854775807"})
    EXPECT_TRUE(Replay(opened + "\n{\"at\":" + at + R"(,"from":"root","kind":"over"})")->gap()) << at;
}

TEST(EventLog, JudgesAnMpirunThatNeverEnded) {
  EventLog log;
  log.Add(fact::Opened{1, "j", "/runs/j/1", ""});
  log.Add(Generation(0));
  log.Add(fact::InnerFailed{{{1}, {3, 0}, 0}, 77});
  log.Add(fact::FailedFirst{{1}});
  log.Add(fact::Over());
  EXPECT_EQ(ExitCode(log.facts()), 3);
}

TEST(EventLog, KeepsTheGenerationBeforeOneThatCouldNotStartInANewFile) {
  File file;
  EventLog log(file.Writer(), EventLog::Clock::now(), 2000);
  log.Add(fact::Opened{1, "j", "/runs/j/1", ""});
  AddAFailure(log);
  log.Add(Generation(1));
  log.Add(fact::Withdrawn());
  log.Add(fact::Noted{What::kNotRestarted, "no host is left"});
  ASSERT_FALSE(file.before.empty());
  EXPECT_FALSE(Replay(file.text)->begun());
  const Result<Story> story = Replay(file.before + file.text);
  EXPECT_EQ(VerdictJson(*story), VerdictJson(log.story()));
  EXPECT_THAT(VerdictText(story->facts()), HasSubstr("no host is left"));
}

TEST(EventLog, WritesAnUnchangedOverrideOnce) {
  File file;
  EventLog log(file.Writer());
  log.Add(fact::Opened{1, "j", "/runs/j/1", ""});
  log.Add(Generation(0));
  log.Add(fact::Overrode{{0}, "RANK", "0", "1"});
  const std::size_t size = file.text.size();
  log.Add(fact::Overrode{{0}, "RANK", "0", "1"});
  EXPECT_EQ(file.text.size(), size);
  log.Add(fact::Overrode{{0}, "RANK", "0", "2"});
  EXPECT_GT(file.text.size(), size);
}

TEST(Story, ForgetsALockAfterAnErrorThatItsHolderSurvived) {
  using std::chrono::seconds;
  Story story;
  const auto at = [&](int second, fact::Any fact) {
    story.Apply({seconds(second), "root", std::move(fact)});
  };
  at(0, fact::Opened{1, "j", "/runs/j/1", ""});
  at(0, Generation(0));
  at(1, fact::Places{
            false,
            {{{0}, {.stand = stacks::Stand::kMayWait, .phrase = "in flock", .text = "", .waits_for = 1}}}});
  at(2, fact::PrintedError{{1}});
  at(3, fact::MovedOn{{0}});
  EXPECT_TRUE(story.facts().ranks[0].lock) << "the error may be its end";
  at(90, fact::MovedOn{{0}});
  EXPECT_FALSE(story.facts().ranks[0].lock);
}

// A thread of its library may have been at work for the moment of the last look.
TEST(Story, KeepsThatARankOfAStallWaited) {
  Story story;
  const auto at = [&](int second, fact::Any fact) {
    story.Apply({std::chrono::seconds(second), "root", std::move(fact)});
  };
  const auto seen = [](bool last, stacks::Stand stand, const char* phrase) {
    return fact::Places{last, {{{0}, {.stand = stand, .phrase = phrase, .text = ""}}}};
  };
  at(0, fact::Opened{1, "j", "/runs/j/1", ""});
  at(0, Generation(0));
  at(1, seen(false, stacks::Stand::kWaits, "in backward at t.py:3"));
  at(2, seen(true, stacks::Stand::kMayWait, "in backward at t.py:3"));
  EXPECT_EQ(story.facts().ranks[0].doing->stand, stacks::Stand::kMayWait) << "it may have moved on since";
  at(3, seen(false, stacks::Stand::kWaits, "in backward at t.py:3"));
  at(3, fact::Noted{What::kStalled, "3 s"});
  at(4, seen(true, stacks::Stand::kMayWait, "in backward at t.py:3"));
  EXPECT_EQ(story.facts().ranks[0].doing->stand, stacks::Stand::kWaits);
  at(5, seen(true, stacks::Stand::kMayWait, "in backward at t.py:4"));
  EXPECT_EQ(story.facts().ranks[0].doing->stand, stacks::Stand::kMayWait);
}

TEST(EventLog, NamesTheFilesOfARunThatWasMoved) {
  File file;
  EventLog log(file.Writer());
  log.Add(fact::Opened{1, "j", "/runs/j/1", ""});
  AddAFailure(log);
  Result<Story> story = Replay(file.text);
  story->MoveTo("/kept");
  EXPECT_THAT(VerdictText(story->facts()), HasSubstr("(all of it: /kept/rank-1.*)"));
  EXPECT_THAT(VerdictText(story->facts()), HasSubstr("logs: /kept\n"));
}

TEST(EventLog, RefusesWhatIsNoneOfThisVersion) {
  EXPECT_FALSE(Replay("{}\nhello\n"));
  EXPECT_FALSE(
      Replay("{\"at\":0,\"from\":\"root\",\"kind\":\"opened\",\"version\":2,\"job\":\"\",\"folder\":\"\","
             "\"began\":\"\"}"));
}

TEST(Story, KeepsWhatEndedAJobBetweenItsGenerations) {
  EventLog log;
  AddAFailure(log);
  log.Add(fact::Noted{What::kRestarts});
  EXPECT_THAT(VerdictText(log.facts()), HasSubstr(" and is started again"));
  log.Add(fact::Joined{{0}});
  EXPECT_FALSE(log.facts().ranks[0].joined) << "it is over";
  log.Add(fact::EndedBetween{0, SIGINT});
  EXPECT_EQ(ExitCode(log.facts()), 128 + SIGINT);
  EXPECT_THAT(VerdictText(log.facts()), HasSubstr("  no rank ran at that moment; before: rank"));
  EXPECT_TRUE(log.story().earlier().first.empty());
  log.Add(fact::EndedBetween{1, 0, "1h"});
  EXPECT_EQ(ExitCode(log.facts()), 124);
  EXPECT_EQ(log.story().earlier().first.size(), 1U);
}

TEST(Story, ForgetsAGenerationThatCouldNotStart) {
  EventLog log;
  log.Add(Generation(0));
  log.Add(fact::Withdrawn());
  EXPECT_FALSE(log.story().begun());
  AddAFailure(log);
  const std::string before = VerdictJson(log.story());
  log.Add(Generation(1));
  log.Add(fact::Withdrawn());
  EXPECT_EQ(VerdictJson(log.story()), before);
  EXPECT_TRUE(log.story().over());
}

}  // namespace
}  // namespace dtrun::verdict
