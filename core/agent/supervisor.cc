#include "core/agent/supervisor.h"

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>

#include "core/agent/leftovers.h"
#include "core/agent/process.h"
#include "core/agent/rank_process.h"
#include "core/agent/verdict.h"
#include "core/base/units.h"
#include "core/dialect/outer.h"

namespace dtrun::agent {
namespace {

using Clock = std::chrono::steady_clock;
using Descriptor = boost::asio::posix::stream_descriptor;

constexpr std::size_t kReadBytes = 64 * 1024;
constexpr std::chrono::milliseconds kIdleEvery{200};
constexpr std::chrono::seconds kLeftoverGrace{2};
// How long SIGKILL may take, for example while a driver frees a device's memory.
constexpr std::chrono::seconds kKillPatience{10};
constexpr std::size_t kTailLines = 10;

// What this process has of them, in one pass for all ranks.
std::vector<std::string> Inherited(const plan::Plan& plan) {
  std::vector<std::string> block;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!dialect::MatchesAny(text.substr(0, text.find('=')), plan.withheld)) block.emplace_back(text);
  }
  return block;
}

std::vector<std::string> EnvironmentOf(const plan::Process& process,
                                       const std::vector<std::string>& inherited) {
  std::vector<std::string> block;
  for (const std::string& text : inherited) {
    if (!process.env.contains(text.substr(0, text.find('=')))) block.push_back(text);
  }
  for (const auto& [name, value] : process.env) block.push_back(name + "=" + value);
  return block;
}

// SIGTERM sent to the agent itself counts as one relayed by the guard.
UniqueFd TakeSigterm() {
  sigset_t term;
  ::sigemptyset(&term);
  ::sigaddset(&term, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &term, nullptr);
  return UniqueFd(::signalfd(-1, &term, SFD_CLOEXEC | SFD_NONBLOCK));
}

