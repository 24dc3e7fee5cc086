// This machine's identity, names and addresses.
//
// Queries the kernel on every call, and LeadsHere also the name service; any thread.
#pragma once

#include <string>
#include <vector>

namespace dtrun::hosts {

// The kernel's host name; "localhost" if it cannot be read.
std::string HostName();
// Boot id and network namespace: equal only on the same machine.
std::string MachineIdentity();
// Whether `host` is this machine, without a query to the name service: localhost, its full host
// name or the part before the first dot, or one of its addresses.
bool IsThisMachine(const std::string& host);
// The same with the name service: any name or address of any of its interfaces counts.
bool LeadsHere(const std::string& host);
// Whether `text` is a numeric address of an interface of this machine.
bool IsOwnAddress(const std::string& text);
// Numeric addresses at which others may reach this machine; no loopback addresses.
std::vector<std::string> OwnAddresses();
// The source address of packets to `peer`, which is numeric; empty: no route.
std::string AddressTowards(const std::string& peer);

}  // namespace dtrun::hosts
