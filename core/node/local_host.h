// The local host: its processes, and the resources that dtrun provides to them.
//
// Holds the port, accepts clients of the store, makes and checks the flight recorder, starts the ranks, reads
// their output, and leaves nothing behind. REQUIRES: this process is a child subreaper, and all its children
// except the spared ones belong to the job. Loop thread.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/asio.h"
#include "core/process/output_pipe.h"
#include "core/process/spawn.h"
#include "core/protocol/host.h"
#include "core/store/listener.h"

namespace dtrun::node {

struct LocalOptions {
  std::filesystem::path socket_dir;            // the job's private folder, for the store's socket
  std::function<void(store::Socket)> serve;    // called for each new client of the store
  std::vector<std::string> environment;        // of the ranks, overridden by the plan's variables
  int stdin_fd = -1;                           // for rank 0; still owned by the caller
  std::optional<rlim_t> open_files;            // soft limit of the processes
  std::function<std::vector<pid_t>()> spared;  // children that are not part of the job; empty: none
  std::string cgroup;                          // its name, like a runtime folder's; empty: none is made
  process::OutputGate* gate = nullptr;         // for the ranks' output; null: always open
};

std::unique_ptr<protocol::Host> MakeLocalHost(asio::io_context& loop, LocalOptions options);

}  // namespace dtrun::node
