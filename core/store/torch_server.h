// Serves a TorchTable over TCP, like the TCPStore of torchrun's agent.
//
// torch's client sends no key, so any process that can connect can read and write, as with torchrun. Other
// users of the same host can be rejected. The number of clients and the bytes of requests, replies and values
// are limited. Lives on the agent's event loop; its thread only.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/store/acceptor.h"

namespace dtrun::store {

class TorchServer {
 public:
  struct Options {
    // At the limit, or without a free descriptor, a new client replaces the oldest one that has sent no
    // request, from the address with most such clients. If all clients have sent requests, the new one is
    // rejected.
    std::size_t max_clients = 4096;
    // Whether processes of that user may connect, if the kernel reports the user; empty: all may. REQUIRES,
    // unless empty: listens on loopback.
    std::function<bool(uid_t user)> admits;
    // Receives messages for the user, at most one a second: "MASTER_PORT 1234: dropped 10.0.0.7:5555: ...".
    // May be empty.
    std::function<void(const std::string& line)> said;
  };

  // Listens on `bound`: TCP sockets already bound to the same port.
  static Result<std::unique_ptr<TorchServer>> Serve(asio::io_context& loop, std::vector<UniqueFd> bound,
                                                    Options options);
  ~TorchServer();  // closes all connections
  TorchServer(const TorchServer&) = delete;
  TorchServer& operator=(const TorchServer&) = delete;

 private:
  TorchServer() = default;

  std::shared_ptr<struct TorchShared> shared_;
  std::vector<std::shared_ptr<Acceptor<Tcp>>> acceptors_;
};

}  // namespace dtrun::store
