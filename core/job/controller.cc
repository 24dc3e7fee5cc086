#include "core/job/controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "core/base/printable.h"
#include "core/base/visit.h"
#include "core/process/process.h"
#include "core/store/server.h"
#include "core/verdict/verdict.h"

namespace dtrun::job {
namespace {

constexpr std::chrono::milliseconds kIdleEvery{200};
constexpr std::chrono::seconds kLeftoverGrace{2};
constexpr std::size_t kMostReports = 64;  // reports by one rank about its peers

}  // namespace

Controller::Controller(boost::asio::io_context& loop, process::UserSignals& signals, const plan::Plan& plan,
                       const std::vector<protocol::Host*>& hosts, Say say)
    : loop_(loop),
      signals_(signals),
      plan_(plan),
      say_(std::move(say)),
      deadline_(loop),
      idle_(loop),
      inspection_(loop),
      run_id_(store::NewJobKey().substr(0, 8)),
      exchange_([this](int host, const std::string& exchange, const Result<std::string>& all) {
        Member& member = members_[static_cast<std::size_t>(host)];
        if (member.state != State::kRunning) return;
        member.host->Do(all ? protocol::Exchanged{exchange, "", *all}
                            : protocol::Exchanged{exchange, all.error().text, ""});
      }) {
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    hosts[i]->Attach([this, i](const protocol::Event& event) { On(i, event); });
    members_.push_back({hosts[i], plan.hosts[i].name, State::kIdle, {}});
  }
  signals_.Handle([this](int signal) { OnSignal(signal); });
}

Controller::~Controller() {
  *ended_ = true;
  for (const Member& member : members_) member.host->Attach({});
  signals_.Handle({});
}

Result<std::vector<protocol::Prepared>> Controller::Prepare(std::uint64_t generation,
                                                            const std::string& job_key) {
  phase_ = Phase::kPreparing;
  generation_ = generation;
  refusal_.reset();
  calls_.clear();
  exchange_.Reset();
  differed_ = false;
  mpi_job_ = fmt::format("{}-{}.{}", plan_.job, run_id_, generation);
  const std::vector<int> tasks = plan::TaskPortsUsed(plan_);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    protocol::Prepare prepare;
    prepare.generation = generation;
    prepare.world_size = plan_.world_size();
    prepare.job_key = job_key;
    prepare.grace = std::min<std::chrono::nanoseconds>(plan_.grace, kLeftoverGrace);
    prepare.memory = plan_.memory;
    for (const plan::Process& process : plan_.processes) {
      if (process.host != static_cast<int>(i)) continue;
      prepare.processes.push_back(process);
      if (process.rank == 0) prepare.master_port = plan_.master_port;
      for (const int rank : tasks) {
        if (rank >= process.rank && rank < process.rank + process.rank_count)
          prepare.task_ranks.push_back(rank);
      }
    }
    if (plan_.pmi != pmi::Kind::kNone) {
      prepare.mpi = {plan_.pmi, mpi_job_, {}, static_cast<int>(i)};
      for (const plan::Host& host : plan_.hosts) {
        prepare.mpi.hosts.push_back({host.name, host.first_rank, host.local_size});
      }
    }
    members_[i].state = State::kBusy;
    members_[i].host->Do(prepare);
  }
  while (Busy() && interrupted_ == 0 && loop_.run_one() > 0) {
  }
  if (!refusal_ && interrupted_ == 0) {
    phase_ = Phase::kIdle;
    std::vector<protocol::Prepared> prepared;
    for (const Member& member : members_) prepared.push_back(member.prepared);
    return prepared;
  }
  KillAll();
  while (Busy() && loop_.run_one() > 0) {
  }
  phase_ = Phase::kIdle;
  return refusal_ ? *refusal_ : Error{DTRUN_ABORTED, "the job was ended while it was being prepared"};
}

Result<verdict::Facts> Controller::Run(World world) {
  world_ = std::move(world);
  facts_ = verdict::Facts();
  frameworks_.clear();
  locked_out_.clear();
  look_apart_ = std::chrono::seconds(1);
  look_next_ = {};
  have_joined_ = alone_ = late_ = awaits_who_leaves_ = false;
  for (const plan::Process& process : plan_.processes) {
    verdict::RankFacts rank;
    rank.rank = process.rank;
    rank.count = process.rank_count;
    rank.host = plan_.hosts[static_cast<std::size_t>(process.host)].name;
    if (!process.argv.empty()) rank.program = process.argv.front();
    facts_.ranks.push_back(std::move(rank));
  }
  begin_ = Clock::now();
  phase_ = Phase::kRunning;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    members_[i].state = State::kRunning;
    members_[i].host->Do(protocol::Start{std::move(world_.tokens[i]), world_.rendezvous_ports});
  }
  stall_watch_.emplace(
      loop_, world_.stall,
      StallWatch::Events{[this](Inspection::Done done) {
                           if (phase_ != Phase::kRunning) return;
                           Look([this, done = std::move(done)](const protocol::Inspected& all) {
                             KeepLocks(all.ranks, false);
                             done(all);
                           });
                         },
                         [this](const Stall& stall) { OnStall(stall); }});
  if (!regroup_.empty()) Regroup(std::exchange(regroup_, {}));
  AwaitIdle();
  while (Busy() && loop_.run_one() > 0) {
  }
  deadline_.cancel();
  idle_.cancel();
  inspection_.Cancel();
  stall_watch_.reset();
  if (phase_ == Phase::kRunning && !refusal_) JudgeJoining();
  phase_ = Phase::kIdle;
  if (refusal_) return *refusal_;
  return Finish();
}

