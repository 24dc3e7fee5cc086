// The TCP port where agents of other hosts join. Anyone can connect, but only peers with the key of the job
// can join.
//
// Owned by the root, lives on its event loop; every member and handler runs on the loop's thread.
// Unauthenticated clients ("strangers") change nothing, delay no one else, take bounded memory and cause at
// most one line a second.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/asio.h"
#include "core/base/fd.h"
#include "core/base/number.h"
#include "core/base/result.h"
#include "core/protocol/channel.h"
#include "core/protocol/hello.h"
#include "core/protocol/tls.h"

namespace dtrun::protocol {

class Listener {
 public:
  struct Options {
    std::string address;  // numeric, of this host; empty: every address, both families
    int port = 0;         // 0: any free one
    std::string job;
    Key key;
    Welcome welcome;  // the root's own data; its loss limit applies to every channel
    Nanoseconds hello_limit = std::chrono::seconds(10);  // for TLS and Hello of one client
    // Most strangers at a time; also at most an eighth of this process's open-file limit. One more, or one
    // without a free descriptor, evicts the oldest stranger of the address that has the most.
    std::size_t max_strangers = 256;
    std::string key_origin = {};  // where the user has put the key; may be empty
  };
  struct Handlers {
    // Decides on a Hello with matching protocol, version and job. The text of an error goes to that host and
    // to on_refused; with DTRUN_BUSY the host retries. May be empty.
    std::function<Status(const Hello& hello, const std::string& from)> admit;
    // Called right after admit, in the same iteration of the loop.
    std::function<void(Hello hello, std::unique_ptr<Channel> channel)> on_joined;
    // "control port 1234: refused 10.0.0.7:5555: ...", at most once a second. Clients that leave before
    // sending anything are not reported: agents that try several ways do so.
    std::function<void(const std::string& line)> on_refused;
  };

  // If the port is in use, the error names the process that uses it, if visible.
  static Result<std::unique_ptr<Listener>> Listen(asio::io_context& loop, Options options, Handlers handlers);
  // Stops listening and drops strangers. Channels already handed over live on.
  virtual ~Listener() = default;

  virtual int port() const = 0;
  // Takes a client that did not connect to the port, over an open stream. It must prove the key like any
  // other. `from` is its name in texts and the peer of its channel.
  virtual void Enter(UniqueFd stream, const std::string& from) = 0;
  // Clients refused so far.
  virtual std::size_t refused() const = 0;
};

}  // namespace dtrun::protocol
