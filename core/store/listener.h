// The Unix socket through which this host's ranks reach the store. It has a path, and an abstract name with
// the same text for ranks in containers that do not see the path. Clients of other users are rejected there.
//
// Only listens: the caller passes clients to the store or to a relay. Lives on the agent's event loop.
#pragma once

// Before Asio, because Boost 1.74 uses std::exchange without including it.
// clang-format off
#include <utility>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
// clang-format on

#include <filesystem>
#include <functional>
#include <memory>

#include "core/base/result.h"

namespace dtrun::store {

using Socket = boost::asio::local::stream_protocol::socket;

class Listener {
 public:
  // Listens on `socket` (mode 0600). Its folder must exist with mode 0700; another mode is an error. `enter`
  // gets every client until the listener is destroyed.
  static Result<std::unique_ptr<Listener>> Listen(boost::asio::io_context& loop,
                                                  const std::filesystem::path& socket,
                                                  std::function<void(Socket)> enter);
  virtual ~Listener() = default;  // removes the socket
};

}  // namespace dtrun::store
