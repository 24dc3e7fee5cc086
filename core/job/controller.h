// Runs a plan on its hosts, one generation after another: prepares all hosts, starts all ranks, ends all at
// the first failure, and records what happens.
//
// Lives on the root's loop thread. It knows hosts only through commands and events, so a host may be this
// process or a remote agent. Why: docs/decisions/010-root-and-agents.md. What happens beside the life of
// ranks is found by observers (core/observe/observer.h).
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/timer.h"
#include "core/control/server.h"
#include "core/job/host_clocks.h"
#include "core/job/inspection.h"
#include "core/job/rank_files.h"
#include "core/observe/observer.h"
#include "core/output/output.h"
#include "core/process/user_signals.h"
#include "core/protocol/host.h"
#include "core/verdict/event_log.h"

namespace dtrun::job {

namespace fact = verdict::fact;

// One generation, ready to start.
struct World {
  fact::Began began = {};                                    // without the processes
  std::vector<std::map<std::string, std::string>> tokens;    // by host
  std::vector<std::unique_ptr<output::RankOutput>> outputs;  // by rank; null: in the output of its process
  std::vector<std::uint16_t> rendezvous_ports = {};  // where ranks may join; empty: do not watch for it
  observe::IsolationPolicy isolated_ranks = observe::IsolationPolicy::kWarn;  // if they do not join
  observe::StallPolicy stall = {};
  bool watches_waits = false;  // to name a straggler at the end
  // Time that a Python program needs to exit after its last line, on a busy machine.
  std::chrono::nanoseconds leaves_within = std::chrono::milliseconds(500);
  // Time allowed between dtrun_finalize and exit, including what its libraries free.
  std::chrono::nanoseconds ends_within = std::chrono::seconds(5);
  // If a rank fails before any has joined another: how long to wait for ranks that fail the same way, by an
  // import or a missing file.
  std::chrono::nanoseconds fails_alike_within = std::chrono::milliseconds(200);
  // If the ranks' calls differ: how long each that waits in one may take to be told of it and to fail by
  // itself.
  std::chrono::nanoseconds told_within = std::chrono::milliseconds(1200);
  // An mpirun that lost a rank ends the others itself, Open MPI's with SIGKILL after a second, and may crash
  // if signals reach it meanwhile.
  std::chrono::nanoseconds mpirun_ends_within = std::chrono::seconds(3);
  KeepTrace keep_trace = {};
  // Stores stacks for the user and returns the location; empty: they could not be stored.
  std::function<std::string(const std::string& why, const std::vector<verdict::RankDoing>& ranks)>
      keep_stacks = {};
};

class Controller {
 public:
  using Say = std::function<void(const std::string& line)>;

  // All references must outlive it. While it lives, it handles the signals and the hosts' events. `plan` has
  // unresolved tokens, and one host per element of `hosts`. `log` gets all that happens.
  Controller(asio::io_context& loop, process::UserSignals& signals, const plan::Plan& plan,
             const std::vector<protocol::Host*>& hosts, Say say, verdict::EventLog& log);
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // Each of these functions runs the loop until it is done.

  // Prepares every host for this generation and returns the results. Fails if one of them could not, or if
  // the job was ended meanwhile (see interrupted); the other hosts have then released their resources.
  Result<std::vector<protocol::Prepared>> Prepare(std::uint64_t generation, const std::string& job_key);
  // Starts every process and returns when all have ended. Fails if one could not be started; those started
  // before are then ended. REQUIRES: all hosts are prepared.
  Status Run(World world);
  // Handles the signals and the hosts' events again, after another object did.
  void TakeOver();
  // `may_leave` is called when dtrun on another host gets a signal that ends the job. True: only that host
  // leaves, and the generation ends. False: the job ends.
  void OnAsked(std::function<bool(std::size_t host, int signal)> may_leave) {
    may_leave_ = std::move(may_leave);
  }
  // Whether a rank has ended by itself; the job will then end, too.
  bool IsEnding() const;
  // Ends this generation as soon as it runs, because the next one uses other hosts. `why` is for the user.
  void Regroup(const std::string& why);
  // Fills what a user may see of the generation; with places, looks at the ranks first. `reply` is called
  // from here or from the loop, at the latest when the generation ends.
  void Answer(const control::Question& question, control::Answer answer, control::Server::Reply reply);
  // From now on, ranks that are asked to end have this long instead of job.grace.
  void SetGrace(std::chrono::nanoseconds grace);
  // False if the job was ended meanwhile.
  bool Wait(std::chrono::nanoseconds time);

  // The signal that ended the job, Lifeline::kGuardGone, UserSignals::kTimeLimit, or 0.
  int interrupted() const { return interrupted_; }
  // The last calls of the last generation's ranks; empty if none failed.
  const std::string& calls() const { return calls_; }
  // The MPI job name of the latest prepared generation.
  const std::string& mpi_job() const { return mpi_job_; }

