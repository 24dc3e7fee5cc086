// Where the agents of other hosts join: one TCP port, open to anybody, useful to those only
// who know the key of the job.
//
// Owned by the root, lives on its event loop; every member and handler runs on the loop's
// thread. Whatever strangers send or do not send, they change nothing, keep nobody else
// waiting, take bounded memory, and leave one line a second at most.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/asio.h"
#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/base/units.h"
#include "core/protocol/channel.h"
#include "core/protocol/hello.h"
#include "core/protocol/key.h"

namespace dtrun::protocol {

class Listener {
 public:
  struct Options {
    std::string address;  // numeric, of this host; empty: every address, both families
    int port = 0;         // 0: any free one
    std::string job;
    Key key;
    Welcome welcome;  // what we say of ourselves; its loss limit holds for every channel
    Nanoseconds hello_limit = std::chrono::seconds(10);  // for TLS and Hello of one client
    // At a time, and an eighth of the files that this process may open at most. One more, or one for whom no
    // descriptor is left, pushes out the oldest of the address that has most.
    std::size_t max_strangers = 256;
    std::string key_origin = {};  // where the user has put the key; may be empty
  };
  struct Handlers {
    // Last word on a Hello whose protocol, version and job fit. The text of an error goes to
    // that host and into on_refused; DTRUN_BUSY lets it try again. May be empty.
    std::function<Status(const Hello& hello, const std::string& from)> admit;
    // Right after admit, in the same turn of the loop.
    std::function<void(Hello hello, std::unique_ptr<Channel> channel)> on_joined;
    // "control port 1234: refused 10.0.0.7:5555: ...", once a second at most. Not of those who leave before
    // they have said anything: agents that came by several ways do.
    std::function<void(const std::string& line)> on_refused;
  };

  // A port in use is an error that names who uses it, where that can be seen.
  static Result<std::unique_ptr<Listener>> Listen(asio::io_context& loop, Options options, Handlers handlers);
  // Stops listening and drops strangers; channels handed over live on.
  virtual ~Listener() = default;

  virtual int port() const = 0;
  // Takes a client that comes by another way than the port, over a stream that stands already; it proves the
  // key like everybody. `from` is its name in texts and the peer of its channel.
  virtual void Enter(UniqueFd stream, const std::string& from) = 0;
  // Clients turned away so far.
  virtual std::size_t refused() const = 0;
};

}  // namespace dtrun::protocol
