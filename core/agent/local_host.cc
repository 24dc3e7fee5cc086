#include "core/agent/local_host.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "core/agent/audit.h"
#include "core/agent/containment.h"
#include "core/agent/holdings.h"
#include "core/agent/inspector.h"
#include "core/agent/joining.h"
#include "core/agent/leftovers.h"
#include "core/agent/mpi_service.h"
#include "core/agent/process.h"
#include "core/agent/rank_process.h"
#include "core/agent/stops.h"
#include "core/agent/verdict.h"
#include "core/base/port_user.h"
#include "core/cluster/this_machine.h"
#include "core/net/prover.h"
#include "core/net/rule.h"
#include "core/plan/hosts.h"

namespace dtrun::agent {
namespace {

constexpr std::size_t kReadBytes = 64 << 10;
// How long SIGKILL may take, for example while a driver frees a device's memory.

std::vector<std::string> EnvironmentOf(const plan::Process& process, pmi::Admission& mpi,
                                       const std::vector<std::string>& base) {
  std::map<std::string, std::string>& set = mpi.variables;
  set.insert(process.env.begin(), process.env.end());
  std::vector<std::string> block;
  block.reserve(base.size() + set.size());
  for (const std::string& entry : base) {
    const std::string name = entry.substr(0, entry.find('='));
    mpi.defaults.erase(name);
    if (!set.contains(name)) block.push_back(entry);
  }
  set.merge(mpi.defaults);
  for (const auto& [name, value] : set) block.push_back(name + "=" + value);
  return block;
}

class LocalHost final : public Host {
 public:
  LocalHost(boost::asio::io_context& loop, LocalOptions options)
      : loop_(loop),
        options_(std::move(options)),
        patience_(loop),
        buffer_(kReadBytes),
        mpi_(loop, options_.socket_dir, buffer_, [this](const Event& event) { Emit(event); }),
        containment_(options_.cgroup, [this] { return Spared(); }) {}

  void Do(const Command& command) override {
    std::visit([this](const auto& given) { On(given); }, command);
  }

 private:
  // kStopping: asked to stop. kKilling: SIGKILL sent. kLeftovers: all ranks ended. kOver: nothing
  // is left.
  enum class Phase { kOver, kPrepared, kRunning, kStopping, kKilling, kLeftovers };

  struct Running {
    int rank = 0;
    int count = 1;  // of ranks in it
    pid_t pid = 0;
    int signal_sent = 0;
    int stopped_by = 0;  // as it was asked to end; 0: it ran
    bool failed = false;
    std::shared_ptr<RankProcess> process;
  };

  // Never from inside Do.
  void Post(Event event) {
    boost::asio::post(loop_, [this, event = std::move(event)] { Emit(event); });
  }

  void On(const Survey& survey) {
    const Result<net::Rule> rule = net::Rule::Parse(survey.rule);
    if (!rule) return Post(Refused{rule.error()});
    const Result<std::vector<net::Interface>> interfaces = net::ReadInterfaces();
    if (!interfaces) return Post(Refused{interfaces.error()});
    Result<net::Offer> offer = rule->Apply(*interfaces);
    if (!offer) return Post(Refused{offer.error()});
    offer->has_rdma = net::HasRdma("/sys");
    prover_.emplace(loop_, survey.host, survey.proof_key, &*offer);
    Post(Surveyed{*std::move(offer)});
  }

  void On(const Prove& prove) {
    if (!prover_) return Post(Proven{});
    prover_->Prove(prove.peers, prove.by_device, prove.limit,
                   [this](std::vector<net::Attempt> attempts) { Post(Proven{std::move(attempts)}); });
  }

  void On(const Measure& measure) {
    const auto from = static_cast<std::size_t>(measure.from);
    if (!prover_ || from >= prover_->candidate_count()) return Post(Measured{});
    prover_->Measure(from, measure.peer, measure.to, measure.by_device, measure.pace,
                     [this](net::Throughput throughput) { Post(Measured{throughput}); });
  }

