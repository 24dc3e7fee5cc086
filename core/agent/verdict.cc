#include "core/agent/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <set>
#include <utility>

#include "core/agent/cause.h"
#include "core/agent/process.h"
#include "core/agent/suspect_text.h"
#include "core/diagnosis/report.h"

namespace dtrun::agent {
namespace {

constexpr int kHostLost = 1;
constexpr int kDeserted = 1;
constexpr int kInLoneWorlds = 1;
constexpr int kStalled = 1;
constexpr int kWithoutMpiServer = 1;

std::string EndingText(const Ending& ending) {
  switch (ending.desertion) {
    case Desertion::kNone: break;
    case Desertion::kBeforeInit: return "exited with code 0 without MPI_Init, which others have called";
    case Desertion::kBeforeFinalize: return "exited with code 0 after MPI_Init and without MPI_Finalize";
  }
  if (ending.stopped_by != 0) {
    return fmt::format("was stopped by signal {} ({}) and did not go on", ending.stopped_by,
                       SignalName(ending.stopped_by));
  }
  if (ending.signal == 0) return fmt::format("exited with code {}", ending.code);
  if (ending.out_of_memory) return "was killed by the kernel, which was out of memory (SIGKILL)";
  const std::string core = ending.core_dumped ? ", core dumped" : "";
  return fmt::format("was killed by signal {} ({}{})", ending.signal, SignalName(ending.signal), core);
}

// How the rank failed that the job failed with.
std::string FailureText(const RankFacts& rank) {
  if (!rank.abort) return EndingText(*rank.ending);
  if (rank.abort->broke) return "broke PMI-1, by which its MPI library starts: " + rank.abort->message;
  return fmt::format("called MPI_Abort with code {}{}{}", rank.abort->code,
                     rank.abort->message.empty() ? "" : ": ", rank.abort->message);
}

bool AnyJoined(const Facts& facts) {
  for (const RankFacts& rank : facts.ranks) {
    if (rank.joined) return true;
  }
  return false;
}

void AddRanks(const RankFacts& process, std::vector<int>* to) {
  for (int rank = process.rank; rank < process.rank + process.count; ++rank) to->push_back(rank);
}

// "rank 3"; "the process of ranks 0-3" where one process holds several.
std::string Who(const RankFacts& process) {
  if (process.failed) return FoldRanks({process.failed->rank});
  std::vector<int> ranks;
  AddRanks(process, &ranks);
  return (process.count == 1 ? "" : "the process of ") + FoldRanks(ranks);
}

// When in its life the rank failed. A program that never calls dtrun_init tells nothing.
std::string PhaseText(const Facts& facts, const RankFacts& rank) {
  if (rank.left) return ", at its end (after dtrun_finalize)";
  if (rank.joined) return ", in the middle of the run (it had joined the job)";
  if (AnyJoined(facts)) return ", before dtrun_init (others had joined the job already)";
  return "";
}

// What usually stands behind this way to end, and where to look.
std::string Hint(const RankFacts& rank) {
  if (rank.abort) return {};
  const Ending& ending = *rank.ending;
  if (ending.stopped_by != 0) {
    return fmt::format("dtrun did not send {}: ask who did; `kill -CONT` lets a stopped process go on",
                       SignalName(ending.stopped_by));
  }
  if (ending.out_of_memory)
    return "use less memory per rank or fewer ranks per host, or raise the limit (job.memory, --mem of "
           "Slurm, the container's)";
  switch (ending.signal) {
    case 0: break;
    case SIGKILL:
      return "dtrun did not send this signal: look in `dmesg` for the out-of-memory killer, or ask who did";
    case SIGSEGV:
    case SIGABRT:
    case SIGFPE:
      return ending.core_dumped ? "open the core file with `coredumpctl gdb` or `gdb PROGRAM core`"
                                : "run again after `ulimit -c unlimited` and open the core file with gdb";
    case SIGBUS: return "look at `df -h /dev/shm` and the disks: a mapped file may have had no room to grow";
    case SIGILL: return "the program was built for another processor; build it on this machine";
    case SIGPIPE: return "it wrote to a closed pipe or socket: look at its last output";
    case SIGXCPU:
    case SIGXFSZ: return "a limit was reached: look at `ulimit -a`";
    default: return fmt::format("dtrun did not send {}: ask who did", SignalName(ending.signal));
  }
  if (ending.signal == 0 && ending.code == 127) {
    return "127 is what a shell says of a command that was not found: look at its last output and PATH";
  }
  if (ending.signal == 0 && ending.code == 126) {
    return "126 is what a shell says of a command that is not executable: look at its last output";
  }
  if (ending.signal == 0 && ending.code > 128 && ending.code <= 128 + SIGRTMAX) {
    return fmt::format("{} is what a shell says of a command killed by {}", ending.code,
                       SignalName(ending.code - 128));
  }
  return {};
}

// Ranks that ended alike, said in one clause.
struct Group {
  std::string one, many;  // what the clause says of one rank, of several
  std::vector<int> ranks;
  std::chrono::nanoseconds latest{0};
};

class Groups {
 public:
  Group& Of(const std::string& one, const std::string& many) {
    for (Group& group : groups_) {
      if (group.one == one) return group;
    }
    return groups_.emplace_back(Group{one, many, {}, {}});
  }

