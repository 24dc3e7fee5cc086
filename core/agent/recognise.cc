#include "core/agent/recognise.h"

#include <csignal>
#include <string>
#include <utility>

#include "core/agent/cause.h"

namespace dtrun::agent {
namespace {

// Whether the program ended itself, so that its last words may say why.
bool EndedByItself(const Ending& ending) {
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

// Without a file the last lines are all there is.
std::optional<diagnosis::LogFinding> FindInTail(const std::vector<std::string>& tail) {
  std::string text;
  for (const std::string& line : tail) text += line + "\n";
  const auto findings = diagnosis::FindFailures(text);
  const diagnosis::Finding* const foremost = diagnosis::Foremost(findings);
  if (foremost == nullptr) return std::nullopt;
  diagnosis::LogFinding found{*foremost, {}, true};
  found.finding.line_number = 0;  // of the tail, not of the output
  return found;
}

}  // namespace

Status Recognise(Facts* facts) {
  const Cause cause = FindCause(*facts);
  if (cause.kind != Cause::Kind::kRank) return {};
  RankFacts& rank = facts->ranks[cause.index];
  if (!rank.abort && !EndedByItself(*rank.ending)) return {};
  if (rank.log_files.empty()) {
    rank.known = FindInTail(rank.tail);
    return {};
  }
  auto found = diagnosis::FindInLogs(rank.log_files);
  if (!found) return std::move(found).error();
  rank.known = *std::move(found);
  return {};
}

}  // namespace dtrun::agent
