// Serves a HorovodTable by HTTP, as horovodrun would.
//
// Horovod's client shows no key, so whoever reaches the address can read and write: listen on one
// that only the job's hosts reach. Lives on the root's event loop; its thread only.
#pragma once

// Before Asio, because Boost 1.74 uses std::exchange without including it.
// clang-format off
#include <utility>
#include <boost/asio/io_context.hpp>
// clang-format on

#include <map>
#include <memory>
#include <string>

#include "core/base/result.h"

namespace dtrun::store {

class HorovodServer {
 public:
  // Listens at `address`, numeric, on any free port. `members`: as HorovodTable's.
  static Result<std::unique_ptr<HorovodServer>> Listen(boost::asio::io_context& loop,
                                                       const std::string& address,
                                                       std::map<std::string, std::size_t> members);
  virtual ~HorovodServer() = default;  // closes every connection
  virtual int port() const = 0;
};

}  // namespace dtrun::store
