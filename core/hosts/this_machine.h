// This machine: its identity, its names and its addresses.
//
// Asks the kernel, and LeadsHere the name service, each time; any thread.
#pragma once

#include <string>
#include <vector>

namespace dtrun::hosts {

// As the kernel calls it; "localhost" when that cannot be read.
std::string HostName();
// Boot id and network namespace: equal on the same machine only.
std::string MachineIdentity();
// Whether `host`, as a user writes it, means this machine without asking any name service:
// localhost, its own name in full or up to the first dot, or an address of its own.
bool IsThisMachine(const std::string& host);
// The same, asking the name service too: so any name or address of any of its interfaces counts.
bool LeadsHere(const std::string& host);
// Whether it is a numeric address of an interface of this machine.
bool IsOwnAddress(const std::string& text);
// Numeric addresses of this machine that others may reach, none of loopback.
std::vector<std::string> OwnAddresses();
// The own address that a packet to `peer`, numeric, would carry; empty: no route.
std::string AddressTowards(const std::string& peer);

}  // namespace dtrun::hosts
