// The resources that a host holds for its ranks during one generation: ports, torch's store if the ranks
// expect the agent to serve it, the store's socket, the flight recorder, and pipes to ranks that another
// program starts.
//
// Owned by the local host; loop thread. The destructor releases everything.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/contract/mapping.h"
#include "core/contract/window.h"
#include "core/node/local_host.h"
#include "core/node/use_meter.h"
#include "core/process/output_pipe.h"
#include "core/process/port.h"
#include "core/protocol/host.h"
#include "core/store/listener.h"
#include "core/store/torch_server.h"

namespace dtrun::node {

class HostResources {
 public:
  // Output of ranks that another program starts.
  struct Events {
    std::function<void(int rank, output::Stream stream, std::string_view bytes)> printed;
    std::function<void(protocol::RankEnded)> ended;
    std::function<void(int rank, std::string_view bytes)> traced = {};
    std::function<void(const std::string& line)> said;  // for the user
  };

  // Acquires the resources and writes them to `prepared`. First checks that files that the root has found on
  // its own host exist here. `options` and `buffer`, which is for reads and may be shared, must outlive it.
  static Result<std::unique_ptr<HostResources>> Take(asio::io_context& loop, const LocalOptions& options,
                                                     const protocol::Prepare& prepare, std::span<char> buffer,
                                                     const Events& events, protocol::Prepared* prepared);
  ~HostResources();
  HostResources(const HostResources&) = delete;
  HostResources& operator=(const HostResources&) = delete;

  const contract::RecorderMemory& recorder_memory() const { return recorder_->recorder_memory(); }
  // Passes calls of another host's ranks to this host's ranks and call check.
  void Enter(const std::vector<contract::Window>& windows) const;
  // Adds what the flight recorder tells of the ranks, and what they use. `before`: their progress when the
  // look began, if that takes so long that a rank's place may be past.
  void AddRecorded(std::vector<verdict::RankDoing>& ranks, const std::vector<std::uint64_t>& before) const;
  // Their recorded calls alone.
  void AddCalls(std::vector<verdict::RankDoing>& ranks) const;
  // By rank of the world; changes when one of this host begins or ends a call of dtrun's API.
  std::vector<std::uint64_t> Progress() const;
  // Lines about unrelated programs that listen at the held port, which SO_REUSEADDR allows: then rank 0
  // cannot listen.
  std::vector<std::string> WhoElseListens() const;
  // Begins to read from the pipes.
  void WatchPipes();
  // Reads the rest from the pipes and closes them.
  void FinishPipes();
  // Releases the port of rank 0 and accepts no more clients of the store.
  void Close();

 private:
  HostResources() = default;
  Status HoldPorts(asio::io_context& loop, const protocol::Prepare& prepare, const Events& events,
                   protocol::Prepared* prepared);
  // For the traces of the process's ranks, and for their output if another program starts them.
  Status OpenPipes(asio::io_context& loop, const LocalOptions& options, const plan::Process& process,
                   std::span<char> buffer, const Events& events);

  std::optional<process::HeldPort> port_;        // held while nothing listens there
  std::optional<process::HeldPort> store_port_;  // of torch_store_
  std::unique_ptr<store::TorchServer> torch_store_;
  std::vector<process::HeldPort> task_ports_;
  std::optional<contract::RecorderMapping> recorder_;
  UseMeter use_;
  std::vector<int> ranks_;  // world ranks on this host
  std::unique_ptr<store::Listener> listener_, recorder_giver_;
  std::vector<std::shared_ptr<process::OutputPipe>> pipes_;
};

}  // namespace dtrun::node
