// Serves a TorchTable over TCP, like the TCPStore of torchrun's agent.
//
// torch's client sends no key, so any process that can connect can read and write, as with torchrun. Other
// users of the same host can be rejected. The number of clients and the bytes of requests, replies and values
// are limited. Lives on the agent's event loop; its thread only.
#pragma once

// Before Asio, because Boost 1.74 uses std::exchange without including it.
// clang-format off
#include <utility>
#include <boost/asio/io_context.hpp>
// clang-format on

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/fd.h"
#include "core/base/result.h"

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
  static Result<std::unique_ptr<TorchServer>> Serve(boost::asio::io_context& loop,
                                                    std::vector<UniqueFd> bound, Options options);
  virtual ~TorchServer() = default;  // closes all connections
};

}  // namespace dtrun::store
