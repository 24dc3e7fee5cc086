#include "tools/dtrun/report/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "core/base/visit.h"
#include "core/process/process.h"
#include "core/verdict/text.h"

namespace dtrun::report {
namespace {

namespace fact = verdict::fact;

constexpr std::size_t kMostEvents = 500;

double SecondsAt(const verdict::Entry& entry) { return std::chrono::duration<double>(entry.at).count(); }

std::string RankIn(int rank) { return fmt::format("rank {} ", rank); }

// Empty: of no interest here.
std::string Text(const fact::Noted& noted) {
  using What = fact::Noted::What;
  const std::string more = noted.text.empty() ? "" : ": " + noted.text;
  switch (noted.what) {
    case What::kCallsDiffer: return "the ranks' calls differ" + more;
    case What::kStalled: return "no progress" + more;
    case What::kTimeLimit: return "the time limit is reached" + more;
    case What::kRegroup: return "all ranks restart" + more;
    case What::kNotRestarted: return "not restarted" + more;
    case What::kMet: return "the ranks have joined each other";
    case What::kGuardDied: return "a process of dtrun was killed, so the job ended";
    case What::kAccomplished: return "the ranks that decide have succeeded";
    case What::kStacks: return "stacks of the ranks were written" + more;
    case What::kRestarts: return "restart";
    case What::kGap: return "records are missing here";
    case What::kWorkedAlone: return noted.text;
  }
  return noted.text;
}

std::string Text(const fact::Began& began) {
  int ranks = 0;
  for (const fact::Began::Process& process : began.processes) ranks += process.count;
  return fmt::format("generation {} began with {} rank{}", began.generation, ranks, ranks == 1 ? "" : "s");
}
std::string Text(const fact::Ended& ended) {
  return RankIn(ended.rank) + verdict::EndingText(ended.ending) +
         (ended.signal_sent == 0 ? "" : ", after dtrun had sent " + process::SignalName(ended.signal_sent));
}
std::string Text(const fact::InnerFailed& failed) {
  return RankIn(failed.rank) + verdict::EndingText(failed.ending);
}
std::string Text(const fact::FailedFirst& failed) { return RankIn(failed.rank) + "failed first"; }
std::string Text(const fact::Reported& reported) {
  return RankIn(reported.rank) + "reported: " + reported.report.what;
}
std::string Text(const fact::PrintedError& printed) { return RankIn(printed.rank) + "printed a traceback"; }
std::string Text(const fact::MpiAborted& aborted) {
  return RankIn(aborted.rank) + "called MPI_Abort: " + aborted.abort.message;
}
std::string Text(const fact::Recognised& known) {
  return RankIn(known.rank) + "printed: " + known.found.finding.what;
}
std::string Text(const fact::HostLost& lost) {
  return fmt::format("host {} was lost: {}", lost.loss.host, lost.loss.why);
}
std::string Text(const fact::HostsApart& apart) { return apart.what; }
std::string Text(const fact::MpiServerLost& lost) {
  return fmt::format("the MPI server of host {} was lost: {}", lost.loss.host, lost.loss.how);
}
std::string Text(const fact::Isolated& isolated) { return isolated.found.what; }
std::string Text(const fact::Interrupted& interrupted) {
  return "the job was ended by " + process::SignalName(interrupted.signal);
}
std::string Text(const fact::EndedBetween& ended) {
  return ended.signal == 0
             ? "the job ended while no rank ran"
             : "the job was ended by " + process::SignalName(ended.signal) + " while no rank ran";
}
std::string Text(const fact::NotStarted& not_started) { return "not started: " + not_started.why; }
std::string Text(const fact::Withdrawn&) { return "the generation could not start"; }
template <class Other>
std::string Text(const Other&) {
  return {};
}

Bar::Kind KindOf(const fact::Ended& ended) {
  if (!ended.ending.failed()) return Bar::Kind::kGood;
  return ended.signal_sent == 0 ? Bar::Kind::kBad : Bar::Kind::kStopped;
}

}  // namespace

Lives LivesOf(const std::vector<verdict::Entry>& entries, double now) {
  Lives all;
  std::map<int, std::string> hosts;
  std::map<int, std::size_t> living;  // rank -> its place in all.lives
  for (const verdict::Entry& entry : entries) {
    if (const auto* began = std::get_if<fact::Began>(&entry.fact)) {
      if (!all.lives.empty()) all.restarts.push_back(SecondsAt(entry));
      all.generation = began->generation;
      living.clear();
      hosts.clear();
      for (const fact::Began::Process& process : began->processes) hosts[process.rank] = process.host;
    } else if (const auto* started = std::get_if<fact::Started>(&entry.fact)) {
      living[started->rank] = all.lives.size();
      all.lives.push_back({started->rank, all.generation, hosts[started->rank], started->pid,
                           SecondsAt(entry), now, Bar::Kind::kRuns, "runs"});
      all.ranks.push_back(started->rank);
    } else if (const auto* ended = std::get_if<fact::Ended>(&entry.fact)) {
      const auto found = living.find(ended->rank);
      if (found == living.end()) continue;
      Life& life = all.lives[found->second];
      life.to = SecondsAt(entry);
      life.kind = KindOf(*ended);
      life.how = verdict::EndingText(ended->ending);
    }
  }
  std::ranges::sort(all.ranks);
  all.ranks.erase(std::unique(all.ranks.begin(), all.ranks.end()), all.ranks.end());
  return all;
}

std::vector<EventLine> EventLines(const std::vector<verdict::Entry>& entries) {
  std::vector<EventLine> lines;
  for (const verdict::Entry& entry : entries) {
    std::string text = Visit([](const auto& one) { return Text(one); }, entry.fact);
    if (!text.empty()) lines.push_back({SecondsAt(entry), entry.from, std::move(text)});
  }
  if (lines.size() <= kMostEvents) return lines;
  const auto half = static_cast<std::ptrdiff_t>(kMostEvents / 2);
  const std::size_t omitted = lines.size() - kMostEvents;
  lines.erase(lines.begin() + half, lines.end() - half);
  lines.insert(lines.begin() + half, {0, "", fmt::format("{} events are left out here", omitted)});
  return lines;
}

}  // namespace dtrun::report
