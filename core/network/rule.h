// Which interfaces of a host may carry a job: the grammar of network.interface.
//
//   auto                 every interface but virtual bridges; the default
//   eth0, ens3           names, and prefixes of names; "eth1" never means eth10
//   =eth0                exactly that name
//   enp129s0f0np0        another name that `ip link` shows as "altname", whole
//   10.0.0.0/16, fd00::2 addresses of the host in a network, or one address
//   ^docker, ^10.9.0.0/16  not these interfaces, not these addresses; besides those that "auto" leaves
//                        out anyway
//
// Entries are separated by commas. A host uses what any entry selects and none excludes. It need not have all
// of them, so one list serves hosts with different names. Interfaces selected by an entry are checked like
// all others. Values; pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/network/candidate.h"

namespace dtrun::network {

class Rule {
 public:
  // Errors name the entry and the place in the grammar.
  static Result<Rule> Parse(std::string_view text);

  // Whether an entry selects by name or address; otherwise the rule means all interfaces except virtual
  // bridges and excluded ones.
  bool chooses() const;
  // The offer of a host with these interfaces. If nothing is left, the error lists the interfaces, why each
  // cannot be used, and the nearest name.
  Result<Offer> Apply(const std::vector<Interface>& interfaces) const;
  // Checks that the host has one of the named interfaces, usable or not.
  Status CheckNames(const std::vector<Interface>& interfaces) const;
  const std::string& text() const { return text_; }

 private:
  struct Entry {
    std::string text;
    bool excludes = false;
    bool exact = false;
    std::string name;  // or a network:
    Ip network;
    int prefix = 0;
  };
  static Result<Entry> ParseEntry(std::string_view text);
  bool Matches(const Entry& entry, const Interface& one, const std::vector<Interface>& all) const;
  std::vector<std::string> Unmatched(const std::vector<Interface>& interfaces) const;
  std::string AddressHint(const std::vector<Interface>& interfaces) const;
  const Entry* Excluding(const Interface& one, const std::vector<Interface>& all) const;  // by a name
  const Entry* Excluding(const Address& address) const;
  std::vector<Address> Chosen(const Interface& one, const std::vector<Interface>& all) const;

  std::string text_;
  std::vector<Entry> entries_;
};

}  // namespace dtrun::network
