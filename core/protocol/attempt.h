// One way to the root, tried once: a connection, the handshake, the hello.
//
// Made by the dialer, kept by its own operations; loop thread. Several may be on their way at once, and one
// says hello at a time: the first that the root welcomes wins.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/asio.h"
#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/base/units.h"
#include "core/protocol/hello.h"
#include "core/protocol/tls.h"
#include "core/protocol/wire.h"

namespace dtrun::protocol {

class Attempt : public std::enable_shared_from_this<Attempt> {
 public:
  // Called from the loop, never after Drop nor after an end.
  struct Events {
    std::function<void(Attempt& self)> ready;  // both have proved the key: SayHello may be called
    std::function<void(Attempt& self, Welcome welcome)> welcomed;
    // In words without the target's name; DTRUN_FAILED_PRECONDITION: no other try will end otherwise.
    std::function<void(Attempt& self, const Error& why)> failed;
  };

  // `target` is its name in texts; `key_origin`: where the user has put the key, may be empty.
  Attempt(asio::io_context& loop, std::shared_ptr<Tls> tls, std::string target, std::string job,
          std::string key_origin, Events events);

  // All that follows takes `limit` at most, but for the wait between ready and SayHello.
  void Connect(const Tcp::endpoint& endpoint, Nanoseconds limit);
  // The same over a stream that stands already.
  void Take(UniqueFd stream, Nanoseconds limit);
  void SayHello(const Hello& hello);
  void Drop();

  const std::string& target() const { return target_; }
  // Whether somebody has taken the connection.
  bool connected() const { return connected_; }
  // Once it is welcome.
  std::shared_ptr<Wire> TakeWire() { return std::move(wire_); }

 private:
  void Limit();
  void Handshake();
  void HandleHandshake(const error_code& error);
  void HandleAnswer(std::string_view frame);
  void Miss(std::string why, dtrun_status code = DTRUN_REMOTE_FAILURE);
  std::function<void(const error_code&)> Guarded(std::function<void(Attempt&, const error_code&)> next);

  const std::string target_;
  const std::string job_;
  const std::string key_origin_;
  Events events_;
  std::shared_ptr<Wire> wire_;
  asio::steady_timer timer_;
  Nanoseconds limit_{};
  bool connected_ = false;
  bool over_ = false;
};

}  // namespace dtrun::protocol
