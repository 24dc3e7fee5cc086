// Serves a TorchTable by TCP, as torchrun's agent serves its TCPStore.
//
// torch's client shows no key, so whoever reaches the port can read and write, as with torchrun. What clients
// can make the server keep is limited: how many there are, the bytes of their requests, replies and values.
// Lives on the agent's event loop; its thread only.
#pragma once

// Before Asio, because Boost 1.74 uses std::exchange without including it.
// clang-format off
#include <utility>
#include <boost/asio/io_context.hpp>
// clang-format on

#include <functional>
#include <memory>
#include <string>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun::store {

class TorchServer {
 public:
  struct Options {
    std::size_t max_clients = 4096;
    // For the user, once a second at most: "MASTER_PORT 1234: dropped 10.0.0.7:5555: ...". May be empty.
    std::function<void(const std::string& line)> said;
  };

  // Listens on `bound`, a TCP socket that has its port already.
  static Result<std::unique_ptr<TorchServer>> Serve(boost::asio::io_context& loop, UniqueFd bound,
                                                    Options options);
  virtual ~TorchServer() = default;  // closes every connection
};

}  // namespace dtrun::store
