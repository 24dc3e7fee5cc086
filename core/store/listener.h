// The Unix socket through which ranks of this host reach the store. It has a path, and the same text as
// abstract name, for ranks in containers that do not see the path; strangers who come there are turned away.
//
// Only listens: who answers, the store itself or a relay to it, is the caller's. Lives on
// the agent's event loop.
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
  // Listens on `socket` (mode 0600, in a folder of mode 0700 that exists; another mode of
  // the folder is an error). `enter` gets every client until the listener is destroyed.
  static Result<std::unique_ptr<Listener>> Listen(boost::asio::io_context& loop,
                                                  const std::filesystem::path& socket,
                                                  std::function<void(Socket)> enter);
  virtual ~Listener() = default;  // removes the socket
};

}  // namespace dtrun::store
