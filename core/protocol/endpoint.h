// Helpers that Asio's sockets lack here. Any thread.
#pragma once

#include <string>

#include "core/base/asio.h"

namespace dtrun::protocol {

// "10.0.0.7:5555", "[fe80::1%2]:5555". An IPv4 address is printed as such even if an IPv6 socket accepted it.
std::string TextOf(const Tcp::endpoint& endpoint);

// Sets close-on-exec on an open socket: Asio does not, so ranks would inherit it.
void CloseOnExec(Tcp::socket& socket);

}  // namespace dtrun::protocol
