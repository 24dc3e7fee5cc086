// The parts of Boost.Asio that the control link uses.
#pragma once

// Before Asio, because Boost 1.74 uses std::exchange without including it.
// clang-format off
#include <utility>
#include <boost/asio/io_context.hpp>
// clang-format on

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

namespace dtrun::control {

namespace asio = boost::asio;
using boost::system::error_code;
using Tcp = asio::ip::tcp;

// "10.0.0.7:5555", "[fe80::1%2]:5555"; an IPv4 address as such, also when an IPv6 socket took it.
std::string TextOf(const Tcp::endpoint& endpoint);

// For an open socket: Asio would let the ranks that we start inherit it.
void CloseOnExec(Tcp::socket& socket);

}  // namespace dtrun::control
