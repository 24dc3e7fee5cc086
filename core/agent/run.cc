#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>
#include <set>

#include "core/agent/agent.h"
#include "core/agent/conductor.h"
#include "core/agent/dismiss.h"
#include "core/agent/examiner.h"
#include "core/agent/local_host.h"
#include "core/agent/muster.h"
#include "core/agent/network.h"
#include "core/agent/process.h"
#include "core/agent/recognise.h"
#include "core/agent/record.h"
#include "core/agent/remote_host.h"
#include "core/agent/rung.h"
#include "core/agent/verdict.h"
#include "core/base/units.h"
#include "core/dialect/outer.h"
#include "core/store/server.h"

namespace dtrun::agent {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kUserError = 2;

output::Prefix PrefixOf(const std::string& name) {
  if (name == "rank") return output::Prefix::kRank;
  return name == "none" ? output::Prefix::kNone : output::Prefix::kAuto;
}

std::string_view WithoutNewline(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

// Everything is written, unless the user stops waiting for a reader that takes nothing.
void DrainConsole(output::Console& console, Lifeline& lifeline) {
  constexpr int kPatienceMs = 250;
  for (;;) {
    const auto begin = Clock::now();
    if (console.Drain(kPatienceMs)) return;
    if (Clock::now() - begin < std::chrono::milliseconds(kPatienceMs)) return;  // nobody reads any more
    switch (lifeline.Next()) {
      case Lifeline::kGuardGone:
      case SIGINT:
      case SIGTERM:
      case SIGHUP:
      case SIGQUIT: return;
      case SIGTSTP: lifeline.Stopped(); break;
      default: break;
    }
  }
}

// This process's environment, without what the plan keeps from the ranks.
std::vector<std::string> InheritedBy(const plan::Plan& plan) {
  std::vector<std::string> out = OwnEnvironment();
  std::erase_if(out, [&](const std::string& entry) {
    return dialect::MatchesAny(entry.substr(0, entry.find('=')), plan.withheld);
  });
  return out;
}

class Runner {
 public:
  Runner(const RunRequest& request, Lifeline& lifeline, output::Console& console)
      : request_(request), plan_(request.plan), lifeline_(lifeline), console_(console) {}

  // Asio throws when the system is out of descriptors or memory.
  Result<int> Run() {
    try {
      return RunAndRecord();
    } catch (const std::exception& exception) {
      KillDescendants(std::chrono::seconds(10));
      return Error{DTRUN_INTERNAL,
                   fmt::format("the agent failed: {}; look at `ulimit -a`", exception.what())};
    }
  }

 private:
  Result<int> RunAndRecord() {
    Result<RunDir> dir = RunDir::Create(plan_.log_dir, plan_.job, std::chrono::system_clock::now());
    if (!dir) return dir.error();
    run_dir_ = dir->path().string();
    lifeline_.LastWords(fmt::format("  job '{}', logs: {}\n", plan_.job, run_dir_));
    if (!dir->note().empty()) Say("dtrun: " + dir->note());
    const Record record(*dir);
    Result<Facts> facts = RunGenerations(record);
    if (!facts) {
      Note(record.WriteNotStarted(plan_.job, facts.error().text));
      return facts.error();
    }
    Note(record.WriteVerdict(generations_));
    Say(WithoutNewline(VerdictText(*facts)));
    return ExitCode(*facts);
  }

  // The facts of the last generation.
  Result<Facts> RunGenerations(const Record& record) {
    UserSignals signals(loop_, lifeline_);
    open_files_ = RaiseOpenFiles();
    Result<std::vector<std::unique_ptr<Host>>> hosts = GatherHosts(signals);
    if (!hosts && interrupted_ != 0) return Interrupted(interrupted_, Facts());
    if (!hosts) return hosts.error();
    if (Status found = FindNetwork(signals, *hosts); !found) {
      LetGo(found.error());
      return interrupted_ != 0 ? Result<Facts>(Interrupted(interrupted_, Facts())) : found.error();
    }
    if (Status written = record.WritePlan(plan_, environment_); !written) return written.error();
    Conductor conductor(loop_, signals, plan_, *std::move(hosts),
                        [this](const std::string& line) { Say(line); });
    Result<Facts> facts = Conduct(record, conductor);
    Dismiss(loop_, remote_, facts ? ExitCode(*facts) : kUserError, facts ? "" : facts.error().text);
    return facts;
  }

  // This host alone, or all that the cluster has, in the order of the plan.
  Result<std::vector<std::unique_ptr<Host>>> GatherHosts(UserSignals& signals) {
    std::vector<std::unique_ptr<Host>> hosts;
    if (!request_.cluster) {
      hosts.push_back(HostHere());
      return hosts;
    }
    const Cluster& cluster = *request_.cluster;
    Muster muster(loop_, signals, cluster, plan_.job, shells_, [this](const std::string& line) { Say(line); },
                  {[this](std::size_t host, std::string_view message) { remote_[host]->OnMessage(message); },
                   [this](std::size_t host, const control::Loss& loss) { remote_[host]->OnLost(loss); }});
    Result<std::vector<JoinedHost>> joined = muster.Run();
    interrupted_ = muster.interrupted();
    if (!joined) return joined.error();
    for (std::size_t i = 0; i < joined->size(); ++i) {
      if (static_cast<int>(i) == cluster.here) {
        Result<plan::HostOffer> here = plan::OfferHere();
        if (!here) return here.error();
        offers_.push_back(*here);
        machines_.push_back(MachineIdentity());
        continue;
      }
      const Introduction& host = (*joined)[i].introduction;
      offers_.push_back({host.cores, host.gpus, host.host_name});
      machines_.push_back(host.machine);
    }
    remote_.resize(joined->size());
    for (std::size_t i = 0; i < joined->size(); ++i) {
      if (static_cast<int>(i) == cluster.here) {
        hosts.push_back(HostHere());
        continue;
      }
      JoinedHost& host = (*joined)[i];
      auto remote = std::make_unique<RemoteHost>(
          loop_, cluster.hosts[i], std::move(host.channel), std::move(host.shell), environment_,
          [this](store::Socket client) { store_->Serve(std::move(client)); },
          [this](const std::string& line) { Say(line); });
      remote_[i] = remote.get();
      hosts.push_back(std::move(remote));
    }
    if (!request_.question.empty()) {
      Examiner examiner(loop_, signals);
      Result<std::vector<std::string>> told =
          examiner.Run(std::vector<std::string>(remote_.size(), request_.question), remote_);
      interrupted_ = examiner.interrupted();
      if (!told) return LetGo(told.error());
      answers_ = *std::move(told);
    }
    Result<plan::Plan> plan = request_.replan(offers_, answers_, nullptr);
    if (!plan) return LetGo(plan.error());
    plan_ = *std::move(plan);
    return hosts;
  }

  // Puts the network that joins the hosts into the plan. One host, or several that are one machine,
  // need none; what the user has asked for is checked all the same.
  Status FindNetwork(UserSignals& signals, const std::vector<std::unique_ptr<Host>>& hosts) {
    if (plan_.network_rules.empty()) return {};
    if (hosts.size() == 1) return CheckRuleHere(plan_.network_rules[0]);
    if (std::ranges::count(machines_, machines_[0]) == static_cast<std::ptrdiff_t>(machines_.size()))
      return {};
    std::vector<NetworkSearch::Member> members;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      members.push_back({plan_.hosts[i].name, machines_[i], hosts[i].get()});
    }
    NetworkSearch search(loop_, signals, std::move(members));
    const Result<net::Decision> decision = search.Run(plan_.network_rules);
    interrupted_ = search.interrupted();
    if (!decision) return decision.error();
    Result<plan::Plan> plan = request_.replan(offers_, answers_, &*decision);
    if (!plan) return plan.error();
    plan_ = *std::move(plan);
    return {};
  }

  // The job does not start: those who have joined are told why.
  Error LetGo(const Error& error) {
    Dismiss(loop_, remote_, interrupted_ == 0 ? kUserError : 128 + std::max(interrupted_, 0), error.text);
    return error;
  }

  std::unique_ptr<Host> HostHere() {
    LocalOptions options;
    options.socket_dir = lifeline_.runtime_dir();
    options.memory_dir = lifeline_.memory_dir();
    options.serve = [this](store::Socket client) { store_->Serve(std::move(client)); };
    options.environment = environment_;
    options.stdin_fd = STDIN_FILENO;
    options.open_files = open_files_;
    options.spared = [this] { return std::vector<pid_t>(shells_.begin(), shells_.end()); };
    return MakeLocalHost(loop_, std::move(options));
  }

  Result<Facts> Conduct(const Record& record, Conductor& conductor) {
    for (std::uint64_t generation = 0;; ++generation) {
      Result<Facts> facts = RunGeneration(generation, record, conductor);
      if (!facts) return facts;
      facts->logs = record.LogsOf(generation)->string();
      Note(Recognise(&*facts));
      generations_.push_back(*facts);
      if (ExitCode(*facts) == 0) return facts;
      if (TakeRung(*facts)) {
        Note(record.WriteVerdict(generations_));
        continue;
      }
      const RestartDecision decision = DecideRestart(Allowed(), *facts);
      if (!decision.restart) {
        if (!decision.why.empty()) Say("dtrun: not restarted: " + decision.why);
        return facts;
      }
      Note(record.WriteVerdict(generations_));
      Say(WithoutNewline(VerdictText(*facts)));
      Say(fmt::format("dtrun: {}{}", decision.why,
                      decision.wait.count() == 0 ? "" : " in " + FormatDuration(decision.wait)));
      if (!conductor.Wait(decision.wait)) return Interrupted(conductor.interrupted(), *facts);
    }
  }

  // Gives up one way between GPUs when that may be what failed.
  bool TakeRung(const Facts& facts) {
    const auto inherited = [this](std::string_view variable) {
      return std::ranges::any_of(environment_, [&](const std::string& entry) {
        return entry.substr(0, entry.find('=')) == variable;
      });
    };
    const auto rung = NextRung(facts, plan_, inherited);
    if (!rung) return false;
    for (plan::Process& process : plan_.processes) {
      for (const auto& [name, value] : rung->variables) process.env[name] = value;
    }
    ++rungs_;
    Say("dtrun: " + rung->line);
    return true;
  }

  // What the user has allowed, and the starts that are ours.
  RestartPolicy Allowed() const {
    RestartPolicy policy = request_.restart;
    if (policy.max > 0) policy.max += rungs_;
    return policy;
  }

  Result<Facts> RunGeneration(std::uint64_t generation, const Record& record, Conductor& conductor) {
    const std::string key = store::NewJobKey();
    store_.emplace(
        key, generation,
        store::Events{
            [&](int rank) { conductor.Joined(rank); }, [&](int rank) { conductor.Left(rank); },
            [&](int rank, int peer, const std::string& what) { conductor.Reported(rank, peer, what); }});
    Result<std::vector<Prepared>> prepared = conductor.Prepare(generation, key);
    if (!prepared && conductor.interrupted() != 0) {
      Facts nothing;
      nothing.generation = generation;
      return Interrupted(conductor.interrupted(), std::move(nothing));
    }
    if (!prepared) return prepared.error();
    const std::vector<Tokens> tokens = TokensOf(generation, key, conductor.mpi_job(), *prepared);
    Result<std::filesystem::path> logs = record.LogsOf(generation);
    if (!logs) return logs.error();
    if (Status written = record.WriteRuntime(generation, plan_, tokens); !written) return written.error();

    World world;
    world.tokens = tokens;
    for (const plan::Process& process : plan_.processes) {
      auto output = output::RankOutput::Open(*logs, process.rank, plan_.world_size(),
                                             PrefixOf(plan_.log_prefix), console_);
      if (!output) return output.error();
      world.outputs.push_back(*std::move(output));
    }
    if (generation == 0 && request_.header) Say(WithoutNewline(request_.header(plan_, run_dir_)));
    Result<Facts> facts = conductor.Run(std::move(world));
    if (!conductor.calls().empty()) Note(record.WriteCalls(generation, conductor.calls()));
    return facts;
  }

  std::vector<Tokens> TokensOf(std::uint64_t generation, const std::string& key, const std::string& mpi_job,
                               const std::vector<Prepared>& prepared) const {
    Tokens shared{{plan::kTokenRunDir, run_dir_},
                  {plan::kTokenJobKey, key},
                  {plan::kTokenGeneration, std::to_string(generation)},
                  {plan::kTokenConsole, console_.terminal() ? "terminal" : "plain"}};
    if (plan_.pmi == pmi::Kind::kPmix) shared[plan::kTokenPmixNamespace] = mpi_job;
    for (std::size_t i = 0; i < prepared.size(); ++i) {
      for (const auto& [rank, port] : prepared[i].task_ports) {
        shared[plan::TaskPortToken(rank)] = std::to_string(port);
      }
      if (prepared.size() > 1 && i > 0) shared[plan::HostAddressToken(i)] = MasterAddress(i);
      if (prepared[i].master_port < 0) continue;
      shared[plan::kTokenPort] = std::to_string(prepared[i].master_port);
      if (prepared.size() > 1) shared[plan::kTokenAddress] = MasterAddress(i);
    }
    std::vector<Tokens> tokens;
    for (const Prepared& host : prepared) {
      tokens.push_back(shared);
      tokens.back()[plan::kTokenStore] = host.store;
      tokens.back()[plan::kTokenRecorder] = host.recorder;
    }
    return tokens;
  }

  // Of the host where rank 0 lives, as the other hosts reach it.
  std::string MasterAddress(std::size_t host) const {
    if (!plan_.network.empty()) return plan_.hosts[host].address;
    if (remote_[host] != nullptr) return remote_[host]->Address();
    for (const RemoteHost* other : remote_) {
      if (other == nullptr) continue;
      const std::string own = AddressTowards(other->Address());
      if (!own.empty()) return own;
    }
    return "127.0.0.1";
  }

  // The job was ended while no rank ran.
  Facts Interrupted(int signal, Facts facts) {
    facts.job = plan_.job;
    facts.logs = run_dir_;
    facts.first_failed = -1;
    facts.guard_died = signal == Lifeline::kGuardGone;
    facts.interrupt = facts.guard_died ? 0 : signal;
    const bool known = !generations_.empty() && generations_.back().generation == facts.generation;
    if (known) generations_.pop_back();  // it ended differently now
    generations_.push_back(facts);
    return facts;
  }

  void Say(std::string_view text) { console_.Line(output::Stream::kErr, text); }

  void Note(const Status& written) {
    if (!written) Say("dtrun: " + written.error().text);
  }

  const RunRequest& request_;
  plan::Plan plan_;
  const std::vector<std::string> environment_ = InheritedBy(plan_);  // what every rank starts from
  Lifeline& lifeline_;
  output::Console& console_;
  boost::asio::io_context loop_;
  std::string run_dir_;
  std::optional<rlim_t> open_files_;
  std::set<pid_t> shells_;  // that live
  std::optional<store::Server> store_;
  std::vector<RemoteHost*> remote_;      // by host; null: this one
  std::vector<plan::HostOffer> offers_;  // by host
  std::vector<std::string> machines_;    // by host
  std::vector<std::string> answers_;     // to the question, by host
  int interrupted_ = 0;                  // while the hosts were joining
  int rungs_ = 0;                        // taken
  std::vector<Facts> generations_;
};

}  // namespace

int Run(const RunRequest& request, Lifeline& lifeline) {
  ::signal(SIGPIPE, SIG_IGN);  // readers of our output may go away; ranks get the default back
  auto console = output::Console::Open(STDOUT_FILENO, STDERR_FILENO, lifeline.runtime_dir());
  if (console == nullptr) {
    fmt::print(stderr, "dtrun: cannot start a thread for the console; raise `ulimit -u`\n");
    return kUserError;
  }
  Result<int> code = Runner(request, lifeline, *console).Run();
  if (!code) console->Line(output::Stream::kErr, "dtrun: " + code.error().text);
  DrainConsole(*console, lifeline);
  return code ? *code : kUserError;
}

}  // namespace dtrun::agent