  void On(const Prepare& prepare) {
    prover_.reset();
    prepare_ = prepare;
    if (Status contained = containment_.Begin(prepare_.memory); !contained)
      return Post(Refused{contained.error()});
    running_.clear();
    audit_.reset();
    held_.reset();
    Prepared prepared;
    Holdings::Events events;
    events.printed = [this](int rank, output::Stream stream, std::string_view bytes) {
      Emit(Output{rank, stream, bytes});
    };
    events.ended = [this](RankEnded ended) {
      if (ended.ending.signal == SIGKILL && memory_) ended.ending.out_of_memory = memory_->Rose();
      Emit(ended);
    };
    events.said = [this](const std::string& line) { Emit(Said{"dtrun: " + line}); };
    Result<std::unique_ptr<Holdings>> held =
        Holdings::Take(loop_, options_, prepare_, buffer_, events, &prepared);
    if (!held) return Post(Refused{held.error()});
    held_ = *std::move(held);
    if (Status served = mpi_.Begin(prepare_.mpi); !served) return Post(Refused{served.error()});
    phase_ = Phase::kPrepared;
    Post(std::move(prepared));
  }

  void On(const agent::Start& start) {
    if (phase_ != Phase::kPrepared) return;  // killed meanwhile
    plan::Plan part;
    part.processes = std::move(prepare_.processes);
    part = plan::Resolve(part, start.tokens);
    memory_.emplace(containment_.Memory());
    told_of_memory_ = false;
    const std::vector<std::string>& base =
        prepare_.environment.empty() ? options_.environment : prepare_.environment;
    Started started;
    std::vector<int> ranks;
    for (const plan::Process& process : part.processes) {
      for (int i = 0; i < process.rank_count; ++i) ranks.push_back(process.rank + i);
      Result<pmi::Admission> mpi = mpi_.Admit(process);
      if (!mpi) return RefuseStart(mpi.error());
      const SpawnRequest request{.rank = process.rank,
                                 .argv = process.argv,
                                 .env = EnvironmentOf(process, *mpi, base),
                                 .cwd = process.cwd,
                                 .binding = process.binding,
                                 .stdin_fd = process.rank == 0 ? options_.stdin_fd : -1,
                                 .open_files = options_.open_files,
                                 .cgroup = containment_.cgroup(),
                                 .cgroup_required = containment_.cgroup_required(),
                                 .extra_fd = mpi->descriptor.get()};
      Result<Child> child = Spawn(request);
      if (!child) return RefuseStart(child.error());
      started.pids.push_back(child->pid);
      Add(process.rank, process.rank_count, *std::move(child));
    }
    phase_ = Phase::kRunning;
    for (Running& one : running_) one.process->Watch();
    if (!ProcIsOurs()) {
      Post(
          Said{"dtrun: warning: /proc belongs to another PID namespace: processes that ranks leave behind "
               "cannot be found; next: mount one for this namespace, `mount -t proc proc /proc`"});
    }
    held_->WatchPipes();
    stops_.emplace(loop_, [this](pid_t pid, int signal) { OnStopped(pid, signal); });
    if (!start.meeting_ports.empty()) {
      joining_.emplace(
          loop_, start.meeting_ports, started.pids, static_cast<int>(ranks.size()) < prepare_.world_size,
          [this](const Looked& looked) { Emit(looked); }, Joining::Times());
    }
    audit_.emplace(
        loop_, held_->book(), std::move(ranks),
        Audit::Events{[this](comm::Difference difference) { Emit(Differed{std::move(difference)}); },
                      [this](const comm::Damage& damage) { OnDamage(damage); },
                      [this](std::vector<comm::Excerpt> excerpts) { Emit(Called{std::move(excerpts)}); }});
    Post(std::move(started));
  }

  void RefuseStart(const Error& error) {
    mpi_.End();
    containment_.End();
    running_.clear();
    phase_ = Phase::kOver;
    Post(Refused{error});
  }

  void Add(int rank, int count, Child child) {
    const std::size_t index = running_.size();
    Running one;
    one.rank = rank;
    one.count = count;
    one.pid = child.pid;
    one.process = std::make_shared<RankProcess>(
        loop_, std::move(child), buffer_,
        [this, rank](output::Stream stream, std::string_view bytes) {
          Emit(Output{rank, stream, bytes});
        },
        [this, index](const Ending& ending) { OnEnd(index, ending); }, options_.gate);
    running_.push_back(std::move(one));
  }

  void OnDamage(const comm::Damage& damage) {
    Emit(Said{
        fmt::format("dtrun: warning: {} (on {}): what this rank calls is not compared any more; next: look "
                    "for a write past the end of a buffer in rank {}",
                    damage.text, cluster::HostName(), damage.rank)});
  }

