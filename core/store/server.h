// The key-value store that an agent serves to its ranks over a Unix socket.
//
// Lives on the agent's event loop; every member runs on the loop's thread. Refuses
// clients without the job key. Keys live under the current generation, so a restarted
// world never sees what an earlier one wrote.
#pragma once

// Before Asio, because Boost 1.74 uses std::exchange without including it.
// clang-format off
#include <utility>
#include <boost/asio/io_context.hpp>
// clang-format on

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "core/base/result.h"

namespace dtrun::store {

// What the agent learns from the store about its ranks. All optional.
struct Events {
  std::function<void(int rank)> joined;                                     // dtrun_init reached
  std::function<void(int rank)> left;                                       // dtrun_finalize reached
  std::function<void(int rank, int peer, const std::string& what)> report;  // a rank blames a peer
};

class Server {
 public:
  // Listens on `socket` (mode 0600, in a folder of mode 0700 that exists; another mode of
  // the folder is an error). `events` are called until the server ends.
  static Result<std::unique_ptr<Server>> Listen(boost::asio::io_context& loop,
                                                const std::filesystem::path& socket, std::string job_key,
                                                std::uint64_t generation, Events events);
  virtual ~Server() = default;  // closes every connection and removes the socket
};

// 64 hex digits from getrandom(2).
std::string NewJobKey();

}  // namespace dtrun::store
