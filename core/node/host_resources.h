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

#include "core/contract/mapping.h"
#include "core/contract/window.h"
#include "core/node/local_host.h"
#include "core/process/output_pipe.h"
#include "core/process/port.h"
#include "core/protocol/host.h"
#include "core/store/listener.h"
#include "core/store/torch_server.h"

namespace dtrun::node {

class HostResources {
 public:
  // From ranks that another program starts.
  struct Events {
    std::function<void(int rank, output::Stream stream, std::string_view bytes)> printed;
    std::function<void(protocol::RankEnded)> ended;
    std::function<void(const std::string& line)> said;  // for the user
  };

  // What is held stands in `prepared`. Checks first that the files are here which the root has seen on its
  // own host. `options` and `buffer`, which is for reads and may be shared, outlive it.
  static Result<std::unique_ptr<HostResources>> Take(boost::asio::io_context& loop,
                                                     const LocalOptions& options,
                                                     const protocol::Prepare& prepare, std::span<char> buffer,
                                                     const Events& events, protocol::Prepared* prepared);
  ~HostResources();
  HostResources(const HostResources&) = delete;
  HostResources& operator=(const HostResources&) = delete;

  const contract::RecorderMemory& recorder_memory() const { return recorder_->recorder_memory(); }
  // What another host tells of its ranks' calls, for the ranks and the call check of this one.
  void Enter(const std::vector<contract::Window>& windows) const;
  // Lines about programs of others that listen at the held port, as one with SO_REUSEADDR can: then rank 0
  // cannot.
  std::vector<std::string> WhoElseListens() const;
  // Reads what comes through the pipes.
  void WatchPipes();
  // Takes what is in them, and closes them.
  void FinishPipes();
  // Lets others have the port of rank 0, and new clients of the store come no more.
  void Close();

 private:
  HostResources() = default;
  Status HoldPorts(boost::asio::io_context& loop, const protocol::Prepare& prepare, const Events& events,
                   protocol::Prepared* prepared);
  Status OpenPipes(boost::asio::io_context& loop, const LocalOptions& options, const plan::Process& process,
                   std::span<char> buffer, const Events& events);

  std::optional<process::HeldPort> port_;        // while nobody listens there
  std::optional<process::HeldPort> store_port_;  // of torch_store_
  std::unique_ptr<store::TorchServer> torch_store_;
  std::vector<process::HeldPort> task_ports_;
  std::optional<contract::RecorderMapping> recorder_;
  std::vector<int> ranks_;  // of the world, that live here
  std::unique_ptr<store::Listener> listener_, recorder_giver_;
  std::vector<std::shared_ptr<process::OutputPipe>> pipes_;
};

}  // namespace dtrun::node
