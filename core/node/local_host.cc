#include "core/node/local_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <numeric>

#include "core/base/secrets.h"
#include "core/base/timer.h"
#include "core/base/visit.h"
#include "core/contract/member_mark.h"
#include "core/log/log.h"
#include "core/node/call_check.h"
#include "core/node/containment.h"
#include "core/node/crashes.h"
#include "core/node/host_resources.h"
#include "core/node/inheritance.h"
#include "core/node/inspector.h"
#include "core/node/mpi_service.h"
#include "core/node/network_answers.h"
#include "core/node/rank_contacts.h"
#include "core/node/running_rank.h"
#include "core/node/wait_watch.h"
#include "core/process/leftovers.h"
#include "core/process/process.h"
#include "core/verdict/overrides.h"
#include "core/verdict/text.h"

namespace dtrun::node {
namespace {

constexpr log::Room kHostLog("node");
constexpr std::size_t kReadBytes = 64 << 10;
// Time within which a program that a rank starts has begun, even on a busy host.
constexpr std::chrono::seconds kUntilProgramsBegin{1};
// Time to read the debug information of a program that crashed.
constexpr std::chrono::seconds kUntilPlacesAreKnown{3};

class LocalHost final : public protocol::Host {
 public:
  LocalHost(asio::io_context& loop, LocalOptions options)
      : loop_(loop),
        options_(std::move(options)),
        patience_(loop),
        buffer_(kReadBytes),
        network_(loop, [this](protocol::Event event) { Post(std::move(event)); }),
        mpi_(loop, options_.socket_dir, buffer_, [this](const protocol::Event& event) { Emit(event); }),
        containment_(loop, options_.cgroup, [this] { return Spared(); }) {}

  void Do(const protocol::Command& command) override {
    Visit([this](const auto& given) { On(given); }, command);
  }

 private:
  // kStopping: asked to stop. kKilling: SIGKILL sent. kLeftovers: all ranks ended. kOver: nothing is left.
  enum class Phase { kOver, kPrepared, kRunning, kStopping, kKilling, kLeftovers };

  // Never emits from inside Do.
  void Post(protocol::Event event) {
    asio::post(loop_, [this, event = std::move(event)] { Emit(event); });
  }

  void On(const protocol::Survey& survey) { network_.Answer(survey); }
  void On(const protocol::CheckConnectivity& check) { network_.Answer(check); }
  void On(const protocol::Measure& measure) { network_.Answer(measure); }
  void On(const protocol::Prepare& prepare) {
    network_.Close();
    prepare_ = prepare;
    if (Status contained = containment_.Begin(prepare_.memory); !contained)
      return Post(protocol::Refused{contained.error()});
    running_.clear();
    call_check_.reset();
    crashes_.emplace();
    held_.reset();
    protocol::Prepared prepared;
    HostResources::Events events;
    events.printed = [this](int rank, output::Stream stream, std::string_view bytes) {
      OnOutput(rank, stream, bytes);
    };
    events.ended = [this](protocol::RankEnded ended) {
      if (ended.ending.signal == SIGKILL) ended.ending.out_of_memory = containment_.RanOutOfMemory();
      crashes_->Ended(ended.rank, {ended.pid, running_.empty() ? "/" : running_.front().folder, {}},
                      ended.ending);
      Emit(ended);
    };
    events.said = [this](const std::string& line) { Emit(protocol::Said{"dtrun: " + line}); };
    events.traced = [this](int rank, std::string_view bytes) { Emit(protocol::Traced{rank, bytes}); };
    auto held = HostResources::Take(loop_, options_, prepare_, buffer_, events, &prepared);
    if (!held) return Post(protocol::Refused{held.error()});
    held_ = *std::move(held);
    if (Status served = mpi_.Begin(prepare_.mpi); !served) return Post(protocol::Refused{served.error()});
    phase_ = Phase::kPrepared;
    kHostLog.Debug("prepared: store {}, flight recorder {}, master port {}", prepared.store,
                   prepared.recorder, prepared.master_port);
    Post(std::move(prepared));
  }