  void OnStopped(pid_t pid, int signal) {
    const auto one = std::ranges::find(running_, pid, &Running::pid);
    if (one == running_.end() || suspended_) return;
    Emit(Said{fmt::format(
        "dtrun: rank {} on {} was stopped by {}: the job waits for it; `kill -CONT {}` there lets it go on",
        one->rank, cluster::HostName(), SignalName(signal), pid)});
  }

  void OnEnd(std::size_t index, Ending ending) {
    Running& one = running_[index];
    one.failed = ending.failed();
    ending.stopped_by = one.stopped_by;
    if (ending.signal == SIGKILL && one.signal_sent == 0) ending.out_of_memory = memory_->Rose();
    TellOfMemory(ending);
    mpi_.Look();
    if (one.failed && one.rank == 0 && phase_ == Phase::kRunning) LookForThief();
    Emit(Ended{one.rank, ending, one.signal_sent});
    const bool living = std::ranges::any_of(running_, [](auto& other) { return other.process->living(); });
    if (!living && phase_ < Phase::kLeftovers) EndLeftovers();
  }

  // Before a failure is told of: what the kernel killed need not be the rank, but a process that it has
  // started.
  void TellOfMemory(const Ending& ending) {
    const bool helper = !ending.out_of_memory && ending.failed() && !told_of_memory_ &&
                        containment_.CountsMemory() && memory_->Rose();
    if (!helper && !ending.out_of_memory) return;
    told_of_memory_ = true;
    if (helper)
      Emit(Said{fmt::format("dtrun: out of memory: the kernel killed a process that ranks on {} had started",
                            cluster::HostName())});
    if (const std::string text = containment_.MemoryText(); !text.empty()) Emit(Said{"dtrun: " + text});
  }

  // A program with SO_REUSEADDR may listen on a port that is only held, and rank 0 then cannot.
  void LookForThief() {
    if (held_->held_port() == 0) return;
    const std::vector<Process> own = Descendants(::getpid());
    for (const PortUser& user : ListenersOn(held_->held_port())) {
      if (user.pid != 0 && std::ranges::find(own, user.pid, &Process::pid) != own.end()) continue;
      Emit(Said{
          fmt::format("dtrun: MASTER_PORT {} is held for rank 0, and {}, which this job has not started, "
                      "listens there, as a program with SO_REUSEADDR can; end it, or give another "
                      "job.master_port",
                      held_->held_port(), user.text)});
    }
  }

  void On(const Signal& signal) {
    const bool whole = signal.number == SIGSTOP || signal.number == SIGCONT;
    if (whole) suspended_ = signal.number == SIGSTOP;
    std::vector<int> untold;
    for (Running& one : running_) {
      if (!one.process->living()) continue;
      if (whole) {
        one.process->Signal(signal.number);
      } else if (Survives(one.pid, signal.number)) {
        one.process->Tell(signal.number);
      } else {
        untold.push_back(one.rank);
      }
    }
    if (untold.empty()) return;
    Post(Said{fmt::format("dtrun: {} was not forwarded to {} on {}, which would end: no handler for it",
                          SignalName(signal.number), FoldRanks(untold), cluster::HostName())});
  }

  void On(const Exchanged& exchanged) { mpi_.Complete(exchanged); }

  void On(const Called& called) {
    if (held_ != nullptr) held_->Enter(called.excerpts);
  }

  void On(const Differed& differed) {
    if (held_ != nullptr) comm::Ring(held_->book(), differed.difference);
  }

  void On(const Inspect& inspect) {
    std::vector<Inspector::Target> living;
    for (const Running& one : running_) {
      if (one.process->living()) living.push_back({one.rank, one.pid, one.count});
    }
    const std::uint64_t calls = audit_ ? std::hash<std::string>()(audit_->History()) : 0;
    inspector_.Look(
        living,
        [this, number = inspect.number, calls](std::vector<RankDoing> ranks) {
          Emit(Inspected{number, std::move(ranks), calls});
        },
        inspect.closely);
  }

  void On(const Stop& stop) {
    if (phase_ == Phase::kPrepared) return EndUnstarted();
    if (phase_ != Phase::kRunning && phase_ != Phase::kStopping) return;
    phase_ = Phase::kStopping;
    SignalToEnd(stop.signal);
  }

  void On(const Kill&) {
    if (phase_ == Phase::kPrepared) return EndUnstarted();
    if (phase_ == Phase::kLeftovers) return leftovers_->Hurry();
    if (phase_ != Phase::kRunning && phase_ != Phase::kStopping) return;
    phase_ = Phase::kKilling;
    SignalToEnd(SIGKILL);
    std::vector<pid_t> ranks;
    for (const Running& one : running_) ranks.push_back(one.pid);
    containment_.Kill(ranks);
    patience_.expires_after(kKillPatience);
    patience_.async_wait([this](const boost::system::error_code& error) {
      if (!error && phase_ == Phase::kKilling) EndLeftovers();  // some rank cannot be ended
    });
  }

