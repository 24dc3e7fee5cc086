// How the controller ends a generation: after a rank's failure, after success, or at the user's request.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "core/base/number.h"
#include "core/job/controller.h"
#include "core/process/process.h"
#include "core/verdict/recognise.h"
#include "core/verdict/suspect.h"
#include "core/verdict/traceback.h"
#include "core/verdict/verdict.h"
#include "core/verdict/waits.h"

namespace dtrun::job {
namespace {

// A job that the user ends after this long without output may be stuck.
constexpr std::chrono::seconds kQuiet{5};
// A rank that is exiting makes progress within this time; a stuck one does not.
constexpr std::chrono::milliseconds kStandsStillAfter{250};
// For a call of a plugin that is overdue soon: for as long as `soon` means (core/node/local_host.cc).
constexpr int kMostLooks = 20;
// For the answers of all hosts, once the time of late ranks is over.
constexpr std::chrono::seconds kLastLook{2};
// Number of ranks to take native stacks of before they are ended.
constexpr std::size_t kMostClosely = 8;

// Ranks that do not wait for others come first, then those with unknown state.
std::vector<int> WorthACloserLook(const std::vector<verdict::RankDoing>& ranks) {
  std::vector<int> closely;
  for (const stacks::Stand stand : {stacks::Stand::kElsewhere, stacks::Stand::kUnknown}) {
    for (const verdict::RankDoing& doing : ranks) {
      if (doing.stand == stand && closely.size() < kMostClosely) closely.push_back(doing.rank);
    }
  }
  return closely;
}

}  // namespace

void Controller::OnGone(Member& member, const protocol::Gone& gone) {
  member.state = State::kIdle;
  calls_ += gone.calls;
  const auto is_there = [&](int rank) {
    const verdict::RankFacts* const found = facts_.Find(rank);
    return found != nullptr && found->host == member.name;
  };
  for (const protocol::CrashedAt& crash : gone.crashes)
    if (is_there(crash.rank)) Record(fact::CrashedAt{{crash.rank}, crash.place}, member.name);
  for (const protocol::RankLooks& looks : gone.looks)
    if (is_there(looks.rank)) looks_.push_back(looks);
}

void Controller::FailedFirst(const verdict::RankFacts& first) {
  Record(fact::FailedFirst{{first.rank}});
  // A rank that was killed from outside has printed nothing about its end.
  const bool killed = first.ending && !verdict::EndedByItself(*first.ending);
  const std::vector<std::string> lines = killed ? std::vector<std::string>() : LastLines(first);
  const bool differ = verdict::SaysCallsDiffer(lines);
  if (first.abort) return StopAll(SIGTERM);
  for (const verdict::RankFacts& rank : facts_.ranks) {
    if (!rank.ending || &rank == &first) Record(fact::SaidBefore{{rank.rank}, LastLines(rank)});
  }
  if (!differ && first.reports.empty() && !verdict::SaysPeerIsMissing(lines)) {
    const auto index = static_cast<std::size_t>(&first - facts_.ranks.data());
    if (!killed && verdict::ErredBefore(facts_, index)) return LookAndStop(SIGTERM, 0);
    return !facts_.met && !lines.empty() ? StopAfter(world_.fails_alike_within) : StopAll(SIGTERM);
  }
  if (MissesOneThatLives(first, true)) {
    awaits_who_leaves_ = true;
    return StopAfter(world_.ends_within);
  }
  const bool waited =
      verdict::SaysTimeOut(lines) || std::ranges::any_of(facts_.ranks, [](const verdict::RankFacts& rank) {
        return verdict::SaysTimeOut(rank.before) || std::ranges::any_of(rank.reports, verdict::SaysItWaited);
      });
  // An error printed by a living rank counts only if that rank has not continued since.
  const bool erred = std::ranges::any_of(facts_.ranks, [](const verdict::RankFacts& rank) {
    return !rank.ending && !verdict::ErrorIn(rank.before).empty() && !verdict::SaysPeerIsMissing(rank.before);
  });
  if (differ && !waited) {
    phase_ = Phase::kLooking;
    return After(world_.told_within, [this] { LookAndStop(SIGTERM, 0); });
  }
  if (waited || erred) return LookAndStop(SIGTERM, waited ? kMostLooks : 0);
  // A rank that leaves closes its connections some time before it exits.
  const auto ended = std::ranges::count_if(
      facts_.ranks, [](const verdict::RankFacts& rank) { return rank.ending.has_value(); });
  const bool missed_has_ended = !first.reports.empty() && !MissesOneThatLives(first);
  awaits_who_leaves_ = ended == 1 && !missed_has_ended;
  awaits_who_leaves_ ? StopAfter(world_.leaves_within) : StopAll(SIGTERM);
}

bool Controller::MissesOneThatLives(const verdict::RankFacts& rank, bool left) const {
  return std::ranges::any_of(rank.reports, [&](const verdict::PeerReport& report) {
    const verdict::RankFacts* const peer = rank.IsOfAnother(report) ? facts_.Find(report.peer) : nullptr;
    return peer != nullptr && !peer->ending && (peer->left || !left);
  });
}

bool Controller::TellsWhoLeft(const verdict::RankFacts& ended) const {
  if (phase_ != Phase::kLooking || !awaits_who_leaves_) return false;
  return !ended.ending->failed() || (ended.reports.empty() && !verdict::SaysPeerIsMissing(LastLines(ended)));
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
  Note(fact::Noted::What::kAccomplished);
  say_(fmt::format("dtrun: every {} has succeeded: asked {} to end", fmt::join(plan_.success, " and "),
                   verdict::FoldRanks(others)));
  StopAll(SIGTERM);
}

void Controller::After(std::chrono::nanoseconds pause, std::function<void()> then) {
  deadline_.After(pause, [this, phase = phase_, then = std::move(then)] {
    if (phase_ == phase) then();
  });
}

void Controller::StopAfter(std::chrono::nanoseconds pause) {
  phase_ = Phase::kLooking;
  // If no rank has left by then, one that lives has closed its connections.
  After(pause, [this] { awaits_who_leaves_ ? LookAndStop(SIGTERM, kMostLooks) : StopAll(SIGTERM); });
}

void Controller::LookAndStop(int signal, int looks, const std::vector<int>& closely) {
  phase_ = Phase::kLooking;
  const bool last = !closely.empty();
  const auto judge = [this, signal, looks, last](const protocol::Inspected& all) {
    if (phase_ != Phase::kLooking) return;
    fact::Places looked{true, {}};
    bool still = false, soon = false;
    std::vector<verdict::RankDoing> ranks = all.ranks;
    // A rank that failed has said the number.
    if (!facts_.stalled.empty() || facts_.interrupt != 0 || !facts_.time_limit.empty())
      verdict::AddCalls(&ranks);
    for (const verdict::RankDoing& doing : ranks) {
      looked.ranks.push_back({{doing.rank}, doing});
      still = still || doing.stand == stacks::Stand::kElsewhere;
      soon = soon || doing.due_soon;
      for (const verdict::Override& one : doing.overrides)
        Record(fact::Overrode{{doing.rank}, one.name, one.given, one.now});
    }
    if (looks == 0 || looks == kMostLooks || !soon) Record(std::move(looked));
    const std::vector<int> next = last ? std::vector<int>() : WorthACloserLook(all.ranks);
    if (looks > 0 && (still || soon)) {
      const int more = soon ? looks - 1 : 0;
      return After(kStandsStillAfter, [this, signal, more, closely = soon ? std::vector<int>() : next] {
        for (const verdict::RankFacts& rank : facts_.ranks) {  // some only had to print the same as others
          auto lines = rank.ending ? std::vector<std::string>() : LastLines(rank);
          if (verdict::SaysPeerIsMissing(lines)) Record(fact::SaidBefore{{rank.rank}, std::move(lines)});
        }
        LookAndStop(signal, more, closely);
      });
    }
    if (!next.empty()) return LookAndStop(signal, 0, next);
    KeepStacks("before the ranks were ended", all.ranks);
    StopAll(signal);
  };
  Look(judge, closely);
}

std::string Controller::KeepStacks(const std::string& why, const std::vector<verdict::RankDoing>& ranks) {
  std::string file = world_.keep_stacks && !ranks.empty() ? world_.keep_stacks(why, ranks) : "";
  if (!file.empty()) Note(fact::Noted::What::kStacks);
  return file;
}

void Controller::StopAll(int signal) {
  const bool mpirun_ends = std::ranges::any_of(
      facts_.ranks, [](const verdict::RankFacts& rank) { return rank.failed && !rank.ending; });
  if (mpirun_ends && !std::exchange(awaits_mpirun_, true)) {
    phase_ = Phase::kLooking;
    return After(world_.mpirun_ends_within, [this, signal] { StopAll(signal); });
  }
  phase_ = Phase::kStopping;
  for (const auto& observer : observers_) observer->Ends();
  Tell(protocol::Stop{signal});
  After(grace_, [this] { KillLate(); });
}

void Controller::SetGrace(std::chrono::nanoseconds grace) {
  grace_ = grace;
  if (phase_ == Phase::kStopping) After(grace_, [this] { KillLate(); });
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
                     FormatDuration(grace_), places.empty() ? "" : "; ", places));
    KeepStacks("before they were killed, having not stopped in time", all.ranks);
    KillAll();
  };
  if (grace_.count() == 0) return kill({});
  Look(kill);  // native stacks would take seconds, and the time is over
  After(kLastLook, [kill] { kill({}); });
}

