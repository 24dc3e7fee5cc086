// Carries out a plan over its hosts, one generation after another: prepares all, starts all, ends
// all at the first failure, and hands over what it saw.
//
// Lives on the root's loop thread. Knows hosts only as commands and events, so a host may be
// this process or an agent elsewhere. Why it is built so: docs/decisions/010-root-and-agents.md.
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
  std::vector<std::unique_ptr<output::RankOutput>> outputs;  // by rank; null: its process prints for it
  std::vector<std::uint16_t> rendezvous_ports = {};  // where ranks may join each other; empty: nobody asks
  verdict::IsolationPolicy isolated_ranks = verdict::IsolationPolicy::kWarn;  // when they do not
  StallPolicy stall = {};
  // What a Python program needs to end after its last line, on a busy machine.
  std::chrono::nanoseconds leaves_within = std::chrono::milliseconds(500);
  // What one that has left the job (dtrun_finalize) may need for that, with all that its libraries free.
  std::chrono::nanoseconds ends_within = std::chrono::seconds(5);
  // What the ranks may differ by in failing alike, by an import or a missing file, before any has joined
  // another.
  std::chrono::nanoseconds fails_alike_within = std::chrono::milliseconds(200);
  // Keeps stacks where the user finds them, and says where that is; empty: they could not be kept.
  std::function<std::string(const std::string& why, const std::vector<verdict::RankDoing>& ranks)>
      keep_stacks = {};
};

class Controller {
 public:
  using Say = std::function<void(const std::string& line)>;

  // All of these outlive it; it handles the signals, and the events of the hosts, while it lives. `plan` has
  // its tokens unresolved, and one host per element of `hosts`.
  Controller(boost::asio::io_context& loop, process::UserSignals& signals, const plan::Plan& plan,
             const std::vector<protocol::Host*>& hosts, Say say);
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // Each of these runs the loop until it is over.

  // What every host took for this generation. An error when one of them could not, or when
  // the job was ended meanwhile (see interrupted); the others have let go again.
  Result<std::vector<protocol::Prepared>> Prepare(std::uint64_t generation, const std::string& job_key);
  // Starts every process and returns when none is left. An error means that one could not be
  // started; those started before it are gone again. REQUIRES: all hosts are prepared.
  Result<verdict::Facts> Run(World world);
  // A signal that ends the job has come to dtrun on another host: true when only that host leaves. Then the
  // generation ends; else the job does.
  void OnAsked(std::function<bool(std::size_t host, int signal)> may_leave) {
    may_leave_ = std::move(may_leave);
  }
  // Whether a rank has ended by itself: then the job is about to, one way or the other.
  bool IsEnding() const;
  // Ends this generation as soon as it runs, because the next one will be on other hosts. `why` is for the
  // user.
  void Regroup(const std::string& why);
  // False when the job was ended meanwhile.
  bool Wait(std::chrono::nanoseconds time);

  // The signal that ended the job, Lifeline::kGuardGone, UserSignals::kTimeLimit, or 0.
  int interrupted() const { return interrupted_; }
  // What the ranks of the last generation called last; empty when none failed.
  const std::string& calls() const { return calls_; }
  // What MPI libraries call the generation that was prepared last.
  const std::string& mpi_job() const { return mpi_job_; }

  // From the store, while Run runs. Unknown ranks are ignored.
  void Joined(int rank);
  void Left(int rank);
  void Reported(int rank, verdict::PeerReport report);

 private:
  using Clock = std::chrono::steady_clock;

  // kLooking: about to stop, when it is known what the ranks do. kStopping: asked to stop, grace running.
  // kKilling: told to kill.
  enum class Phase { kIdle, kPreparing, kRunning, kLooking, kStopping, kKilling };
  // kBusy: a command is under way. kLost is for ever.
  enum class State { kIdle, kBusy, kPrepared, kRunning, kLost };
  struct Member {
    protocol::Host* host = nullptr;
    std::string name;
    State state = State::kIdle;
    protocol::Prepared prepared;
  };

