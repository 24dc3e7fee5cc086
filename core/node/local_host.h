// This host: its processes, and what they need from dtrun.
//
// Holds the port, listens for clients of the store, makes the flight recorder and checks it,
// starts the ranks, reads what they print, and leaves nothing behind. REQUIRES: this process
// is a child subreaper, and all its children but the spared ones are the job's. Loop thread.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/asio.h"
#include "core/process/output_gate.h"
#include "core/process/spawn.h"
#include "core/protocol/host.h"
#include "core/store/listener.h"

namespace dtrun::node {

struct LocalOptions {
  std::filesystem::path socket_dir;  // the private folder of the job; where the store's socket is made
  std::function<void(store::Socket)> serve;    // a client of the store has come
  std::vector<std::string> environment;        // of the ranks, under what the plan sets
  int stdin_fd = -1;                           // for rank 0; stays the caller's
  std::optional<rlim_t> open_files;            // soft limit of the processes
  std::function<std::vector<pid_t>()> spared;  // children that are not the job's; empty: none
  std::string cgroup;                          // its name, like a runtime folder's; empty: none is made
  process::OutputGate* gate = nullptr;         // of what the ranks print; null: always open
};

std::unique_ptr<protocol::Host> MakeLocalHost(boost::asio::io_context& loop, LocalOptions options);

}  // namespace dtrun::node
