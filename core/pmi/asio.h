// The parts of Boost.Asio that the servers use.
#pragma once

// Before Asio, because Boost 1.74 uses std::exchange without including it.
// clang-format off
#include <utility>
#include <boost/asio/io_context.hpp>
// clang-format on

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
