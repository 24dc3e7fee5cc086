// What Asio's sockets lack here. Any thread.
#pragma once

#include <string>

#include "core/base/asio.h"

namespace dtrun::protocol {

// "10.0.0.7:5555", "[fe80::1%2]:5555"; an IPv4 address as such, also when an IPv6 socket took it.
std::string TextOf(const Tcp::endpoint& endpoint);

// For an open socket: Asio would let the ranks that we start inherit it.
void CloseOnExec(Tcp::socket& socket);

}  // namespace dtrun::protocol
