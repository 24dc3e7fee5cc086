// The control links that come through one remote shell, by the lines that it prints: which agents have
// started, whose link a line belongs to, and what is no part of a link.
//
// A line may be anybody's: a login shell's, or a liar's. It can break a link of the hosts that this shell
// starts, and say that it ends; what travels is sealed. Bytes that nobody takes are bounded by who stops to
// read the shell when Take says so. Owned by the agent's shell; loop thread.
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
    // What something there printed that is no part of a link.
    std::function<void(const std::string& line)> on_line;
    // A link that the agent of this host has opened; `from` is where the shell has reached it, or empty.
    std::function<void(int host, UniqueFd link, const std::string& from)> on_link;
  };

  // `hosts`: numbers of those that the shell starts agents on. `wire`: for the lines of all links; `taken` is
  // called once no link is behind.
  CarriedLinks(boost::asio::io_context& loop, const std::vector<int>& hosts, Carrier::Wire wire,
               Handlers handlers)
      : loop_(loop),
        hosts_(hosts.begin(), hosts.end()),
        wire_(std::move(wire)),
        handlers_(std::move(handlers)) {}

  // A line that the shell has printed. False: its link is behind; until `taken`, no more lines should come.
  bool Take(const std::string& line);
  // Lines have left the queue of the wire.
  void OnSent();
  // Whether the agent there runs, as far as it could say so.
  bool HasStarted(int host) const { return where_.contains(host); }

 private:
  bool behind() const;
  void Open(const Carried& carried);

  boost::asio::io_context& loop_;
  const std::set<int> hosts_;
  const Carrier::Wire wire_;
  const Handlers handlers_;
  std::map<int, std::string> where_;  // hosts whose agents run: where the shell has reached them
  std::map<int, std::unique_ptr<Carrier>> carriers_;
};

}  // namespace dtrun::protocol
