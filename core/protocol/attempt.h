// One attempt to connect to the root: a connection, the handshake, the hello.
//
// Made by the dialer, kept alive by its own operations; loop thread. Several may be in progress at once, but
// only one at a time sends a hello: the first that the root welcomes wins.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/asio.h"
#include "core/base/fd.h"
#include "core/base/number.h"
#include "core/base/result.h"
#include "core/base/timer.h"
#include "core/protocol/connection.h"
#include "core/protocol/hello.h"
#include "core/protocol/tls.h"

namespace dtrun::protocol {

class Attempt : public std::enable_shared_from_this<Attempt> {
 public:
  // The loop calls these, never after Drop or after the attempt has ended.
  struct Events {
    std::function<void(Attempt& self)> ready;  // both sides have proved the key: SayHello may be called
    std::function<void(Attempt& self, Welcome welcome)> welcomed;
    // `why` does not name the target. DTRUN_FAILED_PRECONDITION: every other attempt will fail the same way.
    std::function<void(Attempt& self, const Error& why)> failed;
  };

  // `target` names this address or detour in texts; `key_origin`: where the user has put the key, may be
  // empty.
  Attempt(asio::io_context& loop, std::shared_ptr<Tls> tls, std::string target, std::string job,
          std::string key_origin, Events events);

  // `limit` covers the whole attempt, except the wait between ready and SayHello.
  void Connect(const Tcp::endpoint& endpoint, Nanoseconds limit);
  // The same over a stream that is already open.
  void Take(UniqueFd stream, Nanoseconds limit);
  void SayHello(const Hello& hello);
  void Drop();

  const std::string& target() const { return target_; }
  // Whether the connection has been accepted.
  bool connected() const { return connected_; }
  // Call after `welcomed`.
  std::shared_ptr<Connection> TakeConnection() { return std::move(connection_); }

 private:
  void Limit();
  void Handshake();
  void HandleHandshake(const error_code& error);
  void HandleAnswer(std::string_view frame);
  void Miss(std::string why, dtrun_status code = DTRUN_REMOTE_FAILURE);

  const std::string target_;
  const std::string job_;
  const std::string key_origin_;
  Events events_;
  std::shared_ptr<Connection> connection_;
  Timer timer_;
  Nanoseconds limit_{};
  bool connected_ = false;
  bool over_ = false;
};

}  // namespace dtrun::protocol
