// The Unix socket through which this host's ranks reach the store. It has a path, and an abstract name with
// the same text for ranks in containers that do not see the path. Clients of other users are rejected there.
//
// Only listens: the caller passes clients to the store or to a relay. Lives on the agent's event loop.
#pragma once

#include <boost/asio/local/stream_protocol.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/result.h"
#include "core/store/acceptor.h"

namespace dtrun::store {

using Socket = asio::local::stream_protocol::socket;

class Listener {
 public:
  // Listens on `socket` (mode 0600). Its folder must exist with mode 0700; another mode is an error. `enter`
  // gets every client until the listener is destroyed.
  static Result<std::unique_ptr<Listener>> Listen(asio::io_context& loop, const std::filesystem::path& socket,
                                                  std::function<void(Socket)> enter);
  ~Listener();  // removes the socket
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

 private:
  using LocalAcceptor = Acceptor<asio::local::stream_protocol>;
  Listener(std::filesystem::path socket, std::vector<std::shared_ptr<LocalAcceptor>> acceptors)
      : socket_(std::move(socket)), acceptors_(std::move(acceptors)) {}

  const std::filesystem::path socket_;
  const std::vector<std::shared_ptr<LocalAcceptor>> acceptors_;
};

}  // namespace dtrun::store
