// Takes clients of a listening socket, one after the other.
//
// Shared with its pending operations. Lives on an event loop; its thread only.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "core/base/asio.h"

namespace dtrun::store {

template <class Protocol>
class Acceptor : public std::enable_shared_from_this<Acceptor<Protocol>> {
 public:
  // False: no client can be taken now, most likely because descriptors ran out. The acceptor then lets
  // clients leave instead of spinning.
  using Enter = std::function<bool(const error_code& error, typename Protocol::socket client)>;
  Acceptor(asio::io_context& loop, Enter enter) : socket(loop), pause_(loop), enter_(std::move(enter)) {}

  void Accept() {
    socket.async_accept(
        [self = this->shared_from_this()](const error_code& error, typename Protocol::socket client) {
          if (!self->socket.is_open()) return;
          if (self->enter_(error, std::move(client))) return self->Accept();
          self->pause_.expires_after(std::chrono::milliseconds(50));
          self->pause_.async_wait([self](const error_code& stopped) {
            if (!stopped && self->socket.is_open()) self->Accept();
          });
        });
  }

  void Close() {
    error_code ignored;  // a failed close still closes
    socket.close(ignored);
    pause_.cancel();
  }

  typename Protocol::acceptor socket;

 private:
  asio::steady_timer pause_;
  const Enter enter_;
};

}  // namespace dtrun::store
