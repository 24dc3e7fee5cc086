#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>
#include <map>
#include <set>

#include "core/agent/agent.h"
#include "core/agent/conductor.h"
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
#include "core/dialect/horovod.h"
#include "core/dialect/outer.h"
#include "core/plan/dialect.h"
#include "core/plan/dialects.h"
#include "core/store/horovod_server.h"
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
    lifeline_.RecordIn(dir->path(), plan_.job);
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
    here_ = HostHere();
    if (request_.cluster) {
      muster_.emplace(
          loop_, signals, *request_.cluster, plan_.job, shells_,
          RemoteHost::Services{environment_, [this](store::Socket client) { Serve(std::move(client)); },
                               [this](const std::string& line) { Say(line); }});
    }
    Result<Facts> facts = Conduct(record, signals);
    if (muster_) muster_->Dismiss(facts ? ExitCode(*facts) : kUserError, WhyNotBegun(facts));
    return facts;
  }

  // For hosts that came in vain.
  std::string WhyNotBegun(const Result<Facts>& facts) const {
    if (!facts) return facts.error().text;
    return hosts_.empty() ? "it was ended while its hosts were joining" : "";
  }

  Result<Facts> Conduct(const Record& record, UserSignals& signals) {
    int restarts = 0;
    for (std::uint64_t generation = 0;; ++generation) {
      if (Status gathered = Gather(generation, record, signals); !gathered) {
        if (interrupted_ != 0) return Ended(interrupted_);
        if (generations_.empty() || !generations_.back().regroup.empty()) return gathered.error();
        Say("dtrun: not restarted: " + gathered.error().text);
        return generations_.back();
      }
      Conductor conductor(loop_, signals, plan_, hosts_, [this](const std::string& line) { Say(line); });
      if (muster_) {
        muster_->OnNewcomer([&](const std::string& host) {
          if (!conductor.Ending()) conductor.Regroup("host " + host + " has joined");
        });
        conductor.OnAsked([&](std::size_t host, int signal) {
          return remote_[host] != nullptr && muster_->Release(*remote_[host], signal);
        });
      }
      Result<Facts> facts = RunGeneration(generation, record, conductor);
      if (muster_) muster_->OnNewcomer({});
      if (!facts && LostAHost() && restarts < request_.restart.max) {
        ++restarts;
        Say(fmt::format("dtrun: {}: starting again", facts.error().text));
        continue;
      }
      if (!facts) return facts;
      facts->logs = record.LogsOf(generation)->string();
      Note(Recognise(&*facts));
      generations_.push_back(*facts);
      if (!facts->regroup.empty() && conductor.interrupted() == 0) {
        Note(record.WriteVerdict(generations_));
        Say(fmt::format("dtrun: {}: starting again", facts->regroup));
        continue;
      }
      if (ExitCode(*facts) == 0) return facts;
      if (TakeRung(*facts)) {
        Note(record.WriteVerdict(generations_));
        Note(record.WriteNextPlan(generation + 1, plan_));
        continue;
      }
      const RestartDecision decision = DecideRestart(request_.restart, restarts, *facts);
      if (!decision.restart) {
        if (!decision.why.empty()) Say("dtrun: not restarted: " + decision.why);
        return facts;
      }
      ++restarts;
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
    rungs_.push_back(*rung);
    ApplyRungs();
    Say("dtrun: " + rung->line);
    return true;
  }

  void ApplyRungs() {
    for (const Rung& rung : rungs_) {
      for (plan::Process& process : plan_.processes) {
        for (const auto& [name, value] : rung.variables) process.env[name] = value;
      }
      if (std::ranges::find(plan_.notes, rung.line) == plan_.notes.end()) plan_.notes.push_back(rung.line);
    }
  }

  // Of those that were gathered last.
  bool LostAHost() const {
    return std::ranges::any_of(remote_, [](const RemoteHost* host) { return host && host->lost(); });
  }

  // The hosts of the next generation, in the order of the plan, and the plan for them.
  Status Gather(std::uint64_t generation, const Record& record, UserSignals& signals) {
    if (!muster_) {
      if (generation > 0) return {};
      hosts_ = {here_.get()};
      remote_ = {nullptr};
      if (!plan_.network_rules.empty()) {
        if (Status chosen = CheckRuleHere(plan_.network_rules[0]); !chosen) return chosen;
      }
      return record.WritePlan(plan_, environment_);
    }
    Result<std::vector<Muster::Present>> present = muster_->Gather();
    interrupted_ = muster_->interrupted();
    if (!present) return present.error();
    std::vector<plan::HostOffer> offers;
    hosts_.clear();
    remote_.clear();
    for (const Muster::Present& one : *present) {
      offers.push_back(one.offer);
      remote_.push_back(one.host);
      hosts_.push_back(one.host == nullptr ? here_.get() : one.host);
    }
    if (generation > 0 && offers == offers_) return {};
    if (Status asked = AskBackends(offers, signals); !asked) return asked;
    Result<plan::Plan> plan = request_.replan(offers, answers_, nullptr);
    if (!plan) return plan.error();
    plan_ = *std::move(plan);
    if (Status found = FindNetwork(*present, offers, signals); !found) return found;
    ApplyRungs();
    offers_ = std::move(offers);
    if (generation == 0) return record.WritePlan(plan_, environment_);
    return record.WriteNextPlan(generation, plan_);
  }

  // What each host says of the backends that the job may use.
  Status AskBackends(const std::vector<plan::HostOffer>& offers, UserSignals& signals) {
    const Result<std::vector<std::string>> questions = request_.questions(offers);
    if (!questions) return questions.error();
    if (questions->empty()) return {};
    Examiner examiner(loop_, signals);
    Result<std::vector<std::string>> told = examiner.Run(*questions, remote_);
    interrupted_ = examiner.interrupted();
    if (!told) return told.error();
    answers_ = *std::move(told);
    return {};
  }

  // Puts the network that joins the hosts into the plan. One host, or several that are one machine,
  // need none; what the user has asked for is checked all the same.
  Status FindNetwork(const std::vector<Muster::Present>& present, const std::vector<plan::HostOffer>& offers,
                     UserSignals& signals) {
    if (plan_.network_rules.empty()) return {};
    if (hosts_.size() == 1) return CheckRuleHere(plan_.network_rules[0]);
    const auto is_first = [&](const Muster::Present& one) { return one.machine == present[0].machine; };
    if (std::ranges::all_of(present, is_first)) return {};
    std::vector<NetworkSearch::Member> members;
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      members.push_back({plan_.hosts[i].name, present[i].machine, hosts_[i]});
    }
    NetworkSearch search(loop_, signals, std::move(members));
    const Result<net::Decision> decision = search.Run(plan_.network_rules);
    interrupted_ = search.interrupted();
    if (!decision) return decision.error();
    Result<plan::Plan> plan = request_.replan(offers, answers_, &*decision);
    if (!plan) return plan.error();
    plan_ = *std::move(plan);
    return {};
  }

  std::unique_ptr<Host> HostHere() {
    LocalOptions options;
    options.socket_dir = lifeline_.runtime_dir();
    options.memory_dir = lifeline_.memory_dir();
    options.serve = [this](store::Socket client) { Serve(std::move(client)); };
    options.environment = environment_;
    options.stdin_fd = STDIN_FILENO;
    options.open_files = open_files_;
    options.spared = [this] { return std::vector<pid_t>(shells_.begin(), shells_.end()); };
    return MakeLocalHost(loop_, std::move(options));
  }

  void Serve(store::Socket client) { store_->Serve(std::move(client)); }

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
    if (Status served = ServeRendezvous(); !served) return served.error();
    const std::vector<Tokens> tokens = TokensOf(generation, key, conductor.mpi_job(), *prepared);
    Result<std::filesystem::path> logs = record.LogsOf(generation);
    if (!logs) return logs.error();
    if (Status written = record.WriteRuntime(generation, plan_, tokens); !written) return written.error();

    World world;
    world.tokens = tokens;
    world.meeting_ports = MeetingPorts(*prepared);
    world.lone_worlds = request_.lone_worlds;
    world.outputs.resize(static_cast<std::size_t>(plan_.world_size()));
    for (const plan::Process& process : plan_.processes) {
      const int count = process.env.contains(dialect::kRankOutputs) ? process.rank_count : 1;
      for (int rank = process.rank; rank < process.rank + count; ++rank) {
        auto output =
            output::RankOutput::Open(*logs, rank, plan_.world_size(), PrefixOf(plan_.log_prefix), console_);
        if (!output) return output.error();
        world.outputs[static_cast<std::size_t>(rank)] = *std::move(output);
      }
    }
    if (generation == 0 && request_.header) Say(WithoutNewline(request_.header(plan_, run_dir_)));
    if (generation > 0 && muster_) Say(WorldText(generation));
    Result<Facts> facts = conductor.Run(std::move(world));
    if (!conductor.calls().empty()) Note(record.WriteCalls(generation, conductor.calls()));
    return facts;
  }

  // Horovod's, empty for every generation.
  Status ServeRendezvous() {
    if (!plan::NeedsRendezvous(plan_)) return {};
    rendezvous_.reset();
    auto server =
        store::HorovodServer::Listen(loop_, OwnAddress(), dialect::HorovodScopes(plan::TableOf(plan_)));
    if (!server) return server.error();
    rendezvous_ = *std::move(server);
    return {};
  }

  std::vector<Tokens> TokensOf(std::uint64_t generation, const std::string& key, const std::string& mpi_job,
                               const std::vector<Prepared>& prepared) const {
    Tokens shared{{plan::kTokenRunDir, run_dir_},
                  {plan::kTokenJobKey, key},
                  {plan::kTokenGeneration, std::to_string(generation)},
                  {plan::kTokenConsole, console_.terminal() ? "terminal" : "plain"}};
    if (plan_.pmi == pmi::Kind::kPmix) shared[plan::kTokenPmixNamespace] = mpi_job;
    if (rendezvous_ != nullptr) {
      shared[plan::kTokenRendezvousAddress] = OwnAddress();
      shared[plan::kTokenRendezvousPort] = std::to_string(rendezvous_->port());
    }
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

  // Where ranks may join each other. A process that has all ranks need not, and those of an mpirun have.
  std::vector<std::uint16_t> MeetingPorts(const std::vector<Prepared>& prepared) const {
    std::vector<std::uint16_t> ports;
    if (request_.lone_worlds == LoneWorldsPolicy::kAllow) return ports;
    if (plan_.processes.size() < 2 || plan_.launcher == "mpirun") return ports;
    for (const Prepared& host : prepared) {
      if (host.master_port >= 0) ports.push_back(static_cast<std::uint16_t>(host.master_port));
      for (const auto& task : host.task_ports) ports.push_back(static_cast<std::uint16_t>(task.second));
    }
    if (rendezvous_ != nullptr) ports.push_back(static_cast<std::uint16_t>(rendezvous_->port()));
    return ports;
  }

  // Of the host where rank 0 lives, as the other hosts reach it.
  std::string MasterAddress(std::size_t host) const {
    if (!plan_.network.empty()) return plan_.hosts[host].address;
    return remote_[host] != nullptr ? remote_[host]->Address() : OwnAddress();
  }

  // Of this host, as the other hosts reach it.
  std::string OwnAddress() const {
    for (const RemoteHost* other : remote_) {
      if (other == nullptr) continue;
      std::string own = AddressTowards(other->Address());
      if (!own.empty()) return own;
    }
    return "127.0.0.1";
  }

  // "dtrun: generation 1: 4 ranks on 2 hosts (node0 2, node2 2)"
  std::string WorldText(std::uint64_t generation) const {
    return fmt::format("dtrun: generation {}: {}", generation, plan::WorldText(plan_));
  }

  // The job was ended while its hosts were joining.
  Facts Ended(int signal) {
    return Interrupted(signal, generations_.empty() ? Facts() : generations_.back());
  }

  // The job was ended while no rank ran.
  Facts Interrupted(int signal, Facts facts) {
    facts.job = plan_.job;
    facts.logs = run_dir_;
    facts.first_failed = -1;
    facts.losses.clear();
    facts.regroup.clear();
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
  std::unique_ptr<store::HorovodServer> rendezvous_;  // where the plan needs it
  std::unique_ptr<Host> here_;
  std::optional<Muster> muster_;  // of a job on several hosts
  // By host of the plan.
  std::vector<Host*> hosts_;
  std::vector<RemoteHost*> remote_;  // null: this one
  std::vector<plan::HostOffer> offers_;
  std::vector<std::string> answers_;  // to the questions
  int interrupted_ = 0;               // while the hosts were asked or the network was looked for
  std::vector<Rung> rungs_;           // that were taken
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