  // "rank 0 exited with code 1 0.01 s later; ranks 2-5 were stopped by dtrun"
  std::string Text() const {
    std::string text;
    for (const Group& group : groups_) {
      const bool single = group.ranks.size() == 1;
      text += fmt::format("{}{} {}", text.empty() ? "" : "; ", FoldRanks(group.ranks),
                          single ? group.one : group.many);
      if (group.latest.count() == 0) continue;
      const std::string elapsed = FormatElapsed(group.latest);
      text += single ? fmt::format(" {} later", elapsed) : fmt::format(" within {}", elapsed);
    }
    return text;
  }

 private:
  std::vector<Group> groups_;
};

std::string ManyEndingText(const Ending& ending) {
  const std::string text = EndingText(ending);
  return text.starts_with("was ") ? "were" + text.substr(3) : text;
}

bool EndedWellBefore(const RankFacts& rank, std::chrono::nanoseconds at) {
  return rank.ending && !rank.ending->failed() && rank.ended_at < at;
}

bool EndedWell(const RankFacts& rank) { return rank.ending && !rank.ending->failed(); }

// Ranks that had ended by then, and that ended later, whatever became of the others.
std::string Beside(const Facts& facts, std::chrono::nanoseconds at) {
  std::vector<int> ranks;
  for (const RankFacts& rank : facts.ranks) {
    if (EndedWell(rank) && rank.signal_sent == 0 && !EndedWellBefore(rank, at)) AddRanks(rank, &ranks);
  }
  return ranks.empty() ? "" : FoldRanks(ranks) + " exited with code 0";
}

std::string Before(const Facts& facts, std::chrono::nanoseconds at) {
  std::vector<int> ranks;
  for (const RankFacts& rank : facts.ranks) {
    if (EndedWellBefore(rank, at)) AddRanks(rank, &ranks);
  }
  return ranks.empty() ? "" : FoldRanks(ranks) + " had exited with code 0";
}

bool OnLostHost(const Facts& facts, const RankFacts& rank) {
  return std::ranges::any_of(facts.losses, [&](const HostLoss& loss) { return loss.host == rank.host; });
}

// How a rank ended that dtrun did not hear the end of.
std::pair<std::string, std::string> Unheard(const Facts& facts, const RankFacts& rank) {
  if (OnLostHost(facts, rank)) return {"was lost with its host", "were lost with their host"};
  if (rank.pid == 0) return {"had not been started", "had not been started"};
  return {"had not ended 10 s after SIGKILL", "had not ended 10 s after SIGKILL"};
}

// `cause` is null when it is not a rank; then everything that ended after `at` counts.
std::string Consequences(const Facts& facts, const RankFacts* cause, std::chrono::nanoseconds at) {
  Groups groups;
  for (const RankFacts& rank : facts.ranks) {
    if (&rank == cause || (EndedWell(rank) && rank.signal_sent == 0) || EndedWellBefore(rank, at)) continue;
    if (!rank.ending) {
      const auto [one, many] = Unheard(facts, rank);
      AddRanks(rank, &groups.Of(one, many).ranks);
    } else if (rank.ending->stopped_by == 0 && rank.signal_sent == SIGKILL &&
               rank.ending->signal == SIGKILL) {
      AddRanks(rank, &groups
                          .Of("did not stop in time and was killed by dtrun",
                              "did not stop in time and were killed by dtrun")
                          .ranks);
    } else if (rank.ending->stopped_by == 0 && rank.ending->signal != 0 &&
               rank.ending->signal == rank.signal_sent) {
      AddRanks(rank, &groups.Of("was stopped by dtrun", "were stopped by dtrun").ranks);
    } else if (EndedWell(rank)) {
      AddRanks(
          rank,
          &groups.Of("ended with code 0 when dtrun asked it to", "ended with code 0 when dtrun asked them to")
               .ranks);
    } else {
      Group& group = groups.Of(EndingText(*rank.ending), ManyEndingText(*rank.ending));
      AddRanks(rank, &group.ranks);
      group.latest = std::max(group.latest, rank.ended_at - at);
    }
  }
  return groups.Text();
}

std::string Tail(const RankFacts& rank, const std::string& logs) {
  if (rank.tail.empty()) return fmt::format("  {} printed nothing\n", Who(rank));
  std::string text =
      fmt::format("  last output of {} ({}: {}/rank-{}.*):\n", Who(rank),
                  rank.log_cut ? "of which files have the beginning" : "all of it", logs, rank.blamed());
  const std::size_t skipped = rank.tail.size() - std::min(rank.tail.size(), kTailLines);
  for (std::size_t i = skipped; i < rank.tail.size(); ++i) text += "    | " + rank.tail[i] + "\n";
  return text;
}

// What is known of what the rank printed; the raw text stays in sight.
std::string KnownText(const RankFacts& rank) {
  const diagnosis::LogFinding& known = *rank.known;
  const diagnosis::Finding& finding = known.finding;
  const std::string place = diagnosis::PlaceText(known.file.filename().string(), finding);
  const std::size_t last = std::min(rank.tail.size(), kTailLines);
  const bool shown = std::find(rank.tail.end() - static_cast<std::ptrdiff_t>(last), rank.tail.end(),
                               finding.line) != rank.tail.end();  // in the last output above
  return fmt::format("  {}: {} ({}{}{})\n{}", known.recent ? "known failure" : "seen long before",
                     finding.what, finding.failure->id, place.empty() ? "" : "; ", place,
                     shown ? "" : "    | " + finding.line + "\n");
}

// What happened before and after, and where to read on.
std::string Around(const Facts& facts, const RankFacts* cause, std::chrono::nanoseconds at,
                   const std::string& hint, ExitClass exit_class) {
  std::string text;
  const std::string before = Before(facts, at);
  if (!before.empty()) text += "  before it: " + before + "\n";
  const std::string consequences = Consequences(facts, cause, at);
  if (!consequences.empty()) text += "  because of it: " + consequences + "\n";
  const std::string beside = Beside(facts, at);
  if (!beside.empty()) text += "  beside it: " + beside + "\n";
  if (!hint.empty()) text += "  next: " + hint + "\n";
  return text + fmt::format("  class: {}\n  logs: {}\n", ClassName(exit_class), facts.logs);
}

// And how that is known.
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

// Its reports but for those that another one of the same peer holds: "connection to rank 1 was closed" beside
// "allreduce #16: connection to rank 1 was closed".
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

std::string RankText(const Facts& facts, const Cause& why) {
  const RankFacts& cause = facts.ranks[why.index];
  const RankFacts& first = facts.ranks[why.first];
  const bool suspected = why.suspicion.kind != Suspicion::Kind::kNone;
  std::string text =
      fmt::format("dtrun: job '{}' failed after {}: {}\n", facts.job, FormatElapsed(first.ended_at),
                  suspected ? SuspicionText(facts, why.suspicion) : Who(cause) + " " + FailureText(cause));
  text += fmt::format("  host {}, pid {}{}\n", cause.host, cause.failed ? cause.failed->pid : cause.pid,
                      PhaseText(facts, cause));
  text += suspected ? EvidenceText(facts, why) : AlikeText(facts, why.first);
  text += Tail(cause, facts.logs);
  for (const PeerReport& report : ReportsOf(cause)) text += fmt::format("  it reported: {}\n", report.what);
  for (const RankFacts& rank : facts.ranks) {
    if (&rank == &cause) continue;
    for (const PeerReport& report : ReportsOf(rank)) {
      if (report.peer >= cause.rank && report.peer < cause.rank + cause.count)
        text += fmt::format("  {} reported of it: {}\n", Who(rank), report.what);
    }
  }
  std::string hint = suspected ? SuspicionHint(why.suspicion.kind) : Hint(cause);
  if (cause.known) {
    text += KnownText(cause);
    if (cause.known->recent || hint.empty()) hint = cause.known->finding.cure;
  }
  if (std::ranges::any_of(facts.ranks, [](auto& other) { return other.doing || !other.inside.empty(); })) {
    // Else the suspicion tells them.
    if (!suspected || why.suspicion.kind == Suspicion::Kind::kErred)
      text +=
          fmt::format("  when {} failed: {}\n", suspected ? Who(first) : "it", PlacesText(PlacesOf(facts)));
    text += fmt::format("  stacks: {}/{}\n", facts.logs, kStacksFile);
  }
  return text + Around(facts, &cause, first.ended_at, hint, why.exit_class);
}

// No host of the ranks is left but the root's own, if that is one.
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
  std::string text = fmt::format("dtrun: job '{}' failed after {}: host {} was lost: {}\n", facts.job,
                                 FormatElapsed(loss.at), loss.host, loss.why);
  std::string hint = fmt::format("look whether {} is up and can be reached", loss.host);
  if (loss.agent_died) hint = fmt::format("look in `dmesg` on {} for the out-of-memory killer", loss.host);
  if (!loss.next.empty()) hint = loss.next;
  if (LostAllTogether(facts))
    hint = "all other hosts were lost together: look at the network of the root's host";
  return text + Around(facts, nullptr, loss.at, hint, why.exit_class);
}

std::string MpiServerText(const Facts& facts, const Cause& why) {
  const MpiServerLoss& loss = *facts.mpi_server_loss;
  const std::string text = fmt::format(
      "dtrun: job '{}' failed after {}: the PMIx server of host {} {}, and {} still needed it, between "
      "MPI_Init "
      "and MPI_Finalize\n",
      facts.job, FormatElapsed(loss.at), loss.host, loss.how, FoldRanks(loss.needed));
  // Only this user's processes reach it.
  const std::string hint = fmt::format(
      "start the job again; if it happens again, look in `dmesg` on {} and what else of yours connects to "
      "ports of 127.0.0.1 there, install a newer libpmix, or set launcher.name = \"mpirun\"",
      loss.host);
  return text + Around(facts, nullptr, loss.at, hint, why.exit_class);
}

// How the ranks ended in a run that was ended from outside.
std::string Endings(const Facts& facts) {
  Groups groups;
  for (const RankFacts& rank : facts.ranks) {
    const auto [one, many] = rank.ending ? std::pair(EndingText(*rank.ending), ManyEndingText(*rank.ending))
                                         : Unheard(facts, rank);
    AddRanks(rank, &groups.Of(one, many).ranks);
  }
  return groups.Text();
}

}  // namespace

