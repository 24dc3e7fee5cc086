// Serves a HorovodTable over HTTP, like horovodrun.
//
// Horovod's client sends no key, so any process that can connect can read and write: listen only on an
// address that just the job's hosts can reach. Lives on the root's event loop; its thread only.
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
  // Listens at the numeric `address` on any free port. `members`: as for HorovodTable.
  static Result<std::unique_ptr<HorovodServer>> Listen(boost::asio::io_context& loop,
                                                       const std::string& address,
                                                       std::map<std::string, std::size_t> members);
  virtual ~HorovodServer() = default;  // closes all connections
  virtual int port() const = 0;
};

}  // namespace dtrun::store
