#include "core/job/controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "core/observe/straggler.h"
#include "core/process/process.h"
#include "core/store/server.h"
#include "core/verdict/suspect.h"
#include "core/verdict/waits.h"

namespace dtrun::job {
namespace {

constexpr std::chrono::milliseconds kIdleEvery{200};
constexpr std::chrono::seconds kLeftoverGrace{2};
constexpr std::size_t kEvidenceLines = 120;

}  // namespace

Controller::Controller(asio::io_context& loop, process::UserSignals& signals, const plan::Plan& plan,
                       const std::vector<protocol::Host*>& hosts, Say say, verdict::EventLog& log)
    : loop_(loop),
      signals_(signals),
      plan_(plan),
      say_(std::move(say)),
      log_(log),
      deadline_(loop),
      idle_(loop),
      inspection_(loop),
      run_id_(store::NewJobKey().substr(0, 8)) {
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    members_.push_back({hosts[i], plan.hosts[i].name, State::kIdle, {}});
  }
  TakeOver();
}

void Controller::TakeOver() {
  for (std::size_t i = 0; i < members_.size(); ++i)
    members_[i].host->Attach([this, i](const protocol::Event& event) { On(i, event); });
  signals_.Handle([this](int signal) { OnSignal(signal); });
}

Controller::~Controller() {
  for (const Member& member : members_) member.host->Attach({});
  signals_.Handle({});
}

