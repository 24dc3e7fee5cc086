// Host names to addresses, without blocking the event loop.
//
// The caller owns the search and may drop it; loop thread, with a thread of its own for the resolver.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/asio.h"
#include "core/base/result.h"

namespace dtrun::protocol {

// Every address of a name, in the order of the system; at least one, or why there is none.
using Addresses = Result<std::vector<asio::ip::address>>;

// Looks a name up and calls back on the loop, once, never from within. Dropping the returned
// handle cancels the call. On the loop's thread.
using Resolver = std::function<std::shared_ptr<void>(asio::io_context& loop, const std::string& name,
                                                     std::function<void(Addresses)> done)>;

// By getaddrinfo(3), on a thread of its own, which a cancelled lookup leaves behind until
// the system answers. A numeric address needs no thread.
std::shared_ptr<void> ResolveBySystem(asio::io_context& loop, const std::string& name,
                                      std::function<void(Addresses)> done);

}  // namespace dtrun::protocol
