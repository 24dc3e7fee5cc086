// Carries store clients between two processes as numbered byte streams.
//
// Both ends use this class. The agent's end has the sockets of ranks from its listener; the root's end has
// sockets into the store. The relay does not parse the data. Lives on an event loop; every member and
// callback runs on its thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>

#include "core/store/listener.h"

namespace dtrun::store {

class Relay {
 public:
  // Sends to the other end.
  struct Wire {
    std::function<void(std::uint32_t client)> opened;
    std::function<void(std::uint32_t client, std::string_view bytes)> data;
    std::function<void(std::uint32_t client)> closed;
  };

  Relay(asio::io_context& loop, Wire wire);
  ~Relay();  // drops every client
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // Registers a client that connected at this end.
  void Enter(Socket client);
  // Registers a client that connected at the other end, with a new number. Returns its socket for the store
  // to serve.
  Result<Socket> Open(std::uint32_t client);
  // Data from the other end. Ignores unknown clients: they have disconnected.
  void Data(std::uint32_t client, std::string_view bytes);
  void Close(std::uint32_t client);

 private:
  class Stream;

  asio::io_context& loop_;
  Wire wire_;
  std::map<std::uint32_t, std::shared_ptr<Stream>> streams_;
  std::uint32_t last_ = 0;
};

}  // namespace dtrun::store