Result<std::vector<protocol::Prepared>> Controller::Prepare(std::uint64_t generation,
                                                            const std::string& job_key) {
  phase_ = Phase::kPreparing;
  generation_ = generation;
  refusal_.reset();
  calls_.clear();
  looks_.clear();
  mpi_job_ = fmt::format("{}-{}.{}", plan_.job, run_id_, generation);
  const std::vector<int> tasks = plan::TaskPortsUsed(plan_);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    protocol::Prepare prepare;
    prepare.generation = generation;
    prepare.world_size = plan_.world_size();
    prepare.job_key = job_key;
    prepare.grace = std::min<std::chrono::nanoseconds>(plan_.grace, kLeftoverGrace);
    prepare.memory = plan_.memory;
    prepare.options = plan_.given;
    for (const plan::Process& process : plan_.processes) {
      if (process.host != static_cast<int>(i)) continue;
      prepare.processes.push_back(process);
      if (process.rank == 0) {
        prepare.master_port = plan_.master_port;
        prepare.master_port_place = plan_.master_port_place;
      }
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

Status Controller::Run(World world) {
  world_ = std::move(world);
  awaits_who_leaves_ = awaits_mpirun_ = false;
  fact::Began began = world_.began;
  began.generation = generation_;
  for (const plan::Process& process : plan_.processes) {
    began.processes.push_back({process.rank, process.rank_count,
                               plan_.hosts[static_cast<std::size_t>(process.host)].name,
                               process.argv.empty() ? "" : process.argv.front()});
  }
  Record(std::move(began));
  auto stalls = observe::WatchStalls(
      loop_, world_.stall,
      {[this](const Inspection::Done& done, std::vector<int> closely) {
         if (phase_ == Phase::kRunning) LookInTurn(done, std::move(closely));
       },
       [this](const std::string& why, const auto& ranks) { return KeepStacks(why, ranks); },
       [this](const observe::Finding& finding) {
         if (phase_ == Phase::kRunning) Act(finding);
       }});
  stalls_ = stalls.get();
  observers_.clear();
  observers_.push_back(std::move(stalls));
  observers_.push_back(observe::WatchLocks());
  observers_.push_back(observe::WatchCalls());
  observers_.push_back(observe::WatchJoining(world_.isolated_ranks));
  observers_.push_back(observe::WatchMpi([this](int host, const protocol::Exchanged& exchanged) {
    Member& member = members_[static_cast<std::size_t>(host)];
    if (member.state == State::kRunning) member.host->Do(exchanged);
  }));
  phase_ = Phase::kRunning;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    members_[i].state = State::kRunning;
    members_[i].host->Do(
        protocol::Start{std::move(world_.tokens[i]), world_.rendezvous_ports, world_.watches_waits});
  }
  WatchClocks();
  if (!regroup_.empty()) Regroup(std::exchange(regroup_, {}));
  AwaitIdle();
  while (Busy() && loop_.run_one() > 0) {
  }
  deadline_.Cancel();
  idle_.Cancel();
  inspection_.Cancel();
  clocks_.reset();
  for (const auto& observer : observers_) {
    if (phase_ == Phase::kRunning && !refusal_) Act(observer->AllEnded(Now()));
  }
  stalls_ = nullptr;
  observers_.clear();
  phase_ = Phase::kIdle;
  if (refusal_) {
    Record(fact::Withdrawn());
    return *refusal_;
  }
  for (const verdict::RankFacts& rank : facts_.ranks) {
    const output::RankOutput& output = *world_.outputs[static_cast<std::size_t>(rank.blamed())];
    fact::SaidLast said{{{rank.rank}, output.Tail(kEvidenceLines)}, {}, output.cut()};
    for (const std::filesystem::path& file : output.Files()) said.files.push_back(file.string());
    if (rank.blamed() != rank.rank) {  // what its mpirun says of it, such as an MPI_Abort
      for (const auto& file : world_.outputs[static_cast<std::size_t>(rank.rank)]->Files())
        said.files.push_back(file.string());
    }
    Record(std::move(said), fmt::format("rank {}", rank.rank));
  }
  world_.outputs.clear();
  if (auto straggler = observe::StragglerOf(std::exchange(looks_, {})))
    Record(fact::Straggled{*std::move(straggler)});
  Record(fact::Over());
  return {};
}

bool Controller::IsEnding() const {
  return std::ranges::any_of(facts_.ranks,
                             [](const verdict::RankFacts& rank) { return rank.ending.has_value(); });
}

void Controller::Regroup(const std::string& why) {
  if (phase_ == Phase::kPreparing) regroup_ = why;
  if (phase_ != Phase::kRunning) return;
  Note(fact::Noted::What::kRegroup, why);
  StopAll(SIGTERM);
}

bool Controller::Wait(std::chrono::nanoseconds time) {
  bool over = false;
  Timer timer(loop_);
  timer.After(time, [&over] { over = true; });
  while (!over && interrupted_ == 0 && loop_.run_one() > 0) {
  }
  return over;
}

void Controller::On(std::size_t host, const protocol::Event& event) {
  Member& member = members_[host];
  if (const auto* const prepared = std::get_if<protocol::Prepared>(&event)) {
    member.prepared = *prepared;
    if (phase_ != Phase::kKilling) member.state = State::kPrepared;  // otherwise it answers Kill next
  } else if (const auto* const refused = std::get_if<protocol::Refused>(&event)) {
    OnRefused(member, refused->error);
  } else if (const auto* const started = std::get_if<protocol::Started>(&event)) {
    std::size_t next = 0;
    for (const plan::Process& process : plan_.processes) {
      if (process.host == static_cast<int>(host) && next < started->pids.size())
        Record(fact::Started{{process.rank}, started->pids[next++]}, member.name);
    }
  } else if (const auto* const said = std::get_if<protocol::Said>(&event)) {
    say_(said->line);
  } else if (const auto* const gone = std::get_if<protocol::Gone>(&event)) {
    OnGone(member, *gone);
  } else if (const auto* const asked = std::get_if<protocol::Asked>(&event)) {
    OnAsked(host, asked->signal);
  } else if (const auto* const lost = std::get_if<protocol::Lost>(&event)) {
    OnLost(member, *lost);
  } else if (const auto* const inspected = std::get_if<protocol::Inspected>(&event)) {
    inspection_.Answer(host, *inspected);
  } else if (const auto* const ended = std::get_if<protocol::Ended>(&event)) {
    OnEnded(*ended);
  }
  for (const auto& observer : observers_) Act(observer->On(Now(), host, event), static_cast<int>(host));
  if (const auto* const output = std::get_if<protocol::Output>(&event)) OnOutput(*output);
  if (const auto* const traced = std::get_if<protocol::Traced>(&event); traced && world_.keep_trace)
    world_.keep_trace(traced->rank, traced->bytes);
  if (const auto* const read = std::get_if<protocol::ClockRead>(&event); read && clocks_)
    clocks_->On(host, *read);
}

void Controller::Act(const observe::Finding& finding, int host) {
  using Then = observe::Finding::Then;
  for (const fact::Any& fact : finding.facts)
    Record(fact, host < 0 ? "root" : members_[static_cast<std::size_t>(host)].name);
  if (!finding.line.empty()) say_(finding.line);
  if (finding.tell) Tell(*finding.tell, finding.tell_sender ? -1 : host);
  switch (finding.then) {
    case Then::kGoOn: break;
    case Then::kLook: Look([](const protocol::Inspected&) {}); break;
    case Then::kStop:
      if (Busy()) StopAll(SIGTERM);
      break;
    case Then::kLookAndStop: LookAndStop(SIGTERM, 0); break;
    case Then::kFailed:
      if (const auto* const rank = facts_.Find(finding.rank)) FailedFirst(*rank);
      break;
  }
}

void Controller::OnRefused(Member& member, const Error& error) {
  member.state = State::kIdle;
  if (!refusal_) {
    refusal_ = error;
    if (members_.size() > 1) refusal_->text = fmt::format("host {}: {}", member.name, refusal_->text);
  }
  if (phase_ != Phase::kPreparing) KillAll();
}

void Controller::WatchClocks() {
  clocks_.reset();
  if (!world_.keep_trace || members_.size() < 2) return;
  clocks_.emplace(loop_, members_.size(),
                  HostClocks::Hooks{[this](std::size_t host, const protocol::ReadClock& question) {
                                      if (members_[host].state == State::kRunning)
                                        members_[host].host->Do(question);
                                    },
                                    [this](std::size_t host, fact::HostClock clock) {
                                      clock.host = members_[host].name;
                                      Record(std::move(clock));
                                    }});
}

void Controller::OnOutput(const protocol::Output& output) {
  const auto rank = static_cast<std::size_t>(output.rank);
  if (rank >= world_.outputs.size() || world_.outputs[rank] == nullptr) return;
  output::RankOutput& to = *world_.outputs[rank];
  output.bytes.empty() ? to.Close(output.stream) : to.Feed(output.stream, output.bytes);
}

void Controller::OnEnded(const protocol::Ended& ended) {
  const verdict::RankFacts* const rank = facts_.Find(ended.rank);
  if (rank == nullptr) return;
  process::Ending ending = ended.ending;
  if (phase_ == Phase::kRunning && !ending.failed()) {
    ending.early_exit =
        ended.under_way.main_thread ? process::EarlyExit::kInMember : observe::EarlyExitOf(facts_, *rank);
  }
  Record(fact::Ended{{ended.rank}, ending, ended.signal_sent}, rank->host);
  if (rank->failed) return;
  if (auto report = observe::EndedInPlugin(ended)) Record(*std::move(report));
  if (TellsWhoLeft(*rank)) return StopAll(SIGTERM);
  if (phase_ != Phase::kRunning) return;
  rank->ending->failed() ? FailedFirst(*rank) : EndWhenAccomplished();
}

void Controller::OnAsked(std::size_t host, int signal) {
  const bool leaves = process::UserSignals::EndsJob(signal) && phase_ == Phase::kRunning && may_leave_ &&
                      may_leave_(host, signal);
  if (!leaves) return OnSignal(signal, members_[host].name);
  Regroup(fmt::format("host {} leaves ({} there)", members_[host].name, process::SignalName(signal)));
}

void Controller::OnLost(Member& member, const protocol::Lost& lost) {
  member.state = State::kLost;
  Record(fact::HostLost{{member.name, lost.why, lost.agent_died, {}, lost.next}});
  if (phase_ == Phase::kPreparing && !refusal_) {
    refusal_ = Error::Of(DTRUN_REMOTE_FAILURE, "host {} was lost: {}", member.name, lost.why);
  }
  if (phase_ == Phase::kRunning) StopAll(SIGTERM);
}

void Controller::Tell(const protocol::Command& command, int but) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const State state = members_[i].state;
    if (static_cast<int>(i) != but && (state == State::kPrepared || state == State::kRunning))
      members_[i].host->Do(command);
  }
}

