#include "core/job/run.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/number.h"
#include "core/base/own_file.h"
#include "core/base/standard_output.h"
#include "core/contract/environment.h"
#include "core/failures/table.h"
#include "core/job/controller.h"
#include "core/job/joining_hosts.h"
#include "core/job/messages.h"
#include "core/job/rank_files.h"
#include "core/job/record.h"
#include "core/job/rendezvous.h"
#include "core/job/run_registry.h"
#include "core/job/user_control.h"
#include "core/log/log.h"
#include "core/membership/membership.h"
#include "core/membership/remote_host.h"
#include "core/metrics/job_metrics.h"
#include "core/node/inheritance.h"
#include "core/node/local_host.h"
#include "core/output/display.h"
#include "core/output/fold.h"
#include "core/plan/plan.h"
#include "core/process/process.h"
#include "core/store/server.h"
#include "core/verdict/recognise.h"
#include "core/verdict/verdict.h"

namespace dtrun::job {
namespace {

constexpr log::Room kJobLog("job");

class Runner {
 public:
  // Fills `outcome`. All references must outlive it.
  Runner(const RunRequest& request, process::Lifeline& lifeline, output::Console& console, Outcome& outcome)
      : request_(request), lifeline_(lifeline), console_(console), outcome_(outcome) {}

  // Asio throws if the system is out of descriptors or memory.
  Status Run() {
    try {
      return RunAndRecord();
    } catch (const std::exception& exception) {
      process::KillDescendants(std::chrono::seconds(10));
      return Error::Of(DTRUN_INTERNAL, "the agent failed: {}", Exhausted(exception));
    }
  }

