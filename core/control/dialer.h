// How an agent reaches its root: patiently, until one deadline.
//
// Owned by the agent, lives on its event loop; every member and handler runs on the loop's
// thread. Tries every address of every name in turn, with growing pauses between rounds. A
// name that does not resolve yet, a port where nobody listens yet, an unreachable network
// and a broken connection are tried again; a refusal that will not change ends it at once.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/units.h"
#include "core/control/asio.h"
#include "core/control/channel.h"
#include "core/control/hello.h"
#include "core/control/key.h"
#include "core/control/resolve.h"

namespace dtrun::control {

class Dialer {
 public:
  struct Options {
    std::vector<std::string> names;  // of the root's host; names or addresses, at least one
    int port = 0;
    Hello hello;  // its loss limit holds for the channel
    Key key;
    Nanoseconds deadline = std::chrono::seconds(600);
    // For one lookup; and for one address, up to the root's Welcome.
    Nanoseconds try_limit = std::chrono::seconds(10);
    // Between rounds; doubles up to the second, and a random part is cut off each.
    Nanoseconds first_pause = std::chrono::milliseconds(100);
    Nanoseconds max_pause = std::chrono::seconds(5);
    Resolver resolver = ResolveBySystem;
  };
  struct Handlers {
    std::function<void(Welcome welcome, std::unique_ptr<Channel> channel)> on_joined;
    // Names address, tries, last error and next step. DTRUN_TIMEOUT at the deadline,
    // DTRUN_FAILED_PRECONDITION for a final refusal.
    std::function<void(const Error& error)> on_failed;
  };

  // One of the handlers is called, once, never from within. Dropping the dialer stops it.
  static std::unique_ptr<Dialer> Start(asio::io_context& loop, Options options, Handlers handlers);
  virtual ~Dialer() = default;

  virtual int tries() const = 0;
  // Why the latest try failed, for "still waiting" lines; empty before the first failure.
  virtual const std::string& last_error() const = 0;
};

}  // namespace dtrun::control
