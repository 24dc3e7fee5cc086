#include "core/verdict/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <set>

#include "core/process/process.h"
#include "core/verdict/cause.h"
#include "core/verdict/text.h"
#include "core/verdict/waits.h"

namespace dtrun::verdict {
namespace {

constexpr int kFailed = 1;      // where no exit code of a rank tells
constexpr int kTimeIsUp = 124;  // as timeout(1)

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
      "start the job again; if it happens again: look in `dmesg` on {}, and for other programs of yours "
      "there that connect to ports of 127.0.0.1; install a newer libpmix, or set launcher.name = \"mpirun\"",
      loss.host);
  return text + Around(facts, nullptr, loss.at, hint, why.exit_class);
}

// Of a rank that a signal has stopped; empty: another one.
std::string StoppedHint(const RankFacts& rank) {
  if (!rank.doing || !rank.doing->phrase.starts_with("stopped,")) return {};
  return fmt::format("`kill -CONT {}` on {} resumes it; find out what stopped it", rank.pid, rank.host);
}

std::string StallText(const Facts& facts, const Cause& why) {
  const bool suspected = why.suspicion.kind != Suspicion::Kind::kNone;
  const bool deadlock = WaitInDifferentCollectives(PlacesOf(facts));
  std::string text = fmt::format("{}: no progress for {}", Failed(facts, facts.duration), facts.stalled);
  const std::string waits = suspected || deadlock ? "" : WhoWaitsText(PlacesOf(facts), {}, true);
  if (suspected) {
    const RankFacts& suspect = facts.ranks[why.suspicion.indices.front()];
    text += fmt::format(": {}\n  host {}, pid {}\n", SuspicionText(facts, why.suspicion), suspect.host,
                        suspect.pid);
    text += Tail(suspect, facts.logs);
  } else {
    text += fmt::format(", and {}\n  {}{}\n",
                        deadlock ? "the ranks waited in different collectives" : "no rank at work",
                        PlacesText(PlacesOf(facts)), waits.empty() ? "" : "; " + waits);
  }
  text += StacksText(facts);
  const std::string stopped = suspected ? StoppedHint(facts.ranks[why.suspicion.indices.front()]) : "";
  const std::string hint = !stopped.empty() ? stopped
                           : suspected      ? SuspicionHint(facts, why.suspicion.kind)
                           : deadlock       ? kComparePlaces
                                            : PlacesHint(PlacesOf(facts), "look at these places");
  return text + Around(facts, nullptr, facts.duration,
                       hint + "; watch.on_stall = \"explain\" lets such a job continue", why.exit_class);
}

std::string WhereAndHow(const Facts& facts) {
  const std::vector<RankDoing> doings = PlacesOf(facts);
  // Ranks that go on may be in different calls at one look.
  const std::string waits = WaitInDifferentCollectives(doings) ? "" : WhoWaitsText(doings);
  const std::string endings = Endings(facts);
  if (facts.between)
    return "  no rank ran at that moment" + (endings.empty() ? "" : "; before: " + endings) + "\n";
  std::string places = PlacesText(doings);
  if (!waits.empty()) places += "; " + waits;
  return (places.empty() ? "" : "  at that moment: " + places + "\n") +
         (endings.empty() ? "" : "  " + endings + "\n");
}