 private:
  Status RunAndRecord() {
    const plan::Plan& asked = request_.plan;
    if (Status prepared = request_.presenter.Prepare(asked); !prepared) return prepared;
    const auto now = std::chrono::system_clock::now();
    auto dir = asked.log_dir_is_default
                   ? RunDir::CreateOrElsewhere(asked.log_dir, asked.job, now, asked.log_mode)
                   : RunDir::Create(asked.log_dir, asked.job, now, asked.log_mode);
    if (!dir) return Error{dir.error().code, asked.log_dir_place + dir.error().text};
    outcome_.run_dir = dir->path().string();
    Register(dir->path(), asked.job, now);
    console_.SpillInto(dir->path());
    log::KeepIn(UniqueFd(::fcntl(dir->descriptor(), F_DUPFD_CLOEXEC, 0)), dir->path(),
                FileModeIn(dir->mode()));
    kJobLog.Info("job '{}': {}, launcher {}, backend {}", asked.job, plan::WorldText(asked), asked.launcher,
                 asked.backend);
    lifeline_.LastWords(fmt::format("  job '{}', logs: {}\n", asked.job, outcome_.run_dir));
    lifeline_.RecordIn(dir->descriptor(), dir->path(), dir->mode(), asked.job);
    if (!dir->note().empty()) messages_.Say("dtrun: " + dir->note());
    const Record record(*dir);
    if (Status told = dir->TellPath(request_.dir_file); !told) {
      const Error why{told.error().code, request_.dir_file_place + told.error().text};
      messages_.Note(record.WriteNotStarted(asked.job, why));
      return why;
    }
    log_.emplace(
        [&](std::string_view line, bool anew) { return messages_.NoteEvent(record.AddEvent(line, anew)); },
        begun_);
    const auto began = std::chrono::system_clock::now() - (verdict::EventLog::Clock::now() - begun_);
    log_->Add(
        fact::Opened{fact::Opened::kVersion, asked.job, outcome_.run_dir,
                     fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))),
                     static_cast<std::uint64_t>(std::chrono::nanoseconds(began.time_since_epoch()).count())});
    if (const Status ran = RunGenerations(record, *dir); !ran) {
      log_->Add(fact::NotStarted{ran.error().text});
      messages_.Note(record.WriteNotStarted(asked.job, ran.error()));
      return ran;
    }
    const verdict::Facts& facts = log_->facts();
    if (const std::string moved = dir->Moved(); !moved.empty()) messages_.Say("dtrun: " + moved);
    messages_.Note(record.WriteVerdict(log_->story()));
    if (!request_.quiet || verdict::ExitCode(facts) != 0 || !facts.worked_alone.empty())
      messages_.Say(ShownIn(verdict::VerdictText(facts), facts.logs));
    if (const std::uint64_t missing =
            ShowTheRest(console_, lifeline_, facts.interrupt != 0 || facts.guard_died)) {
      log_->Add(fact::NotShown{missing});
      messages_.Note(record.WriteVerdict(log_->story()));
    }
    outcome_.facts = facts;
    return {};
  }

  Status RunGenerations(const Record& record, const RunDir& dir) {
    process::UserSignals signals(loop_, lifeline_);
    UserControl control(request_.plan.job, begun_, signals);
    if (Status open = control.Open(loop_, dir.descriptor()); !open)
      kJobLog.Info("{}: dtrun ps and stacks cannot ask this job", open.error().text);
    signals.OnStacksKey(
        [this, &control] { control.ShowStacks([this](const std::string& text) { messages_.Say(text); }); });
    if (request_.time_limit.count() > 0) signals.EndAfter(request_.time_limit);
    open_files_ = node::RaiseOpenFiles();
    here_ = HostHere();
    std::optional<membership::Membership> membership;  // for a job on several hosts
    if (request_.cluster) {
      membership.emplace(loop_, signals, *request_.cluster, request_.plan.job, shells_,
                         membership::RemoteHost::Services{
                             environment_, [this](store::Socket client) { store_->Serve(std::move(client)); },
                             [this](const std::string& line) { messages_.Say(line); }});
      control.WhileHostsJoin([&membership] { return membership->Joining(); });
    }
    JoiningHosts joining_hosts(loop_, signals, request_, *here_, membership ? &*membership : nullptr);
    metrics_.emplace(loop_, dir.descriptor(), dir.path(), FileModeIn(dir.mode()),
                     metrics::JobMetrics::Source{[&control] { return control.Now(); },
                                                 [&](int rank) {
                                                   const plan::Host* host = joining_hosts.plan().HostOf(rank);
                                                   return host == nullptr ? "" : host->name;
                                                 },
                                                 [&] { return joining_hosts.NameOf(*here_); },
                                                 [this](const Status& written) { messages_.Note(written); }});
    if (Status listens = ListenForMetrics(); !listens) return listens;
    const Status ran = RunPlan(record, signals, control, joining_hosts, membership ? &*membership : nullptr);
    metrics_->Finish();
    metrics_.reset();
    outcome_.plan = joining_hosts.plan();
    const std::string why_not_begun = !ran ? ran.error().text
                                      : joining_hosts.hosts().empty()
                                          ? "it was ended while its hosts were joining"
                                          : "";
    if (membership) membership->Dismiss(ran ? verdict::ExitCode(log_->facts()) : kUserError, why_not_begun);
    return ran;
  }

  Status ListenForMetrics() {
    const metrics::Listening& listening = request_.metrics;
    if (listening.address.empty()) return {};
    const Result<std::string> url = metrics_->Listen(loop_, listening);
    if (!url) return url.error();
    messages_.Say("dtrun: metrics: " + *url);
    return {};
  }

  Status RunPlan(const Record& record, process::UserSignals& signals, UserControl& control,
                 JoiningHosts& joining_hosts, membership::Membership* membership) {
    int restarts = 0, regroups = 0;
    const verdict::Facts& facts = log_->facts();
    for (std::uint64_t generation = 0;; ++generation) {
      Status gathered = Gather(generation, record, joining_hosts);
      while (WaitsForLost(gathered, joining_hosts, restarts))
        gathered = Gather(generation, record, joining_hosts);
      if (!gathered) {
        if (joining_hosts.interrupted() != 0)
          return Interrupted(joining_hosts.interrupted(), facts.generation);
        if (!log_->story().begun() || !facts.regroup.empty()) return gathered;
        return NotRestarted(gathered.error());
      }
      Controller controller(
          loop_, signals, joining_hosts.plan(), joining_hosts.hosts(),
          [this](const std::string& line) { messages_.Say(line); }, *log_);
      const UserControl::Shows shows(control, controller);
      if (membership != nullptr) {
        membership->OnNewcomer([&](const std::string& host) {
          if (!controller.IsEnding()) controller.Regroup("host " + host + " has joined");
        });
        controller.OnAsked([&](std::size_t host, int signal) {
          membership::RemoteHost* const asked = joining_hosts.remote()[host];
          return asked != nullptr && membership->Release(*asked, signal);
        });
      }
      const Status ran = RunGeneration(generation, regroups, record, controller, joining_hosts);
      if (membership != nullptr) membership->OnNewcomer({});
      if (WaitsForLost(ran, joining_hosts, restarts)) continue;
      if (!ran && log_->story().begun() && facts.regroup.empty()) return NotRestarted(ran.error());
      if (!ran) return ran;
      Recognise();
      if (const auto apart = joining_hosts.Apart(facts)) {
        if (!apart->empty()) log_->Add(fact::HostsApart{*apart});
        if (joining_hosts.interrupted() != 0) return Interrupted(joining_hosts.interrupted(), generation);
        controller.TakeOver();
      }
      if (!facts.regroup.empty() && controller.interrupted() == 0) {
        messages_.Note(record.WriteVerdict(log_->story()));
        messages_.Say(fmt::format("dtrun: {}: restarting all ranks", facts.regroup));
        ++regroups;
        continue;
      }
      if (verdict::ExitCode(facts) == 0) return {};
      messages_.TellUnreadFailures();
      if (const auto line = joining_hosts.TakeFallback(facts, environment_)) {
        messages_.Say("dtrun: " + *line);
        messages_.Note(record.WriteVerdict(log_->story()));
        messages_.Note(record.WriteNextPlan(generation + 1, joining_hosts.plan()));
        continue;
      }
      const RestartDecision decision = DecideRestart(request_.restart, restarts, facts);
      if (!decision.restart) {
        if (!decision.why.empty()) messages_.Say("dtrun: not restarted: " + decision.why);
        return {};
      }
      ++restarts;
      messages_.Note(record.WriteVerdict(log_->story()));
      log_->Add(fact::Noted{fact::Noted::What::kRestarts});
      messages_.Say(ShownIn(verdict::VerdictText(facts), facts.logs));
      messages_.Say(fmt::format("dtrun: {}{}", decision.why,
                                decision.wait.count() == 0 ? "" : " in " + FormatDuration(decision.wait)));
      if (!controller.Wait(decision.wait)) return Interrupted(controller.interrupted(), generation);
    }
  }

  // Whether a generation that did not begin is tried again. Counts as a restart.
  bool WaitsForLost(const Status& begun, const JoiningHosts& joining_hosts, int& restarts) {
    if (begun || !joining_hosts.LostAHost() || joining_hosts.interrupted() != 0) return false;
    if (restarts++ >= request_.restart.max) return false;
    messages_.Say(fmt::format("dtrun: {}: restarting all ranks", begun.error().text));
    return true;
  }

  Status Gather(std::uint64_t generation, const Record& record, JoiningHosts& joining_hosts) {
    const Result<bool> changed = joining_hosts.Gather();
    if (!changed) return changed.error();
    if (!*changed) return {};
    if (generation == 0) return record.WritePlan(joining_hosts.plan(), environment_);
    return record.WriteNextPlan(generation, joining_hosts.plan());
  }

  std::unique_ptr<protocol::Host> HostHere() {
    node::LocalOptions options;
    options.socket_dir = lifeline_.runtime_dir();
    options.cgroup = lifeline_.runtime_dir().filename().string();
    options.serve = [this](store::Socket client) { store_->Serve(std::move(client)); };
    options.environment = environment_;
    options.stdin_fd = STDIN_FILENO;
    options.open_files = open_files_;
    options.spared = [this] { return std::vector<pid_t>(shells_.begin(), shells_.end()); };
    return node::MakeLocalHost(loop_, std::move(options));
  }

  Status RunGeneration(std::uint64_t generation, int regroups, const Record& record, Controller& controller,
                       const JoiningHosts& joining_hosts) {
    const plan::Plan& plan = joining_hosts.plan();
    const std::string key = store::NewJobKey();
    const auto add = [&](int rank, fact::Any fact) {
      log_->Add(std::move(fact), fmt::format("rank {}", rank));
    };
    store_.emplace(
        key, generation,
        store::Events{[add](int rank) { add(rank, fact::Joined{{rank}}); },
                      [add](int rank) { add(rank, fact::Left{{rank}}); },
                      [add](int rank, const store::Report& report) {
                        add(rank, fact::Reported{{rank},
                                                 {report.failure.peer, report.failure.text, report.members,
                                                  report.failure.id, report.failure.args}});
                      },
                      [this](int rank, const store::Metrics& metrics) {
                        if (metrics_) metrics_->Add(rank, metrics);
                      }});
    Result<std::vector<protocol::Prepared>> prepared = controller.Prepare(generation, key);
    if (!prepared && controller.interrupted() != 0) return Interrupted(controller.interrupted(), generation);
    if (!prepared) return prepared.error();
    auto rendezvous = Rendezvous::Open(loop_, plan, joining_hosts.remote(), *std::move(prepared));
    if (!rendezvous) return rendezvous.error();
    Tokens shared{{plan::kTokenRunDir, outcome_.run_dir},
                  {plan::kTokenJobKey, key},
                  {plan::kTokenGeneration, std::to_string(generation)},
                  {plan::kTokenConsole, console_.terminal(output::Stream::kOut) ? "terminal" : "plain"}};
    if (plan.pmi == pmi::Kind::kPmix) shared[plan::kTokenPmixNamespace] = controller.mpi_job();
    const std::vector<Tokens> tokens = rendezvous->TokensFor(std::move(shared));
    const std::filesystem::path logs = record.LogsOf(generation);
    const Result<UniqueFd> logs_folder = record.OpenLogsOf(generation);
    if (!logs_folder) return logs_folder.error();
    if (Status written = record.WriteRuntime(generation, plan, tokens); !written) return written;

    World world;
    world.began.logs = logs.string();
    world.began.regroups = regroups;
    world.began.names_class = request_.restart.max > 0;
    world.tokens = tokens;
    if (MayBeAlone(plan)) world.rendezvous_ports = rendezvous->Ports();
    world.isolated_ranks = request_.isolated_ranks;
    world.stall = request_.stall;
    world.watches_waits = request_.watches_waits && plan.world_size() > 1;
    world.keep_trace =
        TraceFiles(plan, logs, logs_folder->get(), [this](const Status& kept) { messages_.Note(kept); });
    world.keep_stacks = [&](const std::string& why, const std::vector<verdict::RankDoing>& ranks) {
      const Status written = record.AddStacks(generation, why, ranks);
      messages_.Note(written);
      return written ? (logs / verdict::kStacksFile).string() : "";
    };
    std::optional<output::Fold> fold;
    if (plan.output.fold) fold.emplace(plan.world_size(), plan.output, console_);
    auto outputs = OpenRankOutputs(plan, logs, logs_folder->get(), request_.presenter, console_,
                                   fold ? &*fold : nullptr);
    if (!outputs) return outputs.error();
    world.outputs = *std::move(outputs);
    if (generation == 0) {
      outcome_.started = std::time(nullptr);
      const std::string header = request_.presenter.Header(plan, outcome_.run_dir);
      if (!header.empty()) messages_.Say(header);
    }
    if (generation > 0 && request_.cluster)
      messages_.Say(fmt::format("dtrun: generation {}: {}", generation, plan::WorldText(plan)));
    kJobLog.Info("generation {}: all hosts are ready", generation);
    const Status ran = controller.Run(std::move(world));
    if (ran)
      kJobLog.Info("generation {} has ended with exit code {}", generation, verdict::ExitCode(log_->facts()));
    if (!controller.calls().empty()) messages_.Note(record.WriteCalls(generation, controller.calls()));
    return ran;
  }

  // Whether ranks could end up in separate worlds: not in a single process with all ranks, and not below an
  // mpirun, which has already connected its ranks.
  bool MayBeAlone(const plan::Plan& plan) const {
    return request_.isolated_ranks != observe::IsolationPolicy::kAllow && plan.processes.size() > 1 &&
           plan.launcher != "mpirun";
  }

  // A known failure in the output of the rank that is the cause.
  void Recognise() {
    verdict::Facts facts = log_->facts();
    messages_.Note(verdict::Recognise(&facts));
    for (const verdict::RankFacts& rank : facts.ranks) {
      if (rank.known) log_->Add(fact::Recognised{{rank.rank}, *rank.known});
    }
  }

  // A restart was announced and could not begin.
  Status NotRestarted(const Error& why) {
    log_->Add(fact::Noted{fact::Noted::What::kNotRestarted, why.text});
    return {};
  }

  // The job was ended while no rank ran.
  Status Interrupted(int signal, std::uint64_t generation) {
    const bool limit = signal == process::UserSignals::kTimeLimit;
    log_->Add(fact::EndedBetween{generation, std::max(signal, 0),
                                 limit ? FormatDuration(request_.time_limit) : "",
                                 signal == process::Lifeline::kGuardGone});
    return {};
  }

  const RunRequest& request_;
  const std::vector<std::string> environment_ =
      node::InheritedBy(request_.plan);  // base environment of every rank
  process::Lifeline& lifeline_;
  output::Console& console_;
  Outcome& outcome_;
  Messages messages_{request_.plan.output, console_};
  asio::io_context loop_;
  const failures::ReadAhead read_ahead_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::optional<rlim_t> open_files_;
  std::set<pid_t> shells_;  // living ones
  std::optional<store::Server> store_;
  std::optional<metrics::JobMetrics> metrics_;  // while generations run
  std::unique_ptr<protocol::Host> here_;
  std::optional<verdict::EventLog> log_;  // once there is a folder
};

}  // namespace

Outcome Run(const RunRequest& request, process::Lifeline& lifeline) {
  ::signal(SIGPIPE, SIG_IGN);  // readers of our output may go away; ranks get the default back
  auto console = output::Console::Open(STDOUT_FILENO, STDERR_FILENO, {});
  if (console == nullptr) {
    PrintMessage("dtrun: console: {}\n", NoThread());
    return {};
  }
  log::WriteTo([&console](std::string_view line) {
    while (line.ends_with('\n')) line.remove_suffix(1);
    console->Line(output::Stream::kErr, output::TamedMessage(line));
  });
  Outcome outcome;
  const Status run = Runner(request, lifeline, *console, outcome).Run();
  Messages(request.plan.output, *console).Note(run);
  log::WriteTo(nullptr);
  ShowTheRest(*console, lifeline, false);
  return outcome;
}

}  // namespace dtrun::job