void Controller::AwaitIdle() {
  idle_.After(kIdleEvery, [this] {
    if (phase_ == Phase::kIdle) return;
    for (auto& output : world_.outputs) {
      if (output != nullptr) output->Idle();
    }
    AwaitIdle();
  });
}

bool Controller::Busy() const {
  return std::ranges::any_of(members_, [](const Member& member) {
    return member.state == State::kBusy || member.state == State::kRunning;
  });
}

std::vector<std::string> Controller::LastLines(const verdict::RankFacts& rank) const {
  const auto& output = world_.outputs[static_cast<std::size_t>(rank.blamed())];
  return output == nullptr ? std::vector<std::string>() : output->Tail(kEvidenceLines);
}

Inspection::Hosts Controller::RunningHosts() const {
  Inspection::Hosts hosts;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].state == State::kRunning) hosts[i] = members_[i].host;
  }
  return hosts;
}

void Controller::Answer(const control::Question& question, control::Answer answer,
                        control::Server::Reply reply) {
  switch (phase_) {
    case Phase::kIdle: answer.state = facts_.ranks.empty() ? "starting" : "restarting"; break;
    case Phase::kPreparing: answer.state = "starting"; break;
    case Phase::kRunning: answer.state = "running"; break;
    case Phase::kLooking:
    case Phase::kStopping:
    case Phase::kKilling: answer.state = "ending"; break;
  }
  answer.generation = generation_;
  if (stalls_ == nullptr) return reply(std::move(answer));
  answer.quiet = stalls_->Quiet();
  for (const verdict::RankFacts& rank : facts_.ranks) {
    answer.ranks.push_back(
        {rank.rank, rank.count, rank.host, rank.pid, rank.joined, rank.ending.has_value()});
  }
  if (question.what != control::What::kPlaces) return reply(std::move(answer));
  const auto done = [this, answer = std::move(answer), reply = std::move(reply),
                     native = question.native](const protocol::Inspected& all) {
    if (stalls_ != nullptr) stalls_->Resumed(native, all);
    control::Answer whole = answer;
    whole.places = all.ranks;
    verdict::AddCalls(&whole.places);
    whole.straggler = observe::StragglerOf(all.looks);
    reply(std::move(whole));
  };
  inspection_.Wish(
      [this] { return RunningHosts(); }, done,
      {.closely = question.native, .recorders = question.recorders, .looks = question.straggler});
}

Inspection::Done Controller::Observed(Inspection::Done done) {
  return [this, done = std::move(done)](const protocol::Inspected& all) {
    for (const auto& observer : observers_) Act(observer->OnLook(Now(), all.ranks));
    done(all);
  };
}

void Controller::Look(Inspection::Done done, const std::vector<int>& closely) {
  inspection_.Begin(RunningHosts(), Observed(std::move(done)), closely);
}

void Controller::LookInTurn(Inspection::Done done, std::vector<int> closely) {
  const auto unless_over = [this, done = Observed(std::move(done))](const protocol::Inspected& all) {
    if (phase_ == Phase::kRunning && !all.ranks.empty()) done(all);
  };
  inspection_.Wish([this] { return RunningHosts(); }, unless_over, {.closely = std::move(closely)});
}

}  // namespace dtrun::job