int ExitCode(const Facts& facts) {
  const Cause cause = FindCause(facts);
  switch (cause.kind) {
    case Cause::Kind::kRank: {
      const RankFacts& rank = facts.ranks[cause.first];
      // The lowest byte is what an exit code holds.
      if (rank.abort) return std::max(rank.abort->code & 0xff, 1);
      const Ending& ending = *rank.ending;
      if (ending.desertion != Desertion::kNone) return kDeserted;
      if (ending.stopped_by != 0) return 128 + ending.stopped_by;
      return ending.signal != 0 ? 128 + ending.signal : ending.code;
    }
    case Cause::Kind::kHost: return kHostLost;
    case Cause::Kind::kGuard: return 128 + SIGKILL;
    case Cause::Kind::kInterrupt: return 128 + facts.interrupt;
    case Cause::Kind::kLoneWorlds: return kInLoneWorlds;
    case Cause::Kind::kStalled: return kStalled;
    case Cause::Kind::kMpiServer: return kWithoutMpiServer;
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
    case Cause::Kind::kInterrupt: {
      const std::string endings = Endings(facts);
      const std::string places = PlacesText(PlacesOf(facts));
      return fmt::format("dtrun: job '{}' was interrupted by {} after {}\n{}{}  logs: {}\n", facts.job,
                         SignalName(facts.interrupt), elapsed,
                         places.empty() ? "" : "  when it was: " + places + "\n",
                         endings.empty() ? "" : "  " + endings + "\n", facts.logs);
    }
    case Cause::Kind::kStalled:
      return fmt::format("dtrun: job '{}' failed after {}: no progress for {}, and no rank at work\n  {}\n{}",
                         facts.job, elapsed, facts.stalled, PlacesText(PlacesOf(facts)),
                         Around(facts, nullptr, facts.duration,
                                "look at these places; watch.on_stall = \"report\" lets such a job go on",
                                cause.exit_class));
    case Cause::Kind::kLoneWorlds:
      return fmt::format("dtrun: job '{}' failed after {}: {}\n{}", facts.job, elapsed,
                         facts.lone_worlds->what,
                         Around(facts, nullptr, facts.duration, facts.lone_worlds->next, cause.exit_class));
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

}  // namespace dtrun::agent