 private:
  // kLooking: about to stop, once the ranks have been inspected. kStopping: told to stop, within the grace
  // period. kKilling: told to kill.
  enum class Phase { kIdle, kPreparing, kRunning, kLooking, kStopping, kKilling };
  // kBusy: a command is in progress. kLost is permanent.
  enum class State { kIdle, kBusy, kPrepared, kRunning, kLost };
  struct Member {
    protocol::Host* host = nullptr;
    std::string name;
    State state = State::kIdle;
    protocol::Prepared prepared;
  };

  void On(std::size_t host, const protocol::Event& event);
  void OnRefused(Member& member, const Error& error);
  void OnOutput(const protocol::Output& output);
  // Measures how far the hosts' clocks are apart, for their ranks' traces.
  void WatchClocks();
  void OnEnded(const protocol::Ended& ended);
  void OnAsked(std::size_t host, int signal);
  void OnGone(Member& member, const protocol::Gone& gone);
  void OnLost(Member& member, const protocol::Lost& lost);
  void OnSignal(int signal, const std::string& host = {});  // empty: on this one
  void OnTimeLimit();

  observe::View Now() const { return {plan_, log_.facts(), phase_ == Phase::kRunning}; }
  // `host`: of the event that led to it; none: -1.
  void Act(const observe::Finding& finding, int host = -1);
  void Record(fact::Any fact, std::string from = "root") { log_.Add(std::move(fact), std::move(from)); }
  void Note(fact::Noted::What what, const std::string& text = {}) { Record(fact::Noted{what, text}); }

  void FailedFirst(const verdict::RankFacts& first);
  // Whether `rank` has reported the loss of a rank that has not ended; `left`: only one that has left the
  // job.
  bool MissesOneThatLives(const verdict::RankFacts& rank, bool left = false) const;
  // Whether its end identifies the rank that left, while that is awaited.
  bool TellsWhoLeft(const verdict::RankFacts& ended) const;
  // Ends the others once the ranks that decide the job's success have succeeded.
  void EndWhenAccomplished();
  // Its last lines: enough for the end of a traceback and the lines that libraries print below it.
  std::vector<std::string> LastLines(const verdict::RankFacts& rank) const;

  // Inspects the ranks on all hosts. `closely`: see Inspect.
  void Look(Inspection::Done done, const std::vector<int>& closely = {});
  // The same, but leaves a user's look its time; not answered once the ranks are to end.
  void LookInTurn(Inspection::Done done, std::vector<int> closely = {});
  // `done` after the observers.
  Inspection::Done Observed(Inspection::Done done);
  Inspection::Hosts RunningHosts() const;
  // Inspects, then stops all. `looks`: how many more may follow. A rank that seems stuck must be found so a
  // second time; one in a call of a plugin that is overdue soon may return.
  void LookAndStop(int signal, int looks, const std::vector<int>& closely = {});
  // Runs `then` after `pause`, unless the phase has changed by then.
  void After(std::chrono::nanoseconds pause, std::function<void()> then);
  // Stops all after `pause`, unless they end before. Used in two cases. A rank has printed something and
  // ended before any has joined another: the others may be about to fail the same way. A connection was lost:
  // the rank that closed it may be about to end (awaits_who_leaves_); this wait is over once a rank has ended
  // for another reason than a lost connection. If ranks have reported the loss to dtrun, it waits only for a
  // rank that they named.
  void StopAfter(std::chrono::nanoseconds pause);
  void StopAll(int signal);
  void KillAll();
  // Kills those that have not ended in time.
  void KillLate();
  // Calls keep_stacks and returns its result.
  std::string KeepStacks(const std::string& why, const std::vector<verdict::RankDoing>& ranks);

  void Tell(const protocol::Command& command, int but = -1);  // to every reachable host
  void AwaitIdle();
  bool Busy() const;
  bool AllEnded() const;

  asio::io_context& loop_;
  process::UserSignals& signals_;
  const plan::Plan& plan_;
  Say say_;
  verdict::EventLog& log_;
  const verdict::Facts& facts_ = log_.facts();  // of this generation
  std::function<bool(std::size_t host, int signal)> may_leave_;
  Timer deadline_, idle_;
  Inspection inspection_;
  std::optional<HostClocks> clocks_;  // while ranks of several hosts are traced
  std::vector<std::unique_ptr<observe::Observer>> observers_;
  observe::StallObserver* stalls_ = nullptr;  // one of these
  std::vector<Member> members_;
  Phase phase_ = Phase::kIdle;
  std::uint64_t generation_ = 0;
  World world_;
  std::optional<Error> refusal_;
  std::string calls_;
  std::vector<protocol::RankLooks> looks_;  // of all hosts, as they end
  const std::string run_id_;                // unique among runs
  std::string mpi_job_;
  std::string regroup_;  // reason for Regroup once the ranks run
  bool awaits_who_leaves_ = false, awaits_mpirun_ = false;
  int interrupted_ = 0;
  bool user_wants_end_ = false;
  std::chrono::nanoseconds grace_ = plan_.grace;
};

}  // namespace dtrun::job
