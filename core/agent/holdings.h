// What a host holds for its ranks during one generation: ports, torch's store where they are told that their
// agent serves it, the store's socket, the flight recorder, and pipes to ranks that another program starts.
//
// Owned by the local host; loop thread. All is let go with it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/agent/host.h"
#include "core/agent/local_host.h"
#include "core/agent/output_pipe.h"
#include "core/agent/port.h"
#include "core/comm/recorder/excerpt.h"
#include "core/comm/recorder/mapping.h"
#include "core/store/door.h"
#include "core/store/torch_server.h"

namespace dtrun::agent {

class Holdings {
 public:
  // From ranks that another program starts.
  struct Events {
    std::function<void(int rank, output::Stream stream, std::string_view bytes)> printed;
    std::function<void(RankEnded)> ended;
    std::function<void(const std::string& line)> said;  // for the user
  };

  // What is held stands in `prepared`. Checks first that the files are here which the root has seen on its
  // own host. `options` and `buffer`, which is for reads and may be shared, outlive it.
  static Result<std::unique_ptr<Holdings>> Take(boost::asio::io_context& loop, const LocalOptions& options,
                                                const Prepare& prepare, std::span<char> buffer,
                                                const Events& events, Prepared* prepared);
  ~Holdings();
  Holdings(const Holdings&) = delete;
  Holdings& operator=(const Holdings&) = delete;

  const comm::Book& book() const { return recorder_->book(); }
  // What another host tells of its ranks' calls, for the ranks and the audit of this one.
  void Enter(const std::vector<comm::Excerpt>& excerpts) const;
  // The port that is held for rank 0 here, where nobody of dtrun's listens; 0: none.
  int held_port() const { return port_ ? port_->number() : 0; }
  // Reads what comes through the pipes.
  void WatchPipes();
  // Takes what is in them, and closes them.
  void FinishPipes();
  // Lets others have the port of rank 0, and new clients of the store come no more.
  void Close();

 private:
  Holdings() = default;
  Status HoldPorts(boost::asio::io_context& loop, const Prepare& prepare, const Events& events,
                   Prepared* prepared);
  Status OpenPipes(boost::asio::io_context& loop, const LocalOptions& options, const plan::Process& process,
                   std::span<char> buffer, const Events& events);

  std::optional<HeldPort> port_;  // while nobody listens there
  std::unique_ptr<store::TorchServer> torch_store_;
  std::vector<HeldPort> task_ports_;
  std::optional<comm::BookMapping> recorder_;
  std::vector<int> ranks_;  // of the world, that live here
  std::unique_ptr<store::Door> door_;
  std::vector<std::shared_ptr<OutputPipe>> pipes_;
};

}  // namespace dtrun::agent
