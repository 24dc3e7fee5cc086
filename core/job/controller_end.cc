// How the controller ends a generation: after a rank's failure, after success, or at the user's request.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>

#include "core/base/units.h"
#include "core/job/controller.h"
#include "core/process/process.h"
#include "core/verdict/recognise.h"
#include "core/verdict/suspect.h"
#include "core/verdict/traceback.h"
#include "core/verdict/verdict.h"

namespace dtrun::job {
namespace {

// A job that the user ends after this long without output may be stuck.
constexpr std::chrono::seconds kQuiet{5};

// Whether a rank reports that it waited for a peer until a timeout.
bool SaysItWaited(const verdict::PeerReport& report) {
  return report.what.find("timed out") != std::string::npos ||
         report.what.find("within") != std::string::npos;
}

}  // namespace

void Controller::FailedFirst(std::size_t index) {
  facts_.first_failed = static_cast<int>(index);
  const verdict::RankFacts& first = facts_.ranks[index];
  for (verdict::RankFacts& rank : facts_.ranks) {
    const auto lock = locked_out_.find(rank.rank);
    if (lock != locked_out_.end() && IndexOf(lock->second.holder) == static_cast<int>(index))
      rank.locked_out_by = lock->second.holder;
  }
  // A rank that was killed from outside has printed nothing about its end.
  const bool killed = first.ending && !verdict::EndedByItself(*first.ending);
  const std::vector<std::string> lines = killed ? std::vector<std::string>() : LastLines(first);
  const bool differ = verdict::SaysCallsDiffer(lines);
  if (first.abort) return StopAll(SIGTERM);
  if (!differ && first.reports.empty() && !verdict::SaysPeerIsMissing(lines)) {
    return !have_joined_ && !lines.empty() ? StopAfter(world_.fails_alike_within) : StopAll(SIGTERM);
  }
  KeepLastLines();
  if (MissesOneThatLives(first, true)) {
    awaits_who_leaves_ = true;
    return StopAfter(world_.ends_within);
  }
  const bool waited =
      verdict::SaysTimeOut(lines) || std::ranges::any_of(facts_.ranks, [](const verdict::RankFacts& rank) {
        return verdict::SaysTimeOut(rank.before) || std::ranges::any_of(rank.reports, SaysItWaited);
      });
  // An error printed by a living rank counts only if that rank has not continued since.
  const bool erred = std::ranges::any_of(facts_.ranks, [](const verdict::RankFacts& rank) {
    return !rank.ending && !verdict::ErrorIn(rank.before).empty() && !verdict::SaysPeerIsMissing(rank.before);
  });
  if (waited || differ || erred) return LookAndStop(SIGTERM, waited);
  // A rank that leaves closes its connections some time before it exits.
  const auto ended = std::ranges::count_if(
      facts_.ranks, [](const verdict::RankFacts& rank) { return rank.ending.has_value(); });
  const bool missed_has_ended = !first.reports.empty() && !MissesOneThatLives(first);
  awaits_who_leaves_ = ended == 1 && !missed_has_ended;
  awaits_who_leaves_ ? StopAfter(world_.leaves_within) : StopAll(SIGTERM);
}

bool Controller::MissesOneThatLives(const verdict::RankFacts& rank, bool left) const {
  return std::ranges::any_of(rank.reports, [&](const verdict::PeerReport& report) {
    const int index = rank.IsOfAnother(report) ? IndexOf(report.peer) : -1;
    if (index < 0) return false;
    const verdict::RankFacts& peer = facts_.ranks[static_cast<std::size_t>(index)];
    return !peer.ending && (peer.left || !left);
  });
}

void Controller::StopAfter(std::chrono::nanoseconds pause) {
  phase_ = Phase::kLooking;
  deadline_.expires_after(pause);
  deadline_.async_wait([this, ended = ended_](const boost::system::error_code& error) {
    if (!error && !*ended && phase_ == Phase::kLooking) StopAll(SIGTERM);
  });
}

void Controller::EndWhenAccomplished() {
  if (plan_.success.empty()) return;
  std::vector<int> others;
  for (const verdict::RankFacts& process : facts_.ranks) {
    bool counts = false;
    for (int rank = process.rank; rank < process.rank + process.count; ++rank) {
      counts = counts || std::ranges::count(plan_.success, plan_.roles[static_cast<std::size_t>(rank)]) != 0;
    }
    if (process.ending) continue;
    if (counts) return;
    others.push_back(process.rank);
  }
  if (others.empty()) return;
  facts_.accomplished = true;
  say_(fmt::format("dtrun: every {} has succeeded: asked {} to end", fmt::join(plan_.success, " and "),
                   verdict::FoldRanks(others)));
  StopAll(SIGTERM);
}

bool Controller::TellsWhoLeft(const verdict::RankFacts& ended) const {
  if (phase_ != Phase::kLooking || !awaits_who_leaves_) return false;
  return !ended.ending->failed() || (ended.reports.empty() && !verdict::SaysPeerIsMissing(LastLines(ended)));
}

void Controller::StopAll(int signal) {
  phase_ = Phase::kStopping;
  exchange_.Fail(Error{DTRUN_ABORTED, "the job is ending"});
  Tell(protocol::Stop{signal});
  deadline_.expires_after(plan_.grace);
  deadline_.async_wait([this, ended = ended_](const boost::system::error_code& error) {
    if (error || *ended || phase_ != Phase::kStopping) return;
    KillLate();
  });
}

void Controller::KillAll() {
  phase_ = Phase::kKilling;
  for (Member& member : members_) {
    if (member.state == State::kPrepared) member.state = State::kBusy;  // it will answer with Gone
    if (member.state == State::kBusy || member.state == State::kRunning) member.host->Do(protocol::Kill{});
  }
}

void Controller::KillLate() {
  std::vector<int> late;
  for (const verdict::RankFacts& rank : facts_.ranks) {
    if (!rank.ending) late.push_back(rank.rank);
  }
  if (late.empty()) return KillAll();
  const auto kill = [this, late](const protocol::Inspected& all) {
    if (phase_ != Phase::kStopping) return;
    const std::string places = verdict::PlacesText(all.ranks);
    say_(fmt::format("dtrun: {} did not stop within {}: killing{}{}", verdict::FoldRanks(late),
                     FormatDuration(plan_.grace), places.empty() ? "" : "; ", places));
    KeepStacks("before they were killed, having not stopped in time", all.ranks);
    KillAll();
  };
  if (plan_.grace.count() == 0) return kill({});
  std::vector<int> closely = late;
  closely.resize(std::min(closely.size(), kMostClosely));
  Look(kill, closely);
}

void Controller::OnSignal(int signal) {
  const bool active = phase_ == Phase::kRunning || phase_ == Phase::kLooking || phase_ == Phase::kStopping ||
                      phase_ == Phase::kKilling;
  if (signal == process::Lifeline::kGuardGone) {
    facts_.guard_died = true;
    if (interrupted_ == 0) interrupted_ = signal;
    if (active) KillAll();
    return;
  }
  if (signal == process::UserSignals::kTimeLimit) return OnTimeLimit();
  if (signal == SIGTSTP) {
    Tell(protocol::Signal{SIGSTOP});  // TSTP does not stop ranks in orphaned process groups
    return signals_.Stopped();
  }
  if (!process::UserSignals::EndsJob(signal)) return Tell(protocol::Signal{signal});
  const bool again = std::exchange(user_wants_end_, true);
  if (interrupted_ == 0) interrupted_ = signal;
  const bool all_ended = active && std::ranges::all_of(facts_.ranks, [](const verdict::RankFacts& rank) {
                           return rank.ending.has_value();
                         });
  if (active && (all_ended || (again && (signal == SIGINT || signal == SIGQUIT)))) return KillAll();
  if (phase_ == Phase::kRunning) {
    facts_.interrupt = signal;
    say_(fmt::format("dtrun: {}: asked all ranks to stop, they have {}{}", process::SignalName(signal),
                     FormatDuration(plan_.grace),
                     signal == SIGINT ? "; Ctrl-C again kills them at once" : ""));
    const bool quiet = stall_watch_ && stall_watch_->Quiet() >= kQuiet;
    return quiet ? LookAndStop(signal, false) : StopAll(signal);
  }
  if (phase_ == Phase::kStopping) Tell(protocol::Stop{signal});
}

void Controller::OnTimeLimit() {
  const bool all_ended = std::ranges::all_of(
      facts_.ranks, [](const verdict::RankFacts& rank) { return rank.ending.has_value(); });
  if (phase_ == Phase::kRunning && all_ended) return;  // just in time
  if (interrupted_ == 0) interrupted_ = process::UserSignals::kTimeLimit;
  if (phase_ != Phase::kRunning) return;  // it is already ending, or has not begun
  facts_.time_limit = FormatDuration(signals_.limit());
  say_(fmt::format("dtrun: the job reached job.time_limit = {}: asked all ranks to stop, they have {}",
                   facts_.time_limit, FormatDuration(plan_.grace)));
  LookAndStop(SIGTERM, false);
}

}  // namespace dtrun::job
