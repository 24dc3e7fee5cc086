// Runs a plan on its hosts, one generation after another: prepares all hosts, starts all ranks, ends all at
// the first failure, and returns the facts.
//
// Lives on the root's loop thread. It knows hosts only through commands and events, so a host may be this
// process or a remote agent. Why: docs/decisions/010-root-and-agents.md.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/asio.h"
#include "core/job/inspection.h"
#include "core/job/stall_watch.h"
#include "core/output/output.h"
#include "core/pmi/exchange.h"
#include "core/process/user_signals.h"
#include "core/protocol/host.h"

namespace dtrun::job {

// One generation, ready to start.
struct World {
  std::vector<std::map<std::string, std::string>> tokens;    // by host
  std::vector<std::unique_ptr<output::RankOutput>> outputs;  // by rank; null: in the output of its process
  std::vector<std::uint16_t> rendezvous_ports = {};  // where ranks may join; empty: do not watch for it
  verdict::IsolationPolicy isolated_ranks = verdict::IsolationPolicy::kWarn;  // if they do not join
  StallPolicy stall = {};
  // Time that a Python program needs to exit after its last line, on a busy machine.
  std::chrono::nanoseconds leaves_within = std::chrono::milliseconds(500);
  // Time allowed between dtrun_finalize and exit, including what its libraries free.
  std::chrono::nanoseconds ends_within = std::chrono::seconds(5);
  // If a rank fails before any has joined another: how long to wait for ranks that fail the same way, by an
  // import or a missing file.
  std::chrono::nanoseconds fails_alike_within = std::chrono::milliseconds(200);
  // Stores stacks for the user and returns the location; empty: they could not be stored.
  std::function<std::string(const std::string& why, const std::vector<verdict::RankDoing>& ranks)>
      keep_stacks = {};
};

class Controller {
 public:
  using Say = std::function<void(const std::string& line)>;

  // All references must outlive it. While it lives, it handles the signals and the hosts' events. `plan` has
  // unresolved tokens, and one host per element of `hosts`.
  Controller(boost::asio::io_context& loop, process::UserSignals& signals, const plan::Plan& plan,
             const std::vector<protocol::Host*>& hosts, Say say);
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // Each of these functions runs the loop until it is done.

  // Prepares every host for this generation and returns the results. Fails if one of them could not, or if
  // the job was ended meanwhile (see interrupted); the other hosts have then released their resources.
  Result<std::vector<protocol::Prepared>> Prepare(std::uint64_t generation, const std::string& job_key);
  // Starts every process and returns when all have ended. Fails if one could not be started; those started
  // before are then ended. REQUIRES: all hosts are prepared.
  Result<verdict::Facts> Run(World world);
  // `may_leave` is called when dtrun on another host gets a signal that ends the job. True: only that host
  // leaves, and the generation ends. False: the job ends.
  void OnAsked(std::function<bool(std::size_t host, int signal)> may_leave) {
    may_leave_ = std::move(may_leave);
  }
  // Whether a rank has ended by itself; the job will then end, too.
  bool IsEnding() const;
  // Ends this generation as soon as it runs, because the next one uses other hosts. `why` is for the user.
  void Regroup(const std::string& why);
  // False if the job was ended meanwhile.
  bool Wait(std::chrono::nanoseconds time);

  // The signal that ended the job, Lifeline::kGuardGone, UserSignals::kTimeLimit, or 0.
  int interrupted() const { return interrupted_; }
  // The last calls of the last generation's ranks; empty if none failed.
  const std::string& calls() const { return calls_; }
  // The MPI job name of the latest prepared generation.
  const std::string& mpi_job() const { return mpi_job_; }

  // Events of the store, while Run runs. Unknown ranks are ignored.
  void Joined(int rank);
  void Left(int rank);
  void Reported(int rank, verdict::PeerReport report);

 private:
  using Clock = std::chrono::steady_clock;

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

  // A rank that waits for a file lock.
  struct LockedOut {
    int holder = 0;
    Clock::time_point seen{};
  };

  void On(std::size_t host, const protocol::Event& event);
  void On(std::size_t host, const protocol::Prepared& prepared);
  void On(std::size_t host, const protocol::Refused& refused);
  void On(std::size_t host, const protocol::Started& started);
  void On(std::size_t host, const protocol::Output& output);
  void On(std::size_t host, const protocol::Ended& ended);
  void On(std::size_t host, const protocol::Said& said);
  void On(std::size_t host, const protocol::Gone& gone);
  void On(std::size_t host, const protocol::Asked& asked);
  void On(std::size_t host, const protocol::Offered& offered);
  void On(std::size_t host, const protocol::MpiStarted& started);
  void On(std::size_t host, const protocol::MpiFinished& finished);
  void On(std::size_t host, const protocol::MpiAborted& aborted);
  void On(std::size_t host, const protocol::MpiServerLost& lost);
  void On(std::size_t host, const protocol::Lost& lost);
  void On(std::size_t host, const protocol::Called& called);
  void On(std::size_t host, const protocol::Differed& differed);
  void On(std::size_t host, const protocol::Looked& looked);
  void On(std::size_t host, const protocol::RankEnded& ended);
  void On(std::size_t host, const protocol::Inspected& inspected);
  // Answers that arrive after the network search.
  void On(std::size_t, const protocol::Surveyed&) {}
  void On(std::size_t, const protocol::ConnectivityChecked&) {}
  void On(std::size_t, const protocol::Measured&) {}

