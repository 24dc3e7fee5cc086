// Carries clients of the store between two processes, as numbered streams of bytes.
//
// Both ends are alike: the agent's has sockets of ranks that came through its listener, the
// root's has sockets that lead into the store. Nothing is parsed here. Lives on an event
// loop; every member and callback runs on its thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/store/listener.h"

namespace dtrun::store {

class Relay {
 public:
  // To the other end.
  struct Wire {
    std::function<void(std::uint32_t client)> opened;
    std::function<void(std::uint32_t client, std::string_view bytes)> data;
    std::function<void(std::uint32_t client)> closed;
  };

  Relay(boost::asio::io_context& loop, Wire wire);
  ~Relay();  // drops every client
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // A client has come to this end.
  void Enter(Socket client);
  // A client has come to the other end; its number is new. Returns the socket that leads to it,
  // for the store to serve.
  Result<Socket> Open(std::uint32_t client);
  // From the other end. Unknown clients are ignored: they have left meanwhile.
  void Data(std::uint32_t client, std::string_view bytes);
  void Close(std::uint32_t client);

 private:
  class Stream;

  boost::asio::io_context& loop_;
  Wire wire_;
  std::map<std::uint32_t, std::shared_ptr<Stream>> streams_;
  std::uint32_t last_ = 0;
};

}  // namespace dtrun::store
