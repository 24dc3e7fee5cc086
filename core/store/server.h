// The key-value store of one generation of a job, kept at the root.
//
// Clients come through a Listener of this host, or through a relay from another one. Lives on
// the root's event loop; every member runs on the loop's thread. Refuses clients without
// the job key, and those of another generation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/store/listener.h"
#include "core/store/protocol.h"

namespace dtrun::store {

// What the agent learns from the store about its ranks. All optional.
struct Events {
  std::function<void(int rank)> joined;                        // dtrun_init reached
  std::function<void(int rank)> left;                          // dtrun_finalize reached
  std::function<void(int rank, const Report& report)> report;  // a rank blames a peer
};

struct Shared;

class Server {
 public:
  // `events` are called until the server ends.
  Server(std::string job_key, std::uint64_t generation, Events events);
  ~Server();  // closes every connection
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void Serve(Socket client);

 private:
  std::shared_ptr<Shared> shared_;
};

// 64 hex digits from getrandom(2).
std::string NewJobKey();

}  // namespace dtrun::store