  void OnSignal(int signal);
  void OnTimeLimit();
  void Tell(const protocol::Command& command);  // to every reachable host
  void StopAll(int signal);
  void KillAll();
  void AwaitIdle();
  bool Any(State state) const;
  bool Busy() const { return Any(State::kBusy) || Any(State::kRunning); }
  int IndexOf(int rank) const;  // index of its process; -1: none
  // For a rank that exited with 0 although MPI libraries of others wait for it, or will.
  process::EarlyExit EarlyExitOf(const verdict::RankFacts& rank) const;
  void FailedFirst(std::size_t index);
  // Ends the others once the ranks that decide the job's success have succeeded.
  void EndWhenAccomplished();
  // Enough for the end of a traceback and the lines that libraries print below it.
  static constexpr std::size_t kEvidenceLines = 60;
  // Number of ranks to take native stacks of before they are ended.
  static constexpr std::size_t kMostClosely = 8;
  // Stores the last output of living ranks, before they are told to end.
  void KeepLastLines();
  std::vector<std::string> LastLines(const verdict::RankFacts& rank) const;
  // Remembers which ranks wait for file locks: the end of a rank frees its locks, so this must be known
  // before. `ending`: the holder may already have freed them because it is about to end.
  void KeepLocks(const std::vector<verdict::RankDoing>& ranks, bool ending);
  // A rank that prints a traceback may be about to end.
  void LookForLocks(const protocol::Output& output);
  // Inspects the ranks on all hosts. `closely`: see Inspect.
  void Look(Inspection::Done done, const std::vector<int>& closely = {});
  // Inspects, then stops all. `again`: a rank that seems stuck must be found so a second time.
  void LookAndStop(int signal, bool again, const std::vector<int>& closely = {});
  // Stops all after `pause`, unless they end before. Used in two cases. A rank has printed something and
  // ended before any has joined another: the others may be about to fail the same way. A connection was lost:
  // the rank that closed it may be about to end (awaits_who_leaves_); this wait is over once a rank has ended
  // for another reason than a lost connection. If ranks have reported the loss to dtrun, it waits only for a
  // rank that they named.
  void StopAfter(std::chrono::nanoseconds pause);
  // Whether `rank` has reported the loss of a rank that has not ended; `left`: only one that has left the
  // job.
  bool MissesOneThatLives(const verdict::RankFacts& rank, bool left = false) const;
  // Whether its end identifies the rank that left, while that is awaited.
  bool TellsWhoLeft(const verdict::RankFacts& ended) const;
  // Calls keep_stacks and returns its result.
  std::string KeepStacks(const std::string& why, const std::vector<verdict::RankDoing>& ranks);
  void LookAgainSoon(int signal, const std::vector<int>& closely);
  // Kills those that have not ended in time.
  void KillLate();
  void OnStall(const Stall& stall);
  // Whether the known cause is less certain than the end of a rank that may be reported late.
  bool MayBeMistaken() const;
  // Call when the ranks have ended, or should have joined each other long ago.
  void JudgeJoining();
  verdict::Facts Finish();

  boost::asio::io_context& loop_;
  process::UserSignals& signals_;
  const plan::Plan& plan_;
  Say say_;
  std::function<bool(std::size_t host, int signal)> may_leave_;
  boost::asio::steady_timer deadline_, idle_;
  Inspection inspection_;
  std::optional<StallWatch> stall_watch_;
  std::vector<Member> members_;
  Phase phase_ = Phase::kIdle;
  std::uint64_t generation_ = 0;
  World world_;
  verdict::Facts facts_;
  std::vector<std::string> frameworks_;  // loaded by ranks of this generation
  bool have_joined_ = false;             // a rank has joined another
  bool alone_ = false;                   // a rank was seen training in a world of its own
  bool late_ = false;                    // a rank has not been seen joining for long
  std::optional<Error> refusal_;
  std::string calls_;
  const std::string run_id_;  // unique among runs
  std::string mpi_job_;
  pmi::Exchange exchange_;
  bool differed_ = false;  // calls of this generation differ; all hosts know it
  std::string regroup_;    // reason for Regroup once the ranks run
  bool awaits_who_leaves_ = false;
  std::map<int, LockedOut> locked_out_;    // rank -> lock that it waits for
  std::chrono::nanoseconds look_apart_{};  // interval of lock checks, growing
  Clock::time_point look_next_{};
  int interrupted_ = 0;
  bool user_wants_end_ = false;
  Clock::time_point begin_;
  const std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);  // for queued timer handlers
};

}  // namespace dtrun::job
