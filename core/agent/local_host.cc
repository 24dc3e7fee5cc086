#include "core/agent/local_host.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "core/agent/audit.h"
#include "core/agent/leftovers.h"
#include "core/agent/lone_worlds.h"
#include "core/agent/memory_evidence.h"
#include "core/agent/port.h"
#include "core/agent/process.h"
#include "core/agent/rank_fifo.h"
#include "core/agent/rank_process.h"
#include "core/agent/stops.h"
#include "core/agent/verdict.h"
#include "core/net/prover.h"
#include "core/net/rule.h"
#include "core/plan/dialect.h"
#include "core/plan/hosts.h"

namespace dtrun::agent {
namespace {

constexpr std::size_t kReadBytes = 64 * 1024;
// How long SIGKILL may take, for example while a driver frees a device's memory.
constexpr std::chrono::seconds kKillPatience{10};
// When ranks are looked at for worlds of their own: twice as late each time, until the last.
constexpr std::chrono::milliseconds kFirstLook{500}, kLastLook{64'000};

static_assert(pmi::kRankDescriptor == kExtraDescriptor);

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
      : loop_(loop), options_(std::move(options)), patience_(loop), look_(loop), buffer_(kReadBytes) {}

  void Do(const Command& command) override {
    std::visit([this](const auto& given) { On(given); }, command);
  }

 private:
  // kStopping: asked to stop. kKilling: SIGKILL sent. kLeftovers: all ranks ended. kOver: nothing
  // is left.
  enum class Phase { kOver, kPrepared, kRunning, kStopping, kKilling, kLeftovers };

  struct Running {
    int rank = 0;
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
    prover_->Measure(from, measure.peer, measure.to, measure.by_device,
                     [this](net::Throughput throughput) { Post(Measured{throughput}); });
  }

  void On(const Prepare& prepare) {
    prover_.reset();
    prepare_ = prepare;
    running_.clear();
    port_.reset();
    task_ports_.clear();
    door_.reset();
    audit_.reset();
    recorder_.reset();
    for (const auto& pipe : rank_outputs_) pipe->Drop();
    rank_outputs_.clear();
    Prepared prepared;
    if (Status taken = TakeResources(&prepared); !taken) return Post(Refused{taken.error()});
    phase_ = Phase::kPrepared;
    Post(std::move(prepared));
  }

  // What the root has seen on its own host may be missing on this one.
  Status CheckFiles() const {
    const std::string* last = nullptr;
    for (const plan::Process& process : prepare_.processes) {
      if (last != nullptr && process.cwd == *last) continue;
      last = &process.cwd;
      if (::access(process.cwd.c_str(), X_OK) == 0) continue;
      const int number = errno;
      return Error{
          DTRUN_NOT_FOUND,
          Error::System(fmt::format("cannot enter the working directory '{}'", process.cwd), number).text +
              "; create it or change job.cwd"};
    }
    if (prepare_.processes.empty()) return {};
    const auto plugin = prepare_.processes[0].env.find(dialect::kBackendPath);
    if (plugin == prepare_.processes[0].env.end() || ::access(plugin->second.c_str(), R_OK) == 0) return {};
    const int number = errno;
    return Error{
        DTRUN_NOT_FOUND,
        Error::System(fmt::format("cannot read the backend plugin '{}'", plugin->second), number).text +
            "; install the same dtrun on every host"};
  }

  Status TakeResources(Prepared* prepared) {
    if (Status files = CheckFiles(); !files) return files;
    if (prepare_.master_port >= 0) {
      Result<HeldPort> port = HeldPort::Hold(prepare_.master_port);
      if (!port) return port.error();
      port_.emplace(*std::move(port));
      prepared->master_port = port_->number();
    }
    for (const int rank : prepare_.task_ranks) {
      Result<HeldPort> port = HeldPort::Hold(0);
      if (!port) return port.error();
      task_ports_.push_back(*std::move(port));
      prepared->task_ports.emplace_back(rank, task_ports_.back().number());
    }
    Result<comm::BookMapping> recorder = comm::BookMapping::Create(prepare_.world_size);
    if (!recorder) return recorder.error();
    recorder_.emplace(*std::move(recorder));
    prepared->recorder = recorder_->Path();
    const std::filesystem::path socket = options_.socket_dir / "store";
    auto door = store::Door::Listen(loop_, socket, options_.serve);
    if (!door) return door.error();
    door_ = *std::move(door);
    prepared->store = socket.string();
    for (const plan::Process& process : prepare_.processes) {
      if (!process.env.contains(dialect::kRankOutputs)) continue;
      if (Status opened = OpenRankOutputs(process); !opened) return opened;
    }
    return ServeMpi();
  }

  Status OpenRankOutputs(const plan::Process& process) {
    for (int i = 0; i < process.rank_count; ++i) {
      for (const output::Stream stream : {output::Stream::kOut, output::Stream::kErr}) {
        Result<UniqueFd> end = MakeRankFifo(options_.socket_dir, process.local_rank + i, stream);
        if (!end) return end.error();
        const int rank = process.rank + i;
        rank_outputs_.push_back(std::make_shared<OutputPipe>(
            loop_, *std::move(end), stream, buffer_,
            [this, rank](output::Stream from, std::string_view bytes) {
              Emit(Output{rank, from, bytes});
            },
            options_.gate));
      }
    }
    return {};
  }

  Status ServeMpi() {
    if (prepare_.mpi.kind == pmi::Kind::kNone) return {};
    if (mpi_ == nullptr) {
      pmi::Events events;
      events.offered = [this](pmi::Part part) { Emit(Offered{std::move(part)}); };
      events.started = [this](int rank) { Emit(MpiStarted{rank}); };
      events.finished = [this](int rank) { Emit(MpiFinished{rank}); };
      events.aborted = [this](int rank, int code, const std::string& message) {
        Emit(MpiAborted{rank, code, message});
      };
      events.said = [this](int rank, const std::string& text) {
        Emit(Output{rank, output::Stream::kErr, text});
      };
      const pmi::Folders folders{options_.socket_dir / "mpi", options_.memory_dir};
      Result<std::unique_ptr<pmi::Server>> made =
          pmi::MakeServer(prepare_.mpi, loop_, folders, std::move(events));
      if (!made) return made.error();
      mpi_ = *std::move(made);
    }
    return mpi_->Begin(prepare_.mpi);
  }

  // Of the first rank that lives in the process.
  Result<pmi::Admission> Admit(const plan::Process& process) {
    if (prepare_.mpi.kind == pmi::Kind::kNone) return pmi::Admission();
    for (int rank = process.rank + process.rank_count - 1; rank > process.rank; --rank) {
      if (Result<pmi::Admission> other = mpi_->Admit(rank); !other) return other;
    }
    return mpi_->Admit(process.rank);
  }

  void On(const agent::Start& start) {
    if (phase_ != Phase::kPrepared) return;  // killed meanwhile
    plan::Plan part;
    part.processes = std::move(prepare_.processes);
    part = plan::Resolve(part, start.tokens);
    memory_.emplace();
    const std::vector<std::string>& base =
        prepare_.environment.empty() ? options_.environment : prepare_.environment;
    Started started;
    std::vector<int> ranks;
    for (const plan::Process& process : part.processes) {
      for (int i = 0; i < process.rank_count; ++i) ranks.push_back(process.rank + i);
      Result<pmi::Admission> mpi = Admit(process);
      if (!mpi) return RefuseStart(mpi.error());
      const SpawnRequest request{
          process.rank,        process.argv,         EnvironmentOf(process, *mpi, base),
          process.cwd,         process.binding,      process.rank == 0 ? options_.stdin_fd : -1,
          options_.open_files, mpi->descriptor.get()};
      Result<Child> child = Spawn(request);
      if (!child) return RefuseStart(child.error());
      started.pids.push_back(child->pid);
      Add(process.rank, *std::move(child));
    }
    phase_ = Phase::kRunning;
    for (Running& one : running_) one.process->Watch();
    for (const auto& pipe : rank_outputs_) pipe->Watch();
    stops_.emplace(loop_, [this](pid_t pid, int signal) { OnStopped(pid, signal); });
    if (prepare_.world_size > 1) LookForLoneWorlds(kFirstLook);
    audit_.emplace(
        loop_, recorder_->book(), std::move(ranks),
        Audit::Events{[this](comm::Difference difference) { Emit(Differed{std::move(difference)}); },
                      [this](std::vector<comm::Excerpt> excerpts) { Emit(Called{std::move(excerpts)}); }});
    Post(std::move(started));
  }

  void RefuseStart(const Error& error) {
    KillDescendants(kKillPatience, Spared());
    running_.clear();
    EndMpi();
    phase_ = Phase::kOver;
    Post(Refused{error});
  }

  void EndMpi() {
    if (mpi_ != nullptr) mpi_->End();
  }

  void LookForLoneWorlds(std::chrono::milliseconds after) {
    look_.expires_after(after);
    look_.async_wait([this, after](const boost::system::error_code& error) {
      if (error || phase_ != Phase::kRunning) return;
      std::map<pid_t, int> ranks;
      for (const Running& one : running_) ranks.emplace(one.pid, one.rank);
      const std::vector<int> alone = RanksInLoneWorlds(ranks);
      if (alone.empty()) {
        if (after < kLastLook) LookForLoneWorlds(2 * after);
        return;
      }
      Emit(Said{fmt::format(
          "dtrun: warning: MPI of {} found no server and made a world of one; what uses MPI there "
          "works alone, without the other ranks of the job. Set job.pmi = \"pmix\", or launcher.name = "
          "\"mpirun\", or make the process group before a framework takes MPI for it",
          FoldRanks(alone))});
    });
  }

  void Add(int rank, Child child) {
    const std::size_t index = running_.size();
    Running one;
    one.rank = rank;
    one.pid = child.pid;
    one.process = std::make_shared<RankProcess>(
        loop_, std::move(child), buffer_,
        [this, rank](output::Stream stream, std::string_view bytes) {
          Emit(Output{rank, stream, bytes});
        },
        [this, index](const Ending& ending) { OnEnd(index, ending); }, options_.gate);
    running_.push_back(std::move(one));
  }

  void OnStopped(pid_t pid, int signal) {
    const auto one = std::ranges::find(running_, pid, &Running::pid);
    if (one == running_.end() || suspended_) return;
    Emit(Said{fmt::format(
        "dtrun: rank {} on {} was stopped by {}: the job waits for it; `kill -CONT {}` there lets it go on",
        one->rank, plan::HostName(), SignalName(signal), pid)});
  }

  void OnEnd(std::size_t index, Ending ending) {
    Running& one = running_[index];
    one.failed = ending.failed();
    ending.stopped_by = one.stopped_by;
    if (ending.signal == SIGKILL && one.signal_sent == 0) ending.out_of_memory = memory_->Rose();
    if (one.failed && phase_ == Phase::kRunning) one.process->Signal(SIGKILL);  // what is left of its group
    Emit(Ended{one.rank, ending, one.signal_sent});
    const bool living = std::ranges::any_of(running_, [](auto& other) { return other.process->living(); });
    if (!living && phase_ < Phase::kLeftovers) EndLeftovers();
  }

  void On(const Signal& signal) {
    const bool whole = signal.number == SIGSTOP || signal.number == SIGCONT;
    if (whole) suspended_ = signal.number == SIGSTOP;
    for (Running& one : running_) {
      if (!one.process->living()) continue;
      whole ? one.process->Signal(signal.number) : one.process->Tell(signal.number);
    }
  }

  void On(const Exchanged& exchanged) {
    if (mpi_ == nullptr) return;
    if (exchanged.error.empty()) return mpi_->Complete(exchanged.exchange, exchanged.bytes);
    mpi_->Complete(exchanged.exchange, Error{DTRUN_ABORTED, exchanged.error});
  }

  void On(const Called& called) {
    if (!recorder_) return;
    for (const comm::Excerpt& excerpt : called.excerpts) comm::Enter(recorder_->book(), excerpt);
  }

  void On(const Differed& differed) {
    if (recorder_) comm::Ring(recorder_->book(), differed.difference);
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
    SignalDescendants(SIGKILL, Spared());
    patience_.expires_after(kKillPatience);
    patience_.async_wait([this](const boost::system::error_code& error) {
      if (!error && phase_ == Phase::kKilling) EndLeftovers();  // some rank cannot be ended
    });
  }

  // To all groups, also of ranks that have ended: what they left should end as well.
  void SignalToEnd(int signal) {
    stops_->Look();
    for (Running& one : running_) {
      if (one.process->living() && one.signal_sent == 0 && !suspended_)
        one.stopped_by = stops_->SignalOf(one.pid);
      if (one.process->living()) one.signal_sent = signal;
      one.process->Signal(signal);
      if (signal != SIGKILL) one.process->Signal(SIGCONT);  // a stopped process takes it only then
    }
  }

  void EndUnstarted() {
    phase_ = Phase::kOver;
    EndMpi();
    Post(Gone{});
  }

  void EndLeftovers() {
    const bool at_once = phase_ == Phase::kKilling;
    phase_ = Phase::kLeftovers;
    patience_.cancel();
    look_.cancel();
    if (at_once) return Finish();
    std::map<pid_t, int> rank_of_group;
    for (const Running& one : running_) rank_of_group[one.pid] = one.rank;
    leftovers_.emplace(loop_, std::move(rank_of_group), Spared());
    for (const std::string& line : leftovers_->Stop(prepare_.grace, [this] { Finish(); })) {
      Emit(Said{"dtrun: " + line});
    }
  }

  void Finish() {
    phase_ = Phase::kOver;
    for (const Process& process : KillDescendants(kKillPatience, Spared())) {
      Emit(Said{fmt::format("dtrun: process {} ({}) does not end, even by SIGKILL (state {})", process.pid,
                            process.name, process.state)});
    }
    Gone gone;
    for (const auto& pipe : rank_outputs_) pipe->Finish();
    for (Running& one : running_) {
      one.process->FinishOutput();
      one.process->Reap();
      if (one.failed && gone.calls.empty()) gone.calls = audit_->History();
    }
    audit_.reset();
    stops_.reset();
    door_.reset();
    port_.reset();
    EndMpi();
    Emit(gone);
  }

  std::vector<pid_t> Spared() const { return options_.spared ? options_.spared() : std::vector<pid_t>{}; }

  boost::asio::io_context& loop_;
  const LocalOptions options_;
  boost::asio::steady_timer patience_, look_;
  std::vector<char> buffer_;
  std::optional<net::Prover> prover_;
  Prepare prepare_;
  std::optional<HeldPort> port_;
  std::vector<HeldPort> task_ports_;
  std::optional<comm::BookMapping> recorder_;
  std::unique_ptr<store::Door> door_;
  std::unique_ptr<pmi::Server> mpi_;  // from the first generation that needs it
  std::optional<Audit> audit_;
  std::optional<Stops> stops_;
  bool suspended_ = false;  // by dtrun itself, as the user asked
  std::optional<MemoryEvidence> memory_;
  std::vector<Running> running_;
  std::vector<std::shared_ptr<OutputPipe>> rank_outputs_;  // of ranks that a process starts
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
