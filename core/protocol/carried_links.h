// The control links that come through one remote shell. Parses the lines that the shell prints: which agents
// have started, which link a line belongs to, and which lines belong to none.
//
// Any program on the other side may print a line, for example a login shell or an attacker. Such a line can
// break a link of the hosts that this shell starts, or end it, but the content of links is encrypted and
// authenticated. When Take returns false, the caller must stop reading the shell; this bounds the buffered
// bytes. Owned by the agent's shell; loop thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/protocol/carrier.h"

namespace dtrun::protocol {

class CarriedLinks {
 public:
  struct Handlers {
    // A printed line that is not part of a link.
    std::function<void(const std::string& line)> on_line;
    // A link that the agent of `host` has opened; `from` is the address where the shell has reached it, or
    // empty.
    std::function<void(int host, UniqueFd link, const std::string& from)> on_link;
  };

  // `hosts`: numbers of the hosts that the shell starts agents on. `wire`: for the lines of all links;
  // `taken` is called once no link is behind.
  CarriedLinks(boost::asio::io_context& loop, const std::vector<int>& hosts, Carrier::Wire wire,
               Handlers handlers)
      : loop_(loop),
        hosts_(hosts.begin(), hosts.end()),
        wire_(std::move(wire)),
        handlers_(std::move(handlers)) {}

  // Handles a line that the shell has printed. False: its link is behind, so pass no more lines until
  // `taken`.
  bool Take(const std::string& line);
  // Call when lines have left the queue of the wire.
  void OnSent();
  // Whether the agent there has reported that it runs.
  bool HasStarted(int host) const { return where_.contains(host); }

 private:
  bool behind() const;
  void Open(const Carried& carried);

  boost::asio::io_context& loop_;
  const std::set<int> hosts_;
  const Carrier::Wire wire_;
  const Handlers handlers_;
  std::map<int, std::string> where_;  // host with a running agent -> address where the shell has reached it
  std::map<int, std::unique_ptr<Carrier>> carriers_;
};

}  // namespace dtrun::protocol