  // It waits for the lock of a file.
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
  // Answers that came too late for the search of the network.
  void On(std::size_t, const protocol::Surveyed&) {}
  void On(std::size_t, const protocol::ConnectivityChecked&) {}
  void On(std::size_t, const protocol::Measured&) {}

  void OnSignal(int signal);
  void OnTimeLimit();
  void Tell(const protocol::Command& command);  // to every host that can be told
  void StopAll(int signal);
  void KillAll();
  void AwaitIdle();
  bool Any(State state) const;
  bool Busy() const { return Any(State::kBusy) || Any(State::kRunning); }
  int IndexOf(int rank) const;  // of its process; -1: none
  // A rank that has exited with 0, though MPI libraries of others wait for it, or will.
  process::EarlyExit EarlyExitOf(const verdict::RankFacts& rank) const;
  void FailedFirst(std::size_t index);
  // Ends the others once the ranks whose success is the job's have had it.
  void EndWhenAccomplished();
  // Enough lines for the end of a traceback with what libraries print below it.
  static constexpr std::size_t kEvidenceLines = 60;
  // Of this many ranks the native stacks are wanted before they are ended.
  static constexpr std::size_t kMostClosely = 8;
  // What the living ranks have printed, before anybody asks them to end.
  void KeepLastLines();
  std::vector<std::string> LastLines(const verdict::RankFacts& rank) const;
  // A rank's end frees the locks that it holds: who waited for them is known only from before. `ending`: one
  // may have freed its locks already, because it is about to end.
  void KeepLocks(const std::vector<verdict::RankDoing>& ranks, bool ending);
  // A rank that prints a traceback may be about to end.
  void LookForLocks(const protocol::Output& output);
  // Asks the hosts what their ranks do. `closely`: see Inspect.
  void Look(Inspection::Done done, const std::vector<int>& closely = {});
  // Then stops all. `again`: when a rank seems to stand still it has to be found so once more.
  void LookAndStop(int signal, bool again, const std::vector<int>& closely = {});
  // Stops all, unless they end before. After the end of a rank that has printed something, before any has
  // joined another: the others may be about to fail alike. After a lost connection: who closed it may be
  // about to end (awaits_who_leaves_); until a rank has ended for another reason than a lost connection.
  // Where ranks have reported the loss to dtrun, only a rank that they named is awaited.
  void StopAfter(std::chrono::nanoseconds pause);
  // Whether it has reported the loss of a rank that has not ended; `left`: of one that has left the job.
  bool MissesOneThatLives(const verdict::RankFacts& rank, bool left = false) const;
  // Whether its end says who left, while that is awaited.
  bool TellsWhoLeft(const verdict::RankFacts& ended) const;
  // What keep_stacks says.
  std::string KeepStacks(const std::string& why, const std::vector<verdict::RankDoing>& ranks);
  void LookAgainSoon(int signal, const std::vector<int>& closely);
  // Ends those that have not ended in time.
  void KillLate();
  void OnStall(const Stall& stall);
  // That what ended the job is known less well than the end of a rank which is heard of late.
  bool MayBeMistaken() const;
  // The ranks have ended, or should have joined each other long ago.
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
  std::vector<std::string> frameworks_;  // that ranks of this generation have loaded
  bool have_joined_ = false;             // some rank has joined another
  bool alone_ = false;                   // some rank was seen to work in a world of its own
  bool late_ = false;                    // some rank has not been seen to join for long
  std::optional<Error> refusal_;
  std::string calls_;
  const std::string run_id_;  // unlike that of any other run
  std::string mpi_job_;
  pmi::Exchange exchange_;
  bool differed_ = false;  // the calls of this generation, as all hosts have been told
  std::string regroup_;    // as soon as the ranks run
  bool awaits_who_leaves_ = false;
  std::map<int, LockedOut> locked_out_;    // ranks
  std::chrono::nanoseconds look_apart_{};  // for such locks, longer each time
  Clock::time_point look_next_{};
  int interrupted_ = 0;
  bool user_wants_end_ = false;
  Clock::time_point begin_;
  const std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);  // for timers that are due already
};

}  // namespace dtrun::job