bool EndsJob(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

class SupervisorImpl : public Supervisor {
 public:
  SupervisorImpl(boost::asio::io_context& loop, Lifeline& lifeline, Job job)
      : loop_(loop),
        lifeline_(lifeline),
        job_(std::move(job)),
        control_(loop, ::dup(lifeline.descriptor())),
        sigterm_(loop, TakeSigterm().Release()),
        deadline_(loop),
        idle_(loop),
        buffer_(kReadBytes) {}

  Result<Facts> Run() override {
    begin_ = Clock::now();
    if (Status started = Start(); !started) return started.error();
    for (auto& process : processes_) process->Watch();
    AwaitControl();
    AwaitSigterm();
    AwaitIdle();
    while (phase_ != Phase::kOver && loop_.run_one() > 0) {
    }
    return Finish();
  }

  void Joined(int rank) override {
    if (RankFacts* facts = Find(rank)) facts->joined = true;
  }
  void Left(int rank) override {
    if (RankFacts* facts = Find(rank)) facts->left = true;
  }
  void Reported(int rank, int peer, const std::string& what) override {
    if (RankFacts* facts = Find(rank)) facts->reports.push_back({peer, what});
  }

 private:
  // kStopping: asked to stop, grace running. kKilling: SIGKILL sent. kLeftovers: all ranks ended.
  enum class Phase { kRunning, kStopping, kKilling, kLeftovers, kOver };

  Status Start() {
    const std::vector<std::string> inherited = Inherited(job_.plan);
    for (std::size_t i = 0; i < job_.plan.processes.size(); ++i) {
      const plan::Process& planned = job_.plan.processes[i];
      SpawnRequest request{planned.rank,   planned.argv,    EnvironmentOf(planned, inherited),
                           planned.cwd,    planned.binding, planned.rank == 0 ? job_.stdin_fd : -1,
                           job_.open_files};
      Result<Child> child = Spawn(request);
      if (!child) {
        KillDescendants(kKillPatience);
        return child.error();
      }
      RankFacts facts;
      facts.rank = planned.rank;
      facts.host = job_.plan.hosts[static_cast<std::size_t>(planned.host)].name;
      facts.pid = child->pid;
      facts_.ranks.push_back(std::move(facts));
      processes_.push_back(
          std::make_unique<RankProcess>(loop_, *std::move(child), *job_.outputs[i], buffer_,
                                        [this, i](const Ending& ending) { OnEnd(i, ending); }));
    }
    return {};
  }

  RankFacts* Find(int rank) {
    for (std::size_t i = 0; i < facts_.ranks.size(); ++i) {
      const plan::Process& planned = job_.plan.processes[i];
      if (rank >= planned.rank && rank < planned.rank + planned.rank_count) return &facts_.ranks[i];
    }
    return nullptr;
  }

  void OnEnd(std::size_t index, const Ending& ending) {
    RankFacts& facts = facts_.ranks[index];
    facts.ending = ending;
    facts.ended_at = Clock::now() - begin_;
    if (ending.failed() && phase_ == Phase::kRunning) {
      facts_.first_failed = static_cast<int>(index);
      processes_[index]->Signal(SIGKILL);
      AskToStop(SIGTERM);
    }
    const bool all = std::none_of(processes_.begin(), processes_.end(), [](auto& p) { return p->living(); });
    if (all && phase_ < Phase::kLeftovers) EndLeftovers();
  }

  void SignalLiving(int signal) {
    for (auto& process : processes_) {
      if (process->living()) process->Signal(signal);
    }
  }

  void TellLiving(int signal) {
    for (auto& process : processes_) {
      if (process->living()) process->Tell(signal);
    }
  }

  // To all groups, also of ranks that have ended: what they left should end as well.
  void SignalToEnd(int signal) {
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      if (processes_[i]->living()) facts_.ranks[i].signal_sent = signal;
      processes_[i]->Signal(signal);
      if (signal != SIGKILL) processes_[i]->Signal(SIGCONT);  // a stopped process takes it only then
    }
  }

  void AskToStop(int signal) {
    phase_ = Phase::kStopping;
    SignalToEnd(signal);
    deadline_.expires_after(job_.plan.grace);
    deadline_.async_wait([this](const boost::system::error_code& error) {
      if (error || phase_ != Phase::kStopping) return;
      std::vector<int> late;
      for (std::size_t i = 0; i < processes_.size(); ++i) {
        if (processes_[i]->living()) late.push_back(facts_.ranks[i].rank);
      }
      job_.say(fmt::format("dtrun: {} did not stop within {}: killing", FoldRanks(late),
                           FormatDuration(job_.plan.grace)));
      KillNow();
    });
  }

  void KillNow() {
    if (phase_ == Phase::kLeftovers) return leftovers_->Hurry();
    if (phase_ == Phase::kOver) return;
    phase_ = Phase::kKilling;
    SignalToEnd(SIGKILL);
    SignalDescendants(SIGKILL);
    deadline_.expires_after(kKillPatience);
    deadline_.async_wait([this](const boost::system::error_code& error) {
      if (!error && phase_ == Phase::kKilling) EndLeftovers();  // some rank cannot be ended
    });
  }

  void EndLeftovers() {
    const bool at_once = phase_ == Phase::kKilling;
    phase_ = Phase::kLeftovers;
    deadline_.cancel();
    if (at_once) {
      phase_ = Phase::kOver;
      return;
    }
    std::map<pid_t, int> rank_of_group;
    for (const RankFacts& rank : facts_.ranks) rank_of_group[rank.pid] = rank.rank;
    leftovers_.emplace(loop_, std::move(rank_of_group));
    const auto grace = std::min<std::chrono::nanoseconds>(job_.plan.grace, kLeftoverGrace);
    for (const std::string& line : leftovers_->Stop(grace, [this] { phase_ = Phase::kOver; })) {
      job_.say("dtrun: " + line);
    }
  }

  void AwaitControl() {
    control_.async_wait(Descriptor::wait_read, [this](const boost::system::error_code& error) {
      if (error) return;
      for (int signal = lifeline_.Next(); signal != Lifeline::kNothing; signal = lifeline_.Next()) {
        if (signal == Lifeline::kGuardGone) {
          facts_.guard_died = true;
          return KillNow();
        }
        OnSignal(signal);
      }
      AwaitControl();
    });
  }

  void AwaitSigterm() {
    sigterm_.async_wait(Descriptor::wait_read, [this](const boost::system::error_code& error) {
      if (error) return;
      signalfd_siginfo info;
      if (::read(sigterm_.native_handle(), &info, sizeof info) == sizeof info) OnSignal(SIGTERM);
      AwaitSigterm();
    });
  }

  void OnSignal(int signal) {
    if (signal == SIGTSTP) {
      SignalLiving(SIGSTOP);  // TSTP would pass by ranks that the kernel takes for orphans
      return lifeline_.Stopped();
    }
    if (signal == SIGCONT) return SignalLiving(SIGCONT);
    if (!EndsJob(signal)) return TellLiving(signal);
    const bool again = std::exchange(user_wants_end_, true);
    if (phase_ == Phase::kLeftovers || (again && (signal == SIGINT || signal == SIGQUIT))) return KillNow();
    if (phase_ == Phase::kRunning) {
      facts_.interrupt = signal;
      job_.say(fmt::format("dtrun: {}: asked all ranks to stop, they have {}{}", SignalName(signal),
                           FormatDuration(job_.plan.grace),
                           signal == SIGINT ? "; Ctrl-C again kills them at once" : ""));
      return AskToStop(signal);
    }
    if (phase_ == Phase::kStopping) SignalToEnd(signal);
  }

  void AwaitIdle() {
    idle_.expires_after(kIdleEvery);
    idle_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      for (auto& output : job_.outputs) output->Idle();
      AwaitIdle();
    });
  }

  Facts Finish() {
    idle_.cancel();
    for (const Process& process : KillDescendants(kKillPatience)) {
      job_.say(fmt::format("dtrun: process {} ({}) does not end, even by SIGKILL (state {})", process.pid,
                           process.name, process.state));
    }
    for (auto& process : processes_) {
      process->FinishOutput();
      process->Reap();
    }
    for (std::size_t i = 0; i < processes_.size(); ++i)
      facts_.ranks[i].tail = job_.outputs[i]->Tail(kTailLines);
    facts_.job = job_.plan.job;
    facts_.run_dir = job_.run_dir;
    facts_.duration = Clock::now() - begin_;
    return facts_;
  }

  boost::asio::io_context& loop_;
  Lifeline& lifeline_;
  Job job_;
  Descriptor control_, sigterm_;
  boost::asio::steady_timer deadline_, idle_;
  std::vector<char> buffer_;
  std::vector<std::unique_ptr<RankProcess>> processes_;
  std::optional<Leftovers> leftovers_;
  Facts facts_;
  Phase phase_ = Phase::kRunning;
  bool user_wants_end_ = false;
  Clock::time_point begin_;
};

}  // namespace

std::unique_ptr<Supervisor> Supervisor::Create(boost::asio::io_context& loop, Lifeline& lifeline, Job job) {
  return std::make_unique<SupervisorImpl>(loop, lifeline, std::move(job));
}

}  // namespace dtrun::agent
