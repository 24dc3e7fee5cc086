// The key-value store of one generation of a job, in the root.
//
// Clients connect through this host's Listener, or through a relay from another host. Rejects clients without
// the job key, and clients of another generation. Lives on the root's event loop; loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/store/listener.h"
#include "core/store/metric.h"
#include "core/store/protocol.h"

namespace dtrun::store {

// Notifications to the agent about its ranks. All optional.
struct Events {
  std::function<void(int rank)> joined;                        // dtrun_init reached
  std::function<void(int rank)> left;                          // dtrun_finalize reached
  std::function<void(int rank, const Report& report)> report;  // a rank blames a peer
  std::function<void(int rank, const Metrics& metrics)> metrics;
};

struct Shared;

class Server {
 public:
  // Calls `events` until the server is destroyed.
  Server(std::string job_key, std::uint64_t generation, Events events);
  ~Server();  // closes all connections
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void Serve(Socket client);

 private:
  std::shared_ptr<Shared> shared_;
};

// 64 hex digits from getrandom(2).
std::string NewJobKey();

}  // namespace dtrun::store