  void On(const protocol::Start& start) {
    if (phase_ != Phase::kPrepared) return;  // it was killed
    plan::Plan part;
    part.processes = std::move(prepare_.processes);
    part = plan::Resolve(part, start.tokens);
    containment_.WatchMemory();
    const std::vector<std::string>& base =
        prepare_.environment.empty() ? options_.environment : prepare_.environment;
    protocol::Started started;
    std::vector<int> ranks;
    for (const plan::Process& process : part.processes) {
      for (int i = 0; i < process.rank_count; ++i) ranks.push_back(process.rank + i);
      Result<pmi::Admission> mpi = mpi_.Admit(process);
      if (!mpi) return RefuseStart(mpi.error());
      const process::SpawnRequest request{.rank = process.rank,
                                          .argv = process.argv,
                                          .env = EnvironmentOf(process, *mpi, base),
                                          .cwd = process.cwd,
                                          .binding = process.binding,
                                          .stdin_fd = process.rank == 0 ? options_.stdin_fd : -1,
                                          .open_files = options_.open_files,
                                          .cgroup = containment_.cgroup(),
                                          .cgroup_required = containment_.cgroup_required(),
                                          .extra_fd = mpi->descriptor.get()};
      Result<process::Child> child = process::Spawn(request);
      if (!child) return RefuseStart(child.error());
      started.pids.push_back(child->pid);
      kHostLog.Info("rank {} is process {}: {}", process.rank, child->pid,
                    fmt::join(MaskArguments(process.argv), " "));
      Add(process, *std::move(child));
    }
    phase_ = Phase::kRunning;
    for (RunningRank& one : running_) one.process->Watch();
    if (!process::ProcIsOurs()) Post(protocol::Said{ForeignProcLine()});
    held_->WatchPipes();
    stops_.emplace(
        loop_, [this](pid_t pid, int signal) { OnStopped(pid, signal); },
        [this](pid_t pid) { return inspector_.HasStopped(pid); });
    if (!start.rendezvous_ports.empty()) {
      joining_.emplace(
          loop_, start.rendezvous_ports, started.pids, static_cast<int>(ranks.size()) < prepare_.world_size,
          [this](const protocol::RendezvousSeen& looked) { Emit(looked); }, RankContacts::Times());
    }
    if (prepare_.world_size > 1)
      overrides_.emplace(
          loop_, Living(), [this](const protocol::RendezvousSeen& looked) { Emit(looked); },
          OverrideWatch::Times());
    if (start.watches_waits) {
      waits_.emplace(
          loop_, [this] { return suspended_ ? std::vector<Inspector::Target>() : Living(); },
          [this](std::vector<verdict::RankDoing>& seen) {
            if (held_ != nullptr) held_->AddCalls(seen);
          });
    }
    call_check_.emplace(
        loop_, held_->recorder_memory(), std::move(ranks),
        Check::Events{
            [this](contract::Difference difference) { Emit(protocol::Differed{std::move(difference)}); },
            [this](const contract::Damage& damage) { Emit(protocol::Said{DamageLine(damage)}); },
            [this](std::vector<contract::Window> windows) { Emit(protocol::Called{std::move(windows)}); }});
    Post(std::move(started));
  }

  void RefuseStart(Error error) {
    int started = 0;
    for (const RunningRank& one : running_) started += one.count;
    if (started > 0) error.text += fmt::format("; ranks that had started by then: {}", started);
    mpi_.End();
    containment_.End();
    running_.clear();
    phase_ = Phase::kOver;
    Post(protocol::Refused{std::move(error)});
  }

  void Add(const plan::Process& planned, process::Child child) {
    const int rank = planned.rank;
    const std::size_t index = running_.size();
    RunningRank one;
    one.rank = rank;
    one.count = planned.rank_count;
    if (one.count == 1) one.given = verdict::RendezvousVariables(planned.env);
    one.pid = child.pid;
    one.folder = planned.cwd;
    std::error_code unknown;
    one.program = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", one.pid), unknown);
    if (unknown && !planned.argv.empty())  // it has ended already
      one.program = (std::filesystem::path(planned.cwd) / planned.argv.front()).lexically_normal();
    one.process = std::make_shared<process::ChildProcess>(
        loop_, std::move(child), buffer_,
        [this, rank](output::Stream stream, std::string_view bytes) { OnOutput(rank, stream, bytes); },
        [this, index](const process::Ending& ending) { OnEnd(index, ending); }, options_.gate);
    running_.push_back(std::move(one));
  }

  void OnOutput(int rank, output::Stream stream, std::string_view bytes) {
    crashes_->Printed(rank, bytes);
    Emit(protocol::Output{rank, stream, bytes});
  }

  void OnStopped(pid_t pid, int signal) {
    mpi_.OnStopped(pid, signal);
    const auto one = std::ranges::find(running_, pid, &RunningRank::pid);
    if (one != running_.end() && !suspended_) Emit(protocol::Said{StoppedLine(one->rank, pid, signal)});
  }

