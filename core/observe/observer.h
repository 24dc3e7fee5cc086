// Observers: each turns events of the hosts into findings about a running generation.
//
// The controller (core/job/controller.h) owns them, one set per generation, passes every event to every
// observer, and acts on what they find. Loop thread. core/README.md says where a new event goes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/asio.h"
#include "core/observe/stall_watch.h"
#include "core/plan/plan.h"
#include "core/protocol/host.h"
#include "core/verdict/records.h"

namespace dtrun::observe {

namespace fact = verdict::fact;

struct View {
  const plan::Plan& plan;
  const verdict::Facts& facts;  // of the generation, as recorded
  bool running = false;         // its end has not begun
};

// What the controller does, in this order.
struct Finding {
  enum class Then : std::uint8_t {
    kGoOn,
    kLook,         // where the ranks are; each observer gets the answer (OnLook)
    kStop,         // ends the generation
    kLookAndStop,  // the same, after a look that the verdict uses
    kFailed,       // `rank` failed first
  };
  std::vector<fact::Any> facts = {};
  std::string line = {};  // for the user; may be empty
  std::optional<protocol::Command> tell = {};
  bool tell_sender = true;  // also to the host of the event, beside all others
  Then then = Then::kGoOn;
  int rank = -1;
};

class Observer {
 public:
  virtual ~Observer() = default;

  virtual Finding On(const View& view, std::size_t host, const protocol::Event& event) = 0;
  // `ranks`: where they are now.
  virtual Finding OnLook(const View& view, const std::vector<verdict::RankDoing>& ranks) {
    (void)view, (void)ranks;
    return {};
  }
  // The ranks are about to be ended.
  virtual void Ends() {}
  // All ranks have ended by themselves.
  virtual Finding AllEnded(const View& view) {
    (void)view;
    return {};
  }
};

// Whether the ranks' calls match: passes calls on between hosts.
std::unique_ptr<Observer> WatchCalls();
// Whether ranks join each other, and with the variables that dtrun set.
std::unique_ptr<Observer> WatchJoining(IsolationPolicy policy);
// Which ranks wait for file locks of others, and when ranks print errors. The end of a rank frees its locks,
// so a traceback, which may precede the end, causes a look.
std::unique_ptr<Observer> WatchLocks();
// MPI libraries: MPI_Init to MPI_Finalize, MPI_Abort, ranks below an mpirun. `answer`: to the host of ranks
// that exchange data.
std::unique_ptr<Observer> WatchMpi(std::function<void(int host, const protocol::Exchanged&)> answer);

// For a rank that exited with 0 although MPI libraries of others wait for it, or will.
process::EarlyExit EarlyExitOf(const verdict::Facts& facts, const verdict::RankFacts& rank);

// Names the plugin that a rank ended in, by a fault or by _exit; nullopt: in none.
std::optional<fact::Reported> EndedInPlugin(const protocol::Ended& ended);

// What a watch for stalls needs of its generation.
struct StallSite {
  std::function<void(std::function<void(const protocol::Inspected&)> done, std::vector<int> closely)> look;
  // Stores stacks for the user; returns the file, or an empty text.
  std::function<std::string(const std::string& why, const std::vector<verdict::RankDoing>& ranks)>
      keep_stacks;
  std::function<void(Finding)> found;
};
class StallObserver : public Observer {
 public:
  // Time since the last output.
  virtual std::chrono::nanoseconds Quiet() const = 0;
  // A look for the user has stopped these ranks until now.
  virtual void Resumed(const std::vector<int>& ranks, const protocol::Inspected& seen) = 0;
};
std::unique_ptr<StallObserver> WatchStalls(boost::asio::io_context& loop, StallPolicy policy, StallSite site);

}  // namespace dtrun::observe
