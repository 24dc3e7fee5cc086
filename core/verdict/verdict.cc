#include "core/verdict/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <set>
#include <string_view>
#include <utility>

#include "core/failures/report.h"
#include "core/process/process.h"
#include "core/verdict/cause.h"
#include "core/verdict/endings.h"
#include "core/verdict/hint.h"
#include "core/verdict/suspect_text.h"
#include "core/verdict/traceback.h"
#include "core/verdict/waits.h"

namespace dtrun::verdict {
namespace {

constexpr char kMakeSameCalls[] =
    "make all ranks call the same in the same order, with as many elements of one type";

constexpr int kHostLost = 1;
constexpr int kExitedEarly = 1;
constexpr int kIsolated = 1;
constexpr int kStalled = 1;
constexpr int kWithoutMpiServer = 1;
constexpr int kTimeIsUp = 124;  // as timeout(1)

// How the rank failed, for the first line of the verdict.
std::string FailureText(const RankFacts& rank) {
  if (!rank.abort) return EndingText(*rank.ending);
  if (rank.abort->broke) return "broke PMI-1, by which its MPI library starts: " + rank.abort->message;
  // MPI libraries call MPI_Abort for their own errors too.
  if (rank.known && rank.known->recent && rank.known->finding.failure->depth == failures::Depth::kCause)
    return fmt::format("called MPI_Abort with code {}: {}", rank.abort->code, rank.known->finding.what);
  return fmt::format("called MPI_Abort with code {}{}{}", rank.abort->code,
                     rank.abort->message.empty() ? "" : ": ", rank.abort->message);
}

// "dtrun: job 'mnist' failed after 3.2 s", the beginning of every failure verdict.
std::string Failed(const Facts& facts, std::chrono::nanoseconds at) {
  return fmt::format("dtrun: job '{}' failed after {}{}", facts.job, FormatElapsed(at),
                     facts.restarts ? " and is started again" : "");
}

bool AnyJoined(const Facts& facts) {
  for (const RankFacts& rank : facts.ranks) {
    if (rank.joined) return true;
  }
  return false;
}

// "rank 3"; "the process of ranks 0-3" where one process holds several.
std::string Who(const RankFacts& process) {
  if (process.failed) return FoldRanks({process.failed->rank});
  std::vector<int> ranks;
  AddRanks(process, &ranks);
  return (process.count == 1 ? "" : "the process of ") + FoldRanks(ranks);
}

// In which phase of its life the rank failed. Unknown if the program never calls dtrun_init.
std::string PhaseText(const Facts& facts, const RankFacts& rank) {
  if (rank.left) return ", after dtrun_finalize";
  if (rank.joined) return ", during the run (after dtrun_init)";
  if (AnyJoined(facts)) return ", before dtrun_init, which other ranks had called";
  return "";
}

// Where the output of the rank is: "all of it: /runs/1/rank-1.*".
std::string KeptIn(const RankFacts& rank, const std::string& logs) {
  if (rank.log_files.empty()) return "it is not kept in a file";
  const std::string usual = fmt::format("{}/rank-{}.", logs, rank.blamed());
  std::string where = usual + "*";
  if (!rank.log_files.front().string().starts_with(usual)) {
    where.clear();
    for (const std::filesystem::path& file : rank.log_files)
      where += (where.empty() ? "" : ", ") + file.string();
  }
  return (rank.log_cut ? "its files have only the beginning: " : "all of it: ") + where;
}

std::string Tail(const RankFacts& rank, const std::string& logs) {
  if (rank.tail.empty()) return fmt::format("  {} printed nothing\n", Who(rank));
  std::string text = fmt::format("  last output of {} ({}):\n", Who(rank), KeptIn(rank, logs));
  const std::size_t skipped = rank.tail.size() - std::min(rank.tail.size(), kTailLines);
  for (std::size_t i = skipped; i < rank.tail.size(); ++i) text += "    | " + rank.tail[i] + "\n";
  return text;
}

// The known failure in its output, without hiding the raw text.
std::string KnownText(const RankFacts& rank) {
  const failures::LogFinding& known = *rank.known;
  const failures::Finding& finding = known.finding;
  const std::string place = failures::PlaceText(known.file.filename().string(), finding);
  const std::size_t last = std::min(rank.tail.size(), kTailLines);
  const bool shown = std::find(rank.tail.end() - static_cast<std::ptrdiff_t>(last), rank.tail.end(),
                               finding.line) != rank.tail.end();  // in the last output above
  return fmt::format("  {}: {} ({}{}{})\n{}", known.recent ? "known failure" : "seen long before",
                     finding.what, finding.failure->id, place.empty() ? "" : "; ", place,
                     shown ? "" : "    | " + finding.line + "\n");
}

// What happened before and after, and where to read more.
std::string Around(const Facts& facts, const RankFacts* cause, std::chrono::nanoseconds at,
                   const std::string& hint, ExitClass exit_class, const std::vector<int>& told = {}) {
  std::string text;
  const std::string before = Before(facts, at);
  if (!before.empty()) text += "  before it: " + before + "\n";
  const std::string also = AlsoFailed(facts, cause, at, told);
  if (!also.empty()) text += "  also failed: " + also + "\n";
  const std::string consequences = Consequences(facts, cause, at, told);
  if (!consequences.empty()) text += "  because of it: " + consequences + "\n";
  const std::string meanwhile = Meanwhile(facts, at);
  if (!meanwhile.empty()) text += "  meanwhile: " + meanwhile + "\n";
  const std::string beside = Beside(facts, at, told);
  if (!beside.empty()) text += "  unrelated: " + beside + "\n";
  if (!facts.not_restarted.empty()) text += "  not restarted: " + facts.not_restarted + "\n";
  if (!hint.empty()) text += "  next: " + hint + "\n";
  if (facts.names_class || exit_class != ExitClass::kUserError)
    text += fmt::format("  class: {}\n", ClassName(exit_class));
  return text + fmt::format("  logs: {}\n", facts.logs);
}

// The evidence for the suspicion.
std::string EvidenceText(const Facts& facts, const Cause& why) {
  const RankFacts& first = facts.ranks[why.first];
  const std::string error = ErrorIn(first.tail);
  std::string text = fmt::format("  seen first: {} {}{}\n", Who(first), FailureText(first),
                                 error.empty() ? "" : ": " + error);
  if (why.suspicion.kind == Suspicion::Kind::kErred && facts.ranks[why.index].signal_sent != 0)
    text += fmt::format("  {} had printed its error by then and had not ended yet\n",
                        Who(facts.ranks[why.index]));
  if (first.known) text += KnownText(first);
  return text;
}

// Its reports, without those that another report of the same peer contains: "connection to rank 1 was closed"
// beside "allreduce #16: connection to rank 1 was closed".
std::vector<PeerReport> ReportsOf(const RankFacts& rank) {
  std::vector<PeerReport> telling;
  for (const PeerReport& one : rank.reports) {
    const bool held = std::ranges::any_of(rank.reports, [&](const PeerReport& other) {
      return other.peer == one.peer && other.what.size() > one.what.size() &&
             other.what.find(one.what) != std::string::npos;
    });
    if (!held) telling.push_back(one);
  }
  return telling;
}

// Empty if the text is already shown: a rank prints its error and reports it, and others repeat it as "rank 0
// gave up: ...".
std::string ReportText(const std::string& who, const PeerReport& report, std::string_view said) {
  constexpr std::string_view kPassedOn = " gave up: ";
  std::string_view what = report.what;
  if (const auto at = what.find(kPassedOn); at != std::string_view::npos)
    what.remove_prefix(at + kPassedOn.size());
  return said.find(what) == std::string_view::npos ? fmt::format("  {} reported: {}\n", who, report.what)
                                                   : "";
}

bool AnySeen(const Facts& facts) {
  return std::ranges::any_of(
      facts.ranks, [](const RankFacts& rank) { return rank.doing.has_value() || !rank.inside.empty(); });
}

std::string StacksText(const Facts& facts) {
  return facts.stacks ? fmt::format("  stacks: {}/{}\n", facts.logs, kStacksFile) : "";
}

// The rank only detected that the calls differ. Its own call need not be the wrong one.
std::string Headline(const Facts& facts, const RankFacts& cause) {
  std::string text = Who(cause) + " " + FailureText(cause);
  const std::string difference = DifferenceOf(facts, cause);
  if (!difference.empty()) return fmt::format("the ranks' calls do not match: {}\n  {}", difference, text);
  if (!SaysCallsDiffer(cause.tail)) return text;
  const std::string place = ErrorPlaceIn(cause.tail);
  return fmt::format("the ranks' calls do not match{}: {}", place.empty() ? "" : ", " + place, text);
}

std::string RankText(const Facts& facts, const Cause& why) {
  const RankFacts& cause = facts.ranks[why.index];
  const RankFacts& first = facts.ranks[why.first];
  const bool suspected = why.suspicion.kind != Suspicion::Kind::kNone;
  const std::vector<int> locked_out = LockedOutBy(facts, why.index);
  const bool apart = !suspected && why.exit_class == ExitClass::kHang && locked_out.empty();
  std::string text = fmt::format("{}: {}\n", Failed(facts, first.ended_at),
                                 suspected ? SuspicionText(facts, why.suspicion)
                                 : apart   ? fmt::format("{}: {}\n  {}", ApartText(facts, why.index),
                                                         PlacesText(PlacesOf(facts)), Headline(facts, cause))
                                           : Headline(facts, cause));
  text += fmt::format("  host {}, pid {}{}\n", cause.host, cause.failed ? cause.failed->pid : cause.pid,
                      PhaseText(facts, cause));
  const std::vector<int> told =
      suspected ? RanksThatLeft(facts, why.suspicion) : FailedAlike(facts, why.first);
  text += suspected ? EvidenceText(facts, why) : AlikeText(facts, why.first);
  text += Tail(cause, facts.logs);
  for (const PeerReport& report : ReportsOf(cause)) text += ReportText("it", report, text);
  for (const RankFacts& rank : facts.ranks) {
    if (&rank == &cause) continue;
    for (const PeerReport& report : ReportsOf(rank)) {
      if (report.peer >= cause.rank && report.peer < cause.rank + cause.count)
        text += ReportText(Who(rank), report, text);
    }
  }
  std::string hint = suspected ? SuspicionHint(why.suspicion.kind) : Hint(cause);
  if (cause.known) {
    const bool shown = suspected && first.known && first.known->finding.line == cause.known->finding.line &&
                       first.known->finding.failure->id == cause.known->finding.failure->id;
    if (!shown) text += KnownText(cause);
    // Advice for a symptom is for ranks that are not the cause.
    const bool fits = !suspected || (cause.known->finding.failure->depth == failures::Depth::kCause &&
                                     why.suspicion.kind != Suspicion::Kind::kOverrode);
    // A report tells less than what dtrun observed of the rank.
    const bool tells = cause.known->recent && cause.known->finding.failure->depth != failures::Depth::kReport;
    if (fits && (tells || hint.empty())) hint = cause.known->finding.fix;
  }
  if (!DifferenceOf(facts, cause).empty()) hint = kMakeSameCalls;
  if (!suspected && NeededRanksThatHadFinished(facts, why.index)) {
    hint = fmt::format(
        "{} called a collective that needs ranks which had finished: give all ranks equally many batches and "
        "epochs, and let none leave before the last collective",
        Who(cause));
  }
  if (const std::string overrides = OverridesText(facts);
      !suspected && !overrides.empty() && FailedToJoin(cause)) {
    text += fmt::format("  {}\n", overrides);
    hint = SuspicionHint(Suspicion::Kind::kOverrode);
  }
  if (!locked_out.empty())
    text +=
        fmt::format("  {} waited for the lock of a file that {} held\n", FoldRanks(locked_out), Who(cause));
  if (!suspected && why.exit_class == ExitClass::kHang) {
    hint = locked_out.empty() ? ApartHint(facts, why.index)
                              : "release that lock before the call in which it waited for the others";
  }
  const bool seen = AnySeen(facts) && (!suspected || why.suspicion.kind == Suspicion::Kind::kErred);
  if (seen ? !apart : !locked_out.empty() && why.exit_class == ExitClass::kHang) {
    const std::string places = KnownPlacesText(facts);
    if (!places.empty()) text += fmt::format("  when {} failed: {}\n", suspected ? Who(first) : "it", places);
  }
  return text + StacksText(facts) + Around(facts, &cause, first.ended_at, hint, why.exit_class, told);
}

// Whether all hosts of ranks were lost, except the root's own.
bool LostAllTogether(const Facts& facts) {
  std::set<std::string> left;
  for (const RankFacts& rank : facts.ranks) {
    if (!OnLostHost(facts, rank)) left.insert(rank.host);
  }
  return facts.losses.size() > 1 && left.size() <= 1 &&
         std::ranges::none_of(facts.losses, &HostLoss::agent_died);
}

std::string LossText(const Facts& facts, const Cause& why) {
  const HostLoss& loss = facts.losses[why.index];
  std::string text = fmt::format("{}: host {} was lost: {}\n", Failed(facts, loss.at), loss.host, loss.why);
  std::string hint = fmt::format("check that {} is up and reachable", loss.host);
  if (loss.agent_died) hint = fmt::format("look in `dmesg` on {} for the out-of-memory killer", loss.host);
  if (!loss.next.empty()) hint = loss.next;
  if (LostAllTogether(facts))
    hint = "all other hosts were lost together: look at the network of the root's host";
  return text + Around(facts, nullptr, loss.at, hint, why.exit_class);
}

std::string MpiServerText(const Facts& facts, const Cause& why) {
  const MpiServerLoss& loss = *facts.mpi_server_loss;
  const std::string text = fmt::format(
      "{}: the PMIx server of host {} {}, and {} still needed it, between MPI_Init and MPI_Finalize\n",
      Failed(facts, loss.at), loss.host, loss.how, FoldRanks(loss.needed));
  // Only processes of this user can connect to it.
  const std::string hint = fmt::format(
      "start the job again; if it happens again, look in `dmesg` on {} and what else of yours connects to "
      "ports of 127.0.0.1 there, install a newer libpmix, or set launcher.name = \"mpirun\"",
      loss.host);
  return text + Around(facts, nullptr, loss.at, hint, why.exit_class);
}

std::string StallText(const Facts& facts, const Cause& why) {
  const bool suspected = why.suspicion.kind != Suspicion::Kind::kNone;
  const bool deadlock = WaitInDifferentCollectives(PlacesOf(facts));
  std::string text = fmt::format("{}: no progress for {}", Failed(facts, facts.duration), facts.stalled);
  if (suspected) {
    const RankFacts& suspect = facts.ranks[why.suspicion.indices.front()];
    text += fmt::format(": {}\n  host {}, pid {}\n", SuspicionText(facts, why.suspicion), suspect.host,
                        suspect.pid);
    text += Tail(suspect, facts.logs);
  } else {
    text += fmt::format(", and {}\n  {}\n",
                        deadlock ? "the ranks waited in different collectives" : "no rank at work",
                        PlacesText(PlacesOf(facts)));
  }
  text += StacksText(facts);
  const std::string hint = suspected  ? SuspicionHint(why.suspicion.kind)
                           : deadlock ? kComparePlaces
                                      : "look at these places";
  return text + Around(facts, nullptr, facts.duration,
                       hint + "; watch.on_stall = \"report\" lets such a job continue", why.exit_class);
}

std::string WhereAndHow(const Facts& facts) {
  const std::string places = PlacesText(PlacesOf(facts)), endings = Endings(facts);
  return (places.empty() ? "" : "  at that moment: " + places + "\n") +
         (endings.empty() ? "" : "  " + endings + "\n");
}

}  // namespace

int ExitCode(const Facts& facts) {
  const Cause cause = FindCause(facts);
  switch (cause.kind) {
    case Cause::Kind::kRank: {
      const RankFacts& rank = facts.ranks[cause.first];
      // An exit code holds only the lowest byte.
      if (rank.abort) return std::max(rank.abort->code & 0xff, 1);
      const process::Ending& ending = *rank.ending;
      if (ending.early_exit != process::EarlyExit::kNone) return kExitedEarly;
      if (ending.stopped_by != 0) return 128 + ending.stopped_by;
      return ending.signal != 0 ? 128 + ending.signal : ending.code;
    }
    case Cause::Kind::kHost: return kHostLost;
    case Cause::Kind::kGuard: return 128 + SIGKILL;
    case Cause::Kind::kInterrupt: return 128 + facts.interrupt;
    case Cause::Kind::kIsolatedRanks: return kIsolated;
    case Cause::Kind::kStalled: return kStalled;
    case Cause::Kind::kMpiServer: return kWithoutMpiServer;
    case Cause::Kind::kTimeLimit: return kTimeIsUp;
    case Cause::Kind::kNone: break;
  }
  return 0;
}

std::string VerdictText(const Facts& facts) {
  const Cause cause = FindCause(facts);
  const std::string elapsed = FormatElapsed(facts.duration);
  switch (cause.kind) {
    case Cause::Kind::kRank: return RankText(facts, cause);
    case Cause::Kind::kHost: return LossText(facts, cause);
    case Cause::Kind::kGuard:
      return fmt::format(
          "dtrun: job '{}': dtrun's first process was killed after {}; every process of the job has been "
          "ended\n"
          "  logs: {}\n",
          facts.job, elapsed, facts.logs);
    case Cause::Kind::kInterrupt:
      return fmt::format("dtrun: job '{}' was interrupted by {} after {}\n{}  logs: {}\n", facts.job,
                         process::SignalName(facts.interrupt), elapsed, WhereAndHow(facts), facts.logs);
    case Cause::Kind::kTimeLimit:
      return fmt::format("{}: the job reached job.time_limit = {}\n{}{}{}", Failed(facts, facts.duration),
                         facts.time_limit, WhereAndHow(facts), StacksText(facts),
                         Around(facts, nullptr, facts.duration,
                                "look at these places, or set a longer job.time_limit", cause.exit_class));
    case Cause::Kind::kStalled: return StallText(facts, cause);
    case Cause::Kind::kIsolatedRanks:
      return fmt::format(
          "{}: {}\n{}", Failed(facts, facts.duration), facts.isolated_ranks->what,
          Around(facts, nullptr, facts.duration, facts.isolated_ranks->next, cause.exit_class));
    case Cause::Kind::kMpiServer: return MpiServerText(facts, cause);
    case Cause::Kind::kNone: break;
  }
  int ranks = 0;
  for (const RankFacts& process : facts.ranks) ranks += process.count;
  std::string text = fmt::format("dtrun: job '{}' succeeded: {} rank{}, {}", facts.job, ranks,
                                 ranks == 1 ? "" : "s", elapsed);
  const std::int64_t restarts = static_cast<std::int64_t>(facts.generation) - facts.regroups;
  if (restarts > 0) text += fmt::format(", after {} restart{}", restarts, restarts == 1 ? "" : "s");
  if (facts.regroups > 0) {
    text += fmt::format(", {} {} change{} of hosts", restarts > 0 ? "and" : "after", facts.regroups,
                        facts.regroups == 1 ? "" : "s");
  }
  return text + fmt::format(", logs in {}\n", facts.logs);
}

std::string FoldRanks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (i > 0) text += ", ";
    text += std::to_string(ranks[i]);
    if (end - i == 2) text += fmt::format(", {}", ranks[i + 1]);
    if (end - i > 2) text += fmt::format("-{}", ranks[end - 1]);
    i = end;
  }
  return text;
}

std::string FormatElapsed(std::chrono::nanoseconds time) {
  const double seconds = std::chrono::duration<double>(time).count();
  if (seconds < 0.001) return "less than 1 ms";
  if (seconds < 0.0095) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 1) return fmt::format("{:.2f} s", seconds);
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = std::llround(seconds);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace dtrun::verdict