  void OnEnd(std::size_t index, process::Ending ending) {
    RunningRank& one = running_[index];
    one.failed = ending.failed();
    kHostLog.Info("rank {} (process {}) has ended: {}", one.rank, one.pid, verdict::EndingText(ending));
    ending.stopped_by = one.stopped_by;
    ending.forwarded = ending.signal != 0 && ending.signal == one.forwarded;
    if (ending.signal == SIGKILL && one.signal_sent == 0)
      ending.out_of_memory = containment_.RanOutOfMemory();
    for (const std::string& line : containment_.MemoryLines(ending))
      Emit(protocol::Said{line});  // before the failure
    mpi_.Look();
    if (one.failed && one.rank == 0 && phase_ == Phase::kRunning)
      for (const std::string& line : held_->WhoElseListens()) Emit(protocol::Said{line});
    if (one.signal_sent == 0) crashes_->Ended(one.rank, {one.pid, one.folder, one.program}, ending);
    const int count = one.signal_sent != 0 || one.forwarded != 0 ? 0 : one.count;
    auto under_way = contract::MembersUnderWay(held_->recorder_memory(), one.rank, count);
    if (under_way.fault ? !one.failed : ending.signal != 0) under_way = {};
    Emit(protocol::Ended{one.rank, ending, one.signal_sent, std::move(under_way)});
    const bool living = std::ranges::any_of(running_, [](auto& other) { return other.process->living(); });
    if (!living && phase_ < Phase::kLeftovers) EndLeftovers();
  }

  void On(const protocol::Signal& signal) {
    const bool whole = signal.number == SIGSTOP || signal.number == SIGCONT;
    if (whole) suspended_ = signal.number == SIGSTOP;
    const std::vector<int> untold =
        whole ? std::vector<int>() : Forward(running_, signal.number, kUntilProgramsBegin);
    if (whole)
      for (RunningRank& one : running_)
        if (one.process->living()) one.process->Signal(signal.number);
    if (!untold.empty()) Post(protocol::Said{NotForwardedLine(signal.number, untold)});
  }

  void On(const protocol::Exchanged& exchanged) { mpi_.Complete(exchanged); }

  void On(const protocol::Called& called) const {
    if (held_ != nullptr) held_->Enter(called.windows);
  }
  void On(const protocol::Differed& differed) const {
    if (held_ != nullptr) contract::RaiseAlarm(held_->recorder_memory(), differed.difference);
  }
  void On(const protocol::ReadClock& asked) {
    Post(protocol::ClockRead{asked.number, protocol::WallClock()});
  }

  std::vector<Inspector::Target> Living(const std::filesystem::path& sockets = {}) const {
    std::vector<Inspector::Target> living;
    for (const RunningRank& one : running_)
      if (one.process->living()) living.push_back({one.rank, one.pid, one.count, one.given, sockets});
    return living;
  }

  void On(const protocol::Inspect& inspect) {
    std::uint64_t calls = call_check_ ? std::hash<std::string>()(call_check_->History()) : 0;
    std::vector<std::uint64_t> before = held_ == nullptr ? std::vector<std::uint64_t>() : held_->Progress();
    calls = std::accumulate(before.begin(), before.end(), calls);
    if (inspect.closely.empty()) before.clear();  // it takes a moment
    inspector_.Look(
        Living(inspect.recorders ? options_.socket_dir : std::filesystem::path()),
        [this, inspect, calls, before](std::vector<verdict::RankDoing> ranks) {
          if (held_ != nullptr) held_->AddRecorded(ranks, before);
          auto looks = inspect.looks && waits_ ? waits_->Seen() : std::vector<protocol::RankLooks>();
          Emit(protocol::Inspected{inspect.number, std::move(ranks), calls, std::move(looks)});
        },
        inspect.closely);
  }

  void On(const protocol::Stop& stop) {
    if (phase_ == Phase::kPrepared) return EndUnstarted();
    if (phase_ != Phase::kRunning && phase_ != Phase::kStopping) return;
    phase_ = Phase::kStopping;
    SignalToEnd(stop.signal);
  }

  void On(const protocol::Kill&) {
    if (phase_ == Phase::kPrepared) return EndUnstarted();
    if (phase_ == Phase::kLeftovers) return leftovers_->Hurry();
    if (phase_ != Phase::kRunning && phase_ != Phase::kStopping) return;
    phase_ = Phase::kKilling;
    inspector_.KillTools();
    SignalToEnd(SIGKILL);
    containment_.Kill(Ranks());
    patience_.After(process::kKillPatience, [this] {
      if (phase_ == Phase::kKilling) EndLeftovers();  // a rank cannot be ended
    });
  }

