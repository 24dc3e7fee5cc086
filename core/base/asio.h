// Short names for the parts of Boost.Asio that core uses.
//
// Only names: each object belongs to its owner and is used by the thread of that owner's loop.
#pragma once

// Before Asio, because Boost 1.74 uses std::exchange without including it.
// clang-format off
#include <utility>
#include <boost/asio/io_context.hpp>
// clang-format on

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

namespace dtrun {

namespace asio = boost::asio;
using boost::system::error_code;
using Ip = asio::ip::address;
using Tcp = asio::ip::tcp;

}  // namespace dtrun
