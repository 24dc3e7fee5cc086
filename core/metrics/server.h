// Serves one page over HTTP: the numbers of a job, for Prometheus and others (metrics.listen).
//
// Owned by the root; loop thread. A client has 10 s for its request and 30 s for the answer; at most 32 are
// connected, and one more drops the oldest. The page is made at most once a second.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/asio.h"
#include "core/base/result.h"

namespace dtrun::metrics {

struct Listening {
  std::string address;     // numeric; empty: do not listen
  std::uint16_t port = 0;  // 0: any
  std::string token;       // empty: none
  std::string place;       // of the option, for errors: "--set metrics.listen: "
};

class Server {
 public:
  // Fails if the port is in use; the error names its user and what to do.
  static Result<std::unique_ptr<Server>> Open(boost::asio::io_context& loop, const Listening& listening,
                                              std::function<std::string()> page);
  virtual ~Server() = default;  // closes all connections
  virtual int port() const = 0;
};

}  // namespace dtrun::metrics