  // To all groups, also of ranks that have ended: what they left should end as well, but helpers that end
  // by themselves have their moment.
  void SignalToEnd(int signal) {
    containment_.LookForSegments();
    stops_->Look();
    for (Running& one : running_) {
      const bool living = one.process->living();
      if (living && one.signal_sent == 0 && !suspended_) one.stopped_by = stops_->SignalOf(one.pid);
      if (living) one.signal_sent = signal;
      if (living || signal == SIGKILL) SignalGroup(one, signal);
    }
    if (signal == SIGKILL) return;
    patience_.expires_after(Leftovers::kMoment);
    patience_.async_wait([this, signal](const boost::system::error_code& error) {
      if (error || phase_ != Phase::kStopping) return;
      for (Running& one : running_) {
        if (!one.process->living()) SignalGroup(one, signal);
      }
    });
  }

  static void SignalGroup(const Running& one, int signal) {
    one.process->Signal(signal);
    if (signal != SIGKILL) one.process->Signal(SIGCONT);  // a stopped process takes it only then
  }

  void EndUnstarted() {
    phase_ = Phase::kOver;
    mpi_.End();
    containment_.End();
    Post(Gone{});
  }

  void EndLeftovers() {
    const bool at_once = phase_ == Phase::kKilling;
    phase_ = Phase::kLeftovers;
    patience_.cancel();
    if (joining_ && std::ranges::none_of(running_, &Running::failed)) joining_->Look();
    joining_.reset();
    containment_.LookForSegments();
    if (at_once) return Finish();
    std::map<pid_t, int> rank_of_group;
    for (const Running& one : running_) rank_of_group[one.pid] = one.rank;
    leftovers_.emplace(
        loop_, std::move(rank_of_group), [this](const std::string& line) { Emit(Said{"dtrun: " + line}); },
        Spared());
    leftovers_->Stop(Leftovers::kMoment, prepare_.grace, containment_.SegmentsWait(), [this] { Finish(); });
  }

  void Finish() {
    phase_ = Phase::kOver;
    mpi_.End();
    const std::vector<pid_t> told = leftovers_ ? leftovers_->told() : std::vector<pid_t>();
    for (const std::string& line : containment_.End(told)) Emit(Said{"dtrun: " + line});
    Gone gone;
    held_->FinishPipes();
    for (Running& one : running_) {
      one.process->FinishOutput();
      one.process->Reap();
      if (one.failed && gone.calls.empty()) gone.calls = audit_->History();
    }
    inspector_.Cancel();
    audit_.reset();
    stops_.reset();
    held_->Close();
    Emit(gone);
  }

  // Children of this process that are not the job's.
  std::vector<pid_t> Spared() const {
    std::vector<pid_t> spared = mpi_.servers();
    if (!options_.spared) return spared;
    for (const pid_t other : options_.spared()) spared.push_back(other);
    return spared;
  }

  boost::asio::io_context& loop_;
  const LocalOptions options_;
  boost::asio::steady_timer patience_;
  std::vector<char> buffer_;
  std::optional<net::Prover> prover_;
  Prepare prepare_;
  std::unique_ptr<Holdings> held_;  // of the generation that was prepared last
  MpiService mpi_;
  std::optional<Audit> audit_;
  std::optional<Stops> stops_;
  std::optional<Joining> joining_;
  Inspector inspector_{loop_};
  bool suspended_ = false;  // by dtrun itself, as the user asked
  Containment containment_;
  std::optional<MemoryEvidence> memory_;
  bool told_of_memory_ = false;  // in this generation
  std::vector<Running> running_;
  std::optional<Leftovers> leftovers_;
  Phase phase_ = Phase::kOver;
};

}  // namespace

std::unique_ptr<Host> MakeLocalHost(boost::asio::io_context& loop, LocalOptions options) {
  return std::make_unique<LocalHost>(loop, std::move(options));
}

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> block;
  for (char** entry = environ; *entry != nullptr; ++entry) block.emplace_back(*entry);
  return block;
}

std::optional<rlim_t> RaiseOpenFiles() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return before;
}

}  // namespace dtrun::agent