  // Signals all groups, also of ended ranks, so that leftovers end too. Helpers that exit by themselves get a
  // moment.
  void SignalToEnd(int signal) {
    containment_.LookForSegments();
    stops_->Look();
    for (RunningRank& one : running_) {
      const bool living = one.process->living();
      if (living && one.signal_sent == 0 && !suspended_) one.stopped_by = stops_->SignalOf(one.pid);
      if (living) one.signal_sent = signal;
      if (living || signal == SIGKILL) SignalGroup(one, signal);
    }
    if (signal == SIGKILL) return;
    patience_.After(process::Leftovers::kMoment, [this, signal] {
      if (phase_ != Phase::kStopping) return;
      for (RunningRank& one : running_)
        if (!one.process->living()) SignalGroup(one, signal);
    });
  }

  std::vector<pid_t> Ranks() const {
    std::vector<pid_t> pids;
    for (const RunningRank& one : running_) pids.push_back(one.pid);
    return pids;
  }

  void EndUnstarted() {
    phase_ = Phase::kOver;
    mpi_.End();
    containment_.End();
    Post(protocol::Gone{});
  }

  void EndLeftovers() {
    const bool at_once = phase_ == Phase::kKilling;
    phase_ = Phase::kLeftovers;
    inspector_.KillTools();  // no rank has left them
    patience_.Cancel();
    if (joining_ && std::ranges::none_of(running_, &RunningRank::failed)) joining_->Look();
    joining_.reset();
    containment_.LookForSegments();
    if (at_once) return Finish();
    std::map<pid_t, int> rank_of_group;
    for (const RunningRank& one : running_) rank_of_group[one.pid] = one.rank;
    leftovers_.emplace(
        loop_, std::move(rank_of_group),
        [this](const std::string& line) { Emit(protocol::Said{"dtrun: " + line}); }, Spared());
    leftovers_->Stop(process::Leftovers::kMoment, prepare_.grace, containment_.SegmentsWait(),
                     [this] { Finish(); });
  }

  void Finish() {
    phase_ = Phase::kOver;
    mpi_.End();
    const std::vector<pid_t> told = leftovers_ ? leftovers_->told() : std::vector<pid_t>();
    for (const std::string& line : containment_.End(Ranks(), told)) Emit(protocol::Said{"dtrun: " + line});
    protocol::Gone gone;
    held_->FinishPipes();
    for (RunningRank& one : running_) {
      one.process->FinishOutput();
      one.process->Reap();
      if (one.failed && gone.calls.empty()) gone.calls = call_check_->History();
    }
    gone.crashes = crashes_->Look(kUntilPlacesAreKnown);
    inspector_.Cancel();
    call_check_.reset();
    stops_.reset();
    overrides_.reset();
    if (waits_) gone.looks = waits_->Seen();
    waits_.reset();
    held_->Close();
    Emit(gone);
  }

  // Children of this process that are not part of the job.
  std::vector<pid_t> Spared() const {
    std::vector<pid_t> spared = options_.spared ? options_.spared() : std::vector<pid_t>();
    for (const pid_t server : mpi_.servers()) spared.push_back(server);
    for (const pid_t tool : inspector_.tools()) spared.push_back(tool);
    return spared;
  }

  asio::io_context& loop_;
  const LocalOptions options_;
  Timer patience_;
  std::vector<char> buffer_;
  NetworkAnswers network_;
  protocol::Prepare prepare_;
  std::unique_ptr<HostResources> held_;  // of the latest prepared generation
  MpiService mpi_;
  std::optional<Check> call_check_;
  std::optional<process::Stops> stops_;
  std::optional<OverrideWatch> overrides_;
  std::optional<WaitWatch> waits_;
  std::optional<RankContacts> joining_;
  Inspector inspector_{loop_};
  bool suspended_ = false;  // by dtrun, at the user's request
  Containment containment_;
  std::optional<Crashes> crashes_;  // of the latest generation
  std::vector<RunningRank> running_;
  std::optional<process::Leftovers> leftovers_;
  Phase phase_ = Phase::kOver;
};

}  // namespace

std::unique_ptr<protocol::Host> MakeLocalHost(asio::io_context& loop, LocalOptions options) {
  return std::make_unique<LocalHost>(loop, std::move(options));
}

}  // namespace dtrun::node
