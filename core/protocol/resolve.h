// Resolves host names without blocking the event loop.
//
// The caller owns the lookup and may drop it; loop thread, plus one thread for the resolver.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/asio.h"
#include "core/base/result.h"

namespace dtrun::protocol {

// All addresses of a name in the system's order, at least one; or an error.
using Addresses = Result<std::vector<asio::ip::address>>;

// Looks a name up and calls back on the loop, once, never from within. Dropping the returned handle cancels
// the callback. Call on the loop's thread.
using Resolver = std::function<std::shared_ptr<void>(asio::io_context& loop, const std::string& name,
                                                     std::function<void(Addresses)> done)>;

// Uses getaddrinfo(3) on a new thread; after a cancelled lookup the thread remains until the system answers.
// A numeric address needs no thread.
std::shared_ptr<void> ResolveBySystem(asio::io_context& loop, const std::string& name,
                                      std::function<void(Addresses)> done);

}  // namespace dtrun::protocol
