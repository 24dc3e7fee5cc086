// Connects an agent to its root: tries every possible way until one deadline.
//
// Owned by the agent, lives on its event loop; every member and handler runs on the loop's thread. Looks all
// names up at once and tries their addresses in parallel with staggered starts (RFC 8305), so an address that
// drops packets delays no other. The first one that proves the key and is welcomed wins. An unresolved name,
// a closed port, an unreachable network and a broken connection are retried with growing pauses. A permanent
// refusal ends the dialer at once. If no address leads to the root, it tries the detour.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/asio.h"
#include "core/base/fd.h"
#include "core/base/number.h"
#include "core/base/result.h"
#include "core/protocol/channel.h"
#include "core/protocol/hello.h"
#include "core/protocol/resolve.h"
#include "core/protocol/tls.h"

namespace dtrun::protocol {

// A stream to the root that needs no network, such as the connection that has started the agent.
struct Detour {
  std::string name;                // used in texts and as the peer of the channel
  std::function<UniqueFd()> open;  // one end of a new stream; empty: not available now
};

class Dialer {
 public:
  struct Options {
    std::vector<std::string> names;  // of the root's host, best first; names or addresses, at least one
    int port = 0;
    Hello hello;  // its loss limit applies to the channel
    Key key;
    Nanoseconds deadline = std::chrono::seconds(600);
    // Time limit for one address, up to the root's Welcome.
    Nanoseconds try_limit = std::chrono::seconds(10);
    // Time between the starts of two addresses, unless the earlier one has failed. With many addresses,
    // `spread` is the total.
    Nanoseconds stagger = std::chrono::milliseconds(250);
    Nanoseconds spread = std::chrono::seconds(2);
    // An address or name that has not answered by then is reported as trouble.
    Nanoseconds patience = std::chrono::seconds(1);
    // Pause between rounds: starts at first_pause, doubles up to max_pause, and is shortened by a random
    // part.
    Nanoseconds first_pause = std::chrono::milliseconds(100);
    Nanoseconds max_pause = std::chrono::seconds(5);
    std::string key_origin = {};  // where the user has put the key; may be empty
    Resolver resolver = ResolveBySystem;
    // Tried when all addresses have failed, or when none has accepted a connection within detour_after.
    // Empty: none.
    Detour detour = {};
    Nanoseconds detour_after = std::chrono::seconds(2);
  };
  struct Handlers {
    std::function<void(Welcome welcome, std::unique_ptr<Channel> channel)> on_joined;
    // The error names the address, number of tries, last error and next step. DTRUN_TIMEOUT at the deadline,
    // DTRUN_FAILED_PRECONDITION for a permanent refusal.
    std::function<void(const Error& error)> on_failed;
    // The problems of all addresses that do not lead to the root, whenever there is something new: "cannot
    // reach 10.5.0.1:40123, 10.6.0.1:40123: no answer". May be empty.
    std::function<void(const std::string& line)> on_trouble = {};
  };

  // Calls exactly one of the first two handlers, once, never from within Start. Destroying the dialer stops
  // it.
  static std::unique_ptr<Dialer> Start(asio::io_context& loop, Options options, Handlers handlers);
  ~Dialer();

  int tries() const;
  // Why the latest try failed, for "still waiting" lines; empty before the first failure.
  const std::string& last_error() const;
  // The latest line of on_trouble; empty when there was none.
  const std::string& trouble() const;

 private:
  class Search;
  explicit Dialer(std::shared_ptr<Search> search) : search_(std::move(search)) {}

  std::shared_ptr<Search> search_;  // outlives it while its last operations end
};

// Collects, per address, why an agent cannot reach its root, and formats it as one line. Owned by the dialer.
class Trouble {
 public:
  // Notes a problem of an address, or of a name; `sentence` is a complete sentence.
  void Note(const std::string& address, const std::string& why);
  void NoteName(const std::string& name, const std::string& sentence);
  // "cannot reach 10.5.0.1:40123, 10.6.0.1:40123: no answer; 'node0' does not resolve: ..."
  std::string Line() const;
  // Whether Line has changed since it was last reported. Marks it as reported.
  bool TakeNews();
  const std::string& told() const { return latest_; }

 private:
  void Keep(std::vector<std::pair<std::string, std::string>>* where, const std::string& what,
            const std::string& why);

  std::vector<std::pair<std::string, std::string>> addresses_, names_;
  std::set<std::string> told_;
  std::string latest_;
};

}  // namespace dtrun::protocol