bool Controller::AllEnded() const {
  return std::ranges::all_of(facts_.ranks,
                             [](const verdict::RankFacts& rank) { return rank.ending.has_value(); });
}

void Controller::OnSignal(int signal, const std::string& host) {
  const bool active = phase_ != Phase::kIdle && phase_ != Phase::kPreparing;
  if (signal == process::Lifeline::kGuardGone) {
    if (active) Note(fact::Noted::What::kGuardDied);
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
  if (active && (AllEnded() || (again && (signal == SIGINT || signal == SIGQUIT)))) return KillAll();
  if (phase_ == Phase::kRunning) {
    Record(fact::Interrupted{signal, host});
    say_(fmt::format("dtrun: {}{}: asked all ranks to stop, they have {}{}", process::SignalName(signal),
                     host.empty() ? "" : " on host " + host, FormatDuration(grace_),
                     signal == SIGINT ? "; Ctrl-C again kills them at once" : ""));
    return stalls_->Quiet() >= kQuiet ? LookAndStop(signal, 0) : StopAll(signal);
  }
  if (phase_ == Phase::kStopping) Tell(protocol::Stop{signal});
}

void Controller::OnTimeLimit() {
  if (phase_ == Phase::kRunning && AllEnded()) return;  // just in time
  if (interrupted_ == 0) interrupted_ = process::UserSignals::kTimeLimit;
  if (phase_ != Phase::kRunning) return;  // it is already ending, or has not begun
  const std::string limit = FormatDuration(signals_.limit());
  Note(fact::Noted::What::kTimeLimit, limit);
  say_(fmt::format("dtrun: the job reached job.time_limit = {}: asked all ranks to stop, they have {}", limit,
                   FormatDuration(grace_)));
  LookAndStop(SIGTERM, 0);
}

}  // namespace dtrun::job