bool Controller::IsEnding() const {
  return std::ranges::any_of(facts_.ranks,
                             [](const verdict::RankFacts& rank) { return rank.ending.has_value(); });
}

void Controller::Regroup(const std::string& why) {
  if (phase_ == Phase::kPreparing) regroup_ = why;
  if (phase_ != Phase::kRunning) return;
  facts_.regroup = why;
  StopAll(SIGTERM);
}

bool Controller::Wait(std::chrono::nanoseconds time) {
  bool over = false;
  boost::asio::steady_timer timer(loop_, time);
  timer.async_wait([&over](const boost::system::error_code& error) { over = over || !error; });
  while (!over && interrupted_ == 0 && loop_.run_one() > 0) {
  }
  if (over) return true;
  timer.cancel();
  loop_.poll();  // run the handler, which refers to `over`
  return false;
}

void Controller::Joined(int rank) {
  have_joined_ = true;
  if (const int index = IndexOf(rank); index >= 0) {
    verdict::RankFacts& facts = facts_.ranks[static_cast<std::size_t>(index)];
    facts.joined = true;
    facts.left = false;  // it may have left to rejoin after a failure: its earlier reports are obsolete
    facts.reports.clear();
  }
}

void Controller::Left(int rank) {
  if (const int index = IndexOf(rank); index >= 0) facts_.ranks[static_cast<std::size_t>(index)].left = true;
}

void Controller::Reported(int rank, verdict::PeerReport report) {
  if (const int index = IndexOf(rank); index >= 0) {
    std::vector<verdict::PeerReport>& reports = facts_.ranks[static_cast<std::size_t>(index)].reports;
    if (reports.size() < kMostReports) reports.push_back(std::move(report));
  }
}

void Controller::On(std::size_t host, const protocol::Event& event) {
  Visit([&](const auto& seen) { On(host, seen); }, event);
}

void Controller::On(std::size_t host, const protocol::Prepared& prepared) {
  members_[host].prepared = prepared;
  if (phase_ != Phase::kKilling) members_[host].state = State::kPrepared;  // otherwise it answers Kill next
}

void Controller::On(std::size_t host, const protocol::Refused& refused) {
  members_[host].state = State::kIdle;
  if (!refusal_) {
    refusal_ = refused.error;
    if (members_.size() > 1) refusal_->text = fmt::format("host {}: {}", members_[host].name, refusal_->text);
  }
  if (phase_ != Phase::kPreparing) KillAll();
}

void Controller::On(std::size_t host, const protocol::Started& started) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < plan_.processes.size() && next < started.pids.size(); ++i) {
    if (plan_.processes[i].host == static_cast<int>(host)) facts_.ranks[i].pid = started.pids[next++];
  }
}

void Controller::On(std::size_t, const protocol::Output& output) {
  const auto rank = static_cast<std::size_t>(output.rank);
  if (rank >= world_.outputs.size() || world_.outputs[rank] == nullptr) return;
  if (stall_watch_) stall_watch_->Progress();
  locked_out_.erase(output.rank);  // it no longer waits
  LookForLocks(output);
  output::RankOutput& to = *world_.outputs[rank];
  output.bytes.empty() ? to.Close(output.stream) : to.Feed(output.stream, output.bytes);
}

void Controller::On(std::size_t, const protocol::Ended& ended) {
  const int index = IndexOf(ended.rank);
  if (index < 0) return;
  verdict::RankFacts& rank = facts_.ranks[static_cast<std::size_t>(index)];
  rank.ending = rank.failed ? rank.failed->ending : ended.ending;
  if (rank.failed) return;
  if (!rank.abort) rank.ended_at = Clock::now() - begin_;
  rank.signal_sent = ended.signal_sent;
  if (!ended.under_way.members.empty()) {
    Reported(
        ended.rank,
        {-1, fmt::format("its process ended by _exit in the middle of a call: {}; _exit is the program's to "
                         "call, so report it to the plugin's author if the program does not call it",
                         Printable(ended.under_way.members))});
  }
  if (TellsWhoLeft(rank)) return StopAll(SIGTERM);
  if (phase_ != Phase::kRunning) return;
  if (!rank.ending->failed())
    rank.ending->early_exit = ended.under_way.main_thread ? process::EarlyExit::kInMember : EarlyExitOf(rank);
  if (rank.ending->failed()) return FailedFirst(static_cast<std::size_t>(index));
  EndWhenAccomplished();
}