// VerdictText, but for the straggler.
std::string CauseText(const Facts& facts) {
  const Cause cause = FindCause(facts);
  const std::string elapsed = FormatElapsed(facts.generation == 0 ? facts.duration : facts.elapsed);
  switch (cause.kind) {
    case Cause::Kind::kRank: return RankText(facts, cause);
    case Cause::Kind::kHost: return LossText(facts, cause);
    case Cause::Kind::kGuard:
      return fmt::format(
          "dtrun: job '{}': dtrun's first process was killed after {}; all processes of the job were ended\n"
          "  logs: {}\n",
          facts.job, elapsed, facts.logs);
    case Cause::Kind::kInterrupt:
      return fmt::format("dtrun: job '{}' was interrupted by {}{} after {}\n{}  logs: {}\n", facts.job,
                         process::SignalName(facts.interrupt),
                         facts.interrupt_host.empty() ? "" : " on host " + facts.interrupt_host, elapsed,
                         WhereAndHow(facts), facts.logs);
    case Cause::Kind::kTimeLimit:
      return fmt::format(
          "{}: the job reached job.time_limit = {}\n{}{}{}", Failed(facts, facts.duration), facts.time_limit,
          WhereAndHow(facts), StacksText(facts),
          Around(facts, nullptr, facts.duration,
                 facts.between ? "set a longer job.time_limit, which counts waits and restarts too"
                               : "look at these places, or set a longer job.time_limit",
                 cause.exit_class));
    case Cause::Kind::kStalled: return StallText(facts, cause);
    case Cause::Kind::kIsolatedRanks:
      return fmt::format(
          "{}: {}\n{}", Failed(facts, facts.duration), facts.isolated_ranks->what,
          Around(facts, nullptr, facts.duration, facts.isolated_ranks->next, cause.exit_class));
    case Cause::Kind::kMpiServer: return MpiServerText(facts, cause);
    case Cause::Kind::kNone: break;
  }
  if (facts.cut) {
    return fmt::format("dtrun: job '{}'{}{} after it began\n{}  logs: {}\n", facts.job, kOpenEnd, elapsed,
                       WhereAndHow(facts), facts.logs);
  }
  int ranks = 0;
  for (const RankFacts& process : facts.ranks) ranks += process.count;
  std::string text = fmt::format("dtrun: job '{}' succeeded{}: {} rank{}, {}", facts.job,
                                 facts.worked_alone.empty() ? "" : ", but its ranks did not join each other",
                                 ranks, ranks == 1 ? "" : "s", elapsed);
  const std::int64_t restarts = static_cast<std::int64_t>(facts.generation) - facts.regroups;
  if (restarts > 0) text += fmt::format(", after {} restart{}", restarts, restarts == 1 ? "" : "s");
  if (facts.regroups > 0) {
    text += fmt::format(", {} {} change{} of hosts", restarts > 0 ? "and" : "after", facts.regroups,
                        facts.regroups == 1 ? "" : "s");
  }
  text += fmt::format(", logs in {}\n", facts.logs);
  return facts.worked_alone.empty() ? text : text + fmt::format("  next: {}\n", facts.worked_alone);
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
      if (ending.early_exit != process::EarlyExit::kNone) return kFailed;
      if (ending.stopped_by != 0) return 128 + ending.stopped_by;
      return ending.signal != 0 ? 128 + ending.signal : ending.code;
    }
    case Cause::Kind::kGuard: return 128 + SIGKILL;
    case Cause::Kind::kInterrupt: return 128 + facts.interrupt;
    case Cause::Kind::kHost:
    case Cause::Kind::kIsolatedRanks:
    case Cause::Kind::kStalled:
    case Cause::Kind::kMpiServer: return kFailed;
    case Cause::Kind::kTimeLimit: return kTimeIsUp;
    case Cause::Kind::kNone: break;
  }
  return 0;
}

std::string StragglerText(const Straggler& straggler, bool goes_on) {
  std::string text = fmt::format(
      "rank {} {} {} wait {} % of the time ({} looks)", straggler.rank, goes_on ? "makes" : "made",
      straggler.whom.empty() ? std::string("the others") : FoldRanks(straggler.whom), straggler.percent,
      straggler.looks);
  if (!straggler.place.empty()) text += ", mostly " + straggler.place;
  if (straggler.rival > 0)
    text +=
        fmt::format("; its processor was busy with pid {} ({})", straggler.rival, straggler.rival_command);
  return text;
}

std::string VerdictText(const Facts& facts) {
  return CauseText(facts) + (facts.straggler ? "  " + StragglerText(*facts.straggler) + "\n" : "");
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
