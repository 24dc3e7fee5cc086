#include "core/verdict/recognise.h"

#include <algorithm>
#include <csignal>
#include <string>
#include <string_view>
#include <utility>

#include "core/verdict/cause.h"
#include "core/verdict/traceback.h"

namespace dtrun::verdict {

bool EndedByItself(const process::Ending& ending) {
  constexpr int kOwn[] = {0, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};
  return !ending.out_of_memory && std::ranges::find(kOwn, ending.signal) != std::end(kOwn);
}

namespace {

// Used when no log file has them: the last lines.
std::optional<failures::LogFinding> FindInTail(const std::vector<std::string>& tail,
                                               const std::filesystem::path& program) {
  std::string text;
  for (const std::string& line : tail) text += line + "\n";
  const auto findings = failures::FindFailures(text, failures::FactsOf(program));
  const failures::Finding* const foremost = failures::Foremost(findings);
  if (foremost == nullptr) return std::nullopt;
  failures::LogFinding found{*foremost, {}, true};
  found.finding.line_number = 0;  // a line number in the tail, not in the output
  return found;
}

// Errors of the program's own code, which earlier library output cannot have caused.
bool IsOfTheProgram(std::string_view exception) {
  constexpr std::string_view kNames[] = {
      "ArithmeticError", "AssertionError", "AttributeError",    "IndexError", "KeyError",         "NameError",
      "SyntaxError",     "TypeError",      "UnboundLocalError", "ValueError", "ZeroDivisionError"};
  return std::ranges::find(kNames, exception) != std::end(kNames);
}

bool IsIn(const std::vector<std::string>& lines, const failures::Finding& finding) {
  return std::ranges::find(lines, finding.line) != lines.end();
}

// Whether the finding explains the rank's failure. It does not if the rank ended with its own error and
// the text was printed before it, or names a peer that this error only mentions. Nor does it if the rank
// crashed long after the text.
bool Explains(const failures::Finding& finding, const RankFacts& rank) {
  // What its mpirun says of it is in the facts.
  if (rank.failed && finding.failure->depth == failures::Depth::kReport) return false;
  const int signal = rank.ending ? rank.ending->signal : 0;
  const bool crashed = signal != 0 && signal != SIGABRT;
  if (crashed && !rank.tail.empty() && !IsIn(rank.tail, finding)) return false;
  const bool of_a_peer = finding.failure->kind == failures::Kind::kNetwork ||
                         finding.failure->kind == failures::Kind::kRendezvous;
  if (of_a_peer && RaisedByTheProgram(rank.tail)) return false;
  if (!IsOfTheProgram(ExceptionOf(ErrorIn(rank.tail)))) return true;
  return IsIn(FromLastTraceback(rank.tail), finding);
}

Status RecogniseRank(RankFacts* facts) {
  RankFacts& rank = *facts;
  if (!rank.abort && (!rank.ending || !EndedByItself(*rank.ending))) return {};
  rank.known.reset();
  Status read;
  if (!rank.log_files.empty()) {
    auto found =
        failures::FindInLogs(rank.log_files, failures::LogSource::kRunLog, failures::FactsOf(rank.program));
    if (found) {
      rank.known = *std::move(found);
    } else {
      read = std::move(found).error();
    }
  }
  // The files may be gone or lack the end; the last lines are in memory.
  if (!rank.known || rank.log_cut) {
    if (auto last = FindInTail(rank.tail, rank.program)) rank.known = std::move(last);
  }
  if (rank.known && !Explains(rank.known->finding, rank)) rank.known.reset();
  return read;
}

}  // namespace

Status Recognise(Facts* facts) {
  const Cause cause = FindCause(*facts);
  if (cause.kind != Cause::Kind::kRank) return {};
  Status read = RecogniseRank(&facts->ranks[cause.first]);
  // The finding for the first cause may change the cause to another rank.
  const Cause then = FindCause(*facts);
  if (then.kind != Cause::Kind::kRank || then.index == cause.first) return read;
  RankFacts& suspect = facts->ranks[then.index];
  if (then.suspicion.kind == Suspicion::Kind::kErred)
    suspect.known = FindInTail(suspect.before, suspect.program);
  if (!suspect.known) {
    if (Status its = RecogniseRank(&suspect); read) read = std::move(its);
  }
  return read;
}

}  // namespace dtrun::verdict