void Controller::On(std::size_t, const protocol::Said& said) { say_(said.line); }

void Controller::On(std::size_t host, const protocol::Gone& gone) {
  members_[host].state = State::kIdle;
  calls_ += gone.calls;
}

void Controller::On(std::size_t host, const protocol::Asked& asked) {
  const bool leaves = process::UserSignals::EndsJob(asked.signal) && phase_ == Phase::kRunning &&
                      may_leave_ && may_leave_(host, asked.signal);
  if (!leaves) return OnSignal(asked.signal);
  Regroup(fmt::format("host {} leaves ({} there)", members_[host].name, process::SignalName(asked.signal)));
}

void Controller::On(std::size_t host, const protocol::Lost& lost) {
  Member& member = members_[host];
  member.state = State::kLost;
  facts_.losses.push_back({member.name, lost.why, lost.agent_died, Clock::now() - begin_, lost.next});
  if (phase_ == Phase::kPreparing && !refusal_) {
    refusal_ = Error{DTRUN_REMOTE_FAILURE, fmt::format("host {} was lost: {}", member.name, lost.why)};
  }
  if (phase_ == Phase::kRunning) StopAll(SIGTERM);
}

void Controller::On(std::size_t host, const protocol::Called& called) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (i != host && members_[i].state == State::kRunning) members_[i].host->Do(called);
  }
}

void Controller::On(std::size_t, const protocol::Differed& differed) {
  if (phase_ != Phase::kRunning || std::exchange(differed_, true)) return;  // several hosts may report it
  facts_.calls_differ = differed.difference.text;
  say_("dtrun: " + differed.difference.text);
  Tell(differed);
}

void Controller::On(std::size_t, const protocol::Looked& looked) {
  for (const verdict::Override& one : looked.overrides) {
    const int index = IndexOf(one.rank);
    if (index < 0) continue;
    std::vector<verdict::Override>& known = facts_.ranks[static_cast<std::size_t>(index)].overrides;
    std::erase_if(known, [&](const verdict::Override& other) { return other.name == one.name; });
    known.push_back(one);
  }
  have_joined_ = have_joined_ || looked.joined;
  if (frameworks_.empty()) frameworks_ = looked.frameworks;
  late_ = late_ || looked.late;
  alone_ = alone_ || looked.alone;
  if (alone_ && phase_ == Phase::kRunning) JudgeJoining();
}

void Controller::JudgeJoining() {
  if (have_joined_ || frameworks_.empty()) return;
  have_joined_ = true;            // report only once
  if (!alone_ && !late_) return;  // seeing nothing proves nothing
  verdict::IsolatedRanks found = verdict::DescribeIsolatedRanks(frameworks_, plan_.pmi, alone_);
  if (world_.isolated_ranks == verdict::IsolationPolicy::kWarn || !alone_) {
    return say_(fmt::format("dtrun: warning: {}; next: {}", found.what, found.next));
  }
  facts_.isolated_ranks = std::move(found);
  if (Busy()) StopAll(SIGTERM);
}

void Controller::Tell(const protocol::Command& command) {
  for (Member& member : members_) {
    if (member.state == State::kPrepared || member.state == State::kRunning) member.host->Do(command);
  }
}

void Controller::AwaitIdle() {
  idle_.expires_after(kIdleEvery);
  idle_.async_wait([this, ended = ended_](const boost::system::error_code& error) {
    if (error || *ended || phase_ == Phase::kIdle) return;
    for (auto& output : world_.outputs) {
      if (output != nullptr) output->Idle();
    }
    AwaitIdle();
  });
}

bool Controller::Any(State state) const {
  return std::ranges::any_of(members_, [state](const Member& member) { return member.state == state; });
}

int Controller::IndexOf(int rank) const {
  const auto after = std::ranges::upper_bound(plan_.processes, rank, {}, &plan::Process::rank);
  if (after == plan_.processes.begin()) return -1;
  const plan::Process& process = *std::prev(after);
  if (rank >= process.rank + process.rank_count || facts_.ranks.empty()) return -1;
  return static_cast<int>(std::prev(after) - plan_.processes.begin());
}

verdict::Facts Controller::Finish() {
  for (std::size_t i = 0; i < facts_.ranks.size(); ++i) {
    const output::RankOutput& output = *world_.outputs[static_cast<std::size_t>(facts_.ranks[i].blamed())];
    facts_.ranks[i].tail = output.Tail(kEvidenceLines);
    facts_.ranks[i].log_files = output.Files();
    facts_.ranks[i].log_cut = output.cut();
  }
  world_.outputs.clear();
  facts_.job = plan_.job;
  facts_.generation = generation_;
  facts_.duration = Clock::now() - begin_;
  return facts_;
}

}  // namespace dtrun::job
