// Serves a HorovodTable over HTTP, like horovodrun.
//
// Horovod's client sends no key, so any process that can connect can read and write: listen only on an
// address that just the job's hosts can reach. Lives on the root's event loop; its thread only.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/store/acceptor.h"

namespace dtrun::store {

// The contents of Horovod's rendezvous store: values in scopes, addressed by HTTP requests.
//
// Follows horovod/runner/http/http_server.py: PUT and GET /SCOPE/KEY carry a value as the body. GET of a
// missing key is 404. DELETE reports that a member has finished with a scope; the scope is emptied once all
// members have. A value; one thread.
class HorovodTable {
 public:
  // The number of members of each scope of the job: "global", "local_node0", "cross_1". In any other scope
  // DELETE removes the key.
  explicit HorovodTable(std::map<std::string, std::size_t> members) : members_(std::move(members)) {}

  struct Answer {
    unsigned status = 200;
    std::string body = {};
  };
  // Accepts any bytes. Answers 400 and 405 for invalid requests, 507 if the store is full.
  Answer Take(std::string_view method, std::string_view target, std::string_view body);

  static constexpr std::size_t kMostBytes = 64 << 20;

 private:
  void Clear(const std::string& scope);

  std::map<std::string, std::size_t> members_;
  std::map<std::string, std::map<std::string, std::string>> scopes_;
  std::map<std::string, std::size_t> finished_;
  std::size_t bytes_ = 0;
};

class HorovodServer {
 public:
  // Listens at the numeric `address` on any free port. `members`: as for HorovodTable.
  static Result<std::unique_ptr<HorovodServer>> Listen(asio::io_context& loop, const std::string& address,
                                                       std::map<std::string, std::size_t> members);
  ~HorovodServer();  // closes all connections
  HorovodServer(const HorovodServer&) = delete;
  HorovodServer& operator=(const HorovodServer&) = delete;
  int port() const { return acceptor_->socket.local_endpoint().port(); }

 private:
  HorovodServer() = default;

  std::shared_ptr<struct HorovodClients> clients_;
  std::shared_ptr<Acceptor<Tcp>> acceptor_;
};

}  // namespace dtrun::store
