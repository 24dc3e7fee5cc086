// How an agent reaches its root: by whatever way leads there, patiently, until one deadline.
//
// Owned by the agent, lives on its event loop; every member and handler runs on the loop's thread. Looks all
// names up at once and tries their addresses side by side, each a little after the one before it (RFC 8305),
// so an address that swallows packets delays no other. The first that proves the key and is welcomed wins. A
// name that does not resolve yet, a port where nobody listens yet, an unreachable network and a broken
// connection are tried again, with growing pauses; a refusal that will not change ends it at once. Where no
// address leads to the root, the detour may.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/asio.h"
#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/base/units.h"
#include "core/protocol/channel.h"
#include "core/protocol/hello.h"
#include "core/protocol/key.h"
#include "core/protocol/resolve.h"

namespace dtrun::protocol {

// A stream to the root that needs no network, such as the connection that has started the agent.
struct Detour {
  std::string name;                // in texts and as the peer of the channel
  std::function<UniqueFd()> open;  // one end of a new stream; none: it cannot be had now
};

class Dialer {
 public:
  struct Options {
    std::vector<std::string> names;  // of the root's host, the best first; names or addresses, at least one
    int port = 0;
    Hello hello;  // its loss limit holds for the channel
    Key key;
    Nanoseconds deadline = std::chrono::seconds(600);
    // For one address, up to the root's Welcome.
    Nanoseconds try_limit = std::chrono::seconds(10);
    // Between the starts of two addresses, unless the one before has failed; many share the spread.
    Nanoseconds stagger = std::chrono::milliseconds(250);
    Nanoseconds spread = std::chrono::seconds(2);
    // An address or a name that has not answered by then is told as trouble.
    Nanoseconds patience = std::chrono::seconds(1);
    // Between rounds; doubles up to the second, and a random part is cut off each.
    Nanoseconds first_pause = std::chrono::milliseconds(100);
    Nanoseconds max_pause = std::chrono::seconds(5);
    std::string key_origin = {};  // where the user has put the key; may be empty
    Resolver resolver = ResolveBySystem;
    // Tried once all addresses have failed, or none has taken a connection by then. Empty: there is none.
    Detour detour = {};
    Nanoseconds detour_after = std::chrono::seconds(2);
  };
  struct Handlers {
    std::function<void(Welcome welcome, std::unique_ptr<Channel> channel)> on_joined;
    // Names address, tries, last error and next step. DTRUN_TIMEOUT at the deadline,
    // DTRUN_FAILED_PRECONDITION for a final refusal.
    std::function<void(const Error& error)> on_failed;
    // What stands in the way of all addresses that do not lead to the root, each time that there is something
    // new: "cannot reach 10.5.0.1:40123, 10.6.0.1:40123: no answer". May be empty.
    std::function<void(const std::string& line)> on_trouble = {};
  };

  // One of the first two handlers is called, once, never from within. Dropping the dialer stops it.
  static std::unique_ptr<Dialer> Start(asio::io_context& loop, Options options, Handlers handlers);
  virtual ~Dialer() = default;

  virtual int tries() const = 0;
  // Why the latest try failed, for "still waiting" lines; empty before the first failure.
  virtual const std::string& last_error() const = 0;
  // The latest line of on_trouble; empty when there was none.
  virtual const std::string& trouble() const = 0;
};

}  // namespace dtrun::protocol
