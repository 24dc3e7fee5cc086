#include "core/verdict/recognise.h"

#include <csignal>
#include <string>
#include <utility>

#include "core/verdict/cause.h"

namespace dtrun::verdict {

bool EndedByItself(const process::Ending& ending) {
  if (ending.out_of_memory) return false;
  switch (ending.signal) {
    case 0:
    case SIGABRT:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGSEGV: return true;
    default: return false;
  }
}

namespace {

// Without a file the last lines are all there is.
std::optional<failures::LogFinding> FindInTail(const std::vector<std::string>& tail) {
  std::string text;
  for (const std::string& line : tail) text += line + "\n";
  const auto findings = failures::FindFailures(text);
  const failures::Finding* const foremost = failures::Foremost(findings);
  if (foremost == nullptr) return std::nullopt;
  failures::LogFinding found{*foremost, {}, true};
  found.finding.line_number = 0;  // of the tail, not of the output
  return found;
}

Status RecogniseRank(RankFacts* facts) {
  RankFacts& rank = *facts;
  if (!rank.abort && (!rank.ending || !EndedByItself(*rank.ending))) return {};
  if (rank.log_files.empty()) {
    rank.known = FindInTail(rank.tail);
    return {};
  }
  auto found = failures::FindInLogs(rank.log_files, failures::Whose::kOurs);
  if (!found) return std::move(found).error();
  rank.known = *std::move(found);
  return {};
}

}  // namespace

Status Recognise(Facts* facts) {
  const Cause cause = FindCause(*facts);
  if (cause.kind != Cause::Kind::kRank) return {};
  if (Status read = RecogniseRank(&facts->ranks[cause.first]); !read) return read;
  // What the first one says may lead to another one.
  const Cause then = FindCause(*facts);
  if (then.kind != Cause::Kind::kRank || then.index == cause.first) return {};
  RankFacts& suspect = facts->ranks[then.index];
  if (then.suspicion.kind == Suspicion::Kind::kErred) suspect.known = FindInTail(suspect.before);
  return suspect.known ? Status() : RecogniseRank(&suspect);
}

}  // namespace dtrun::verdict
