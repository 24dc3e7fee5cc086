#include "core/store/horovod_server.h"

#include <fmt/format.h>

#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <vector>

#include "core/base/endpoint.h"

namespace dtrun::store {
namespace {

constexpr unsigned kBadRequest = 400, kNotFound = 404, kMethodNotAllowed = 405, kFull = 507;

namespace beast = boost::beast;
namespace http = beast::http;

// Ranks send a request at once and do not keep idle connections.
constexpr std::chrono::seconds kRequestTime{10};
constexpr std::size_t kReadBytes = 16 << 10;
constexpr std::size_t kMostSessions = 4096;  // one more drops the oldest

}  // namespace

// One connection: handles requests while the client keeps it open.
class HorovodSession : public std::enable_shared_from_this<HorovodSession> {
 public:
  HorovodSession(Tcp::socket socket, std::shared_ptr<HorovodTable> table)
      : socket_(std::move(socket)), deadline_(socket_.get_executor()), table_(std::move(table)) {}

  void Read() {
    request_.emplace();
    deadline_.expires_after(kRequestTime);
    deadline_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error) self->Close();
    });
    Parse();
  }

  void Close() {
    deadline_.cancel();
    socket_.close(ignored_);
  }

 private:
  void ReadMore() {
    input_.resize(length_ + kReadBytes);
    socket_.async_read_some(asio::buffer(input_.data() + length_, kReadBytes),
                            [self = shared_from_this()](const error_code& error, std::size_t bytes) {
                              if (error) return self->Close();
                              self->length_ += bytes;
                              self->Parse();
                            });
  }

  void Parse() {
    while (!request_->is_done()) {
      error_code error;
      const std::size_t used = request_->put(asio::buffer(input_.data(), length_), error);
      input_.erase(0, used);
      length_ -= used;
      if (error == http::error::need_more || (!error && used == 0)) return ReadMore();
      if (error) return Close();
    }
    Answer();
  }

  void Answer() {
    const auto view = [](beast::string_view text) { return std::string_view(text.data(), text.size()); };
    const auto& request = request_->get();
    const HorovodTable::Answer answer =
        table_->Take(view(request.method_string()), view(request.target()), request.body());
    output_ = fmt::format("HTTP/1.{} {} {}\r\nContent-Length: {}\r\nConnection: {}\r\n\r\n{}",
                          request.version() % 10, answer.status,
                          view(http::obsolete_reason(static_cast<http::status>(answer.status))),
                          answer.body.size(), request.keep_alive() ? "keep-alive" : "close", answer.body);
    asio::async_write(socket_, asio::buffer(output_),
                      [self = shared_from_this()](const error_code& error, std::size_t) {
                        if (error) return self->Close();
                        if (self->request_->get().keep_alive()) return self->Read();
                        self->deadline_.cancel();
                        self->socket_.shutdown(Tcp::socket::shutdown_send, self->ignored_);
                      });
  }

  Tcp::socket socket_;
  asio::steady_timer deadline_;
  std::shared_ptr<HorovodTable> table_;
  std::optional<http::request_parser<http::string_body>> request_;
  std::string input_, output_;
  std::size_t length_ = 0;
  error_code ignored_;  // the client may be gone
};

struct HorovodClients {
  std::shared_ptr<HorovodTable> table;
  std::vector<std::weak_ptr<HorovodSession>> sessions = {};

  bool Enter(const error_code& error, Tcp::socket socket) {
    std::erase_if(sessions, [](const auto& session) { return session.expired(); });
    const bool full = error == asio::error::no_descriptors || sessions.size() >= kMostSessions;
    if (full && !sessions.empty()) {
      if (const auto oldest = sessions.front().lock()) oldest->Close();
      sessions.erase(sessions.begin());
    }
    if (error) return false;
    auto session = std::make_shared<HorovodSession>(std::move(socket), table);
    sessions.push_back(session);
    session->Read();
    return true;
  }
};

HorovodServer::~HorovodServer() {
  acceptor_->Close();
  for (const auto& session : clients_->sessions) {
    if (const auto living = session.lock()) living->Close();
  }
}

HorovodTable::Answer HorovodTable::Take(std::string_view method, std::string_view target,
                                        std::string_view body) {
  const std::size_t slash = target.find('/', 1);
  if (!target.starts_with('/') || slash == std::string_view::npos || slash == 1) return {kBadRequest};
  const std::string scope(target.substr(1, slash - 1)), key(target.substr(slash + 1));
  if (key.empty()) return {kBadRequest};

  if (method == "GET") {
    const auto found = scopes_.find(scope);
    if (found == scopes_.end() || !found->second.contains(key)) return {kNotFound};
    return {200, found->second.at(key)};
  }
  if (method == "PUT") {
    if (bytes_ + scope.size() + key.size() + body.size() > kMostBytes) return {kFull};
    const auto [value, fresh] = scopes_[scope].try_emplace(key);
    bytes_ += body.size() + (fresh ? key.size() : 0) - value->second.size();
    value->second = body;
    return {};
  }
  if (method != "DELETE") return {kMethodNotAllowed};
  if (const auto members = members_.find(scope); members != members_.end()) {
    if (++finished_[scope] == members->second) Clear(scope);
  } else if (const auto found = scopes_.find(scope); found != scopes_.end()) {
    if (const auto value = found->second.find(key); value != found->second.end()) {
      bytes_ -= key.size() + value->second.size();
      found->second.erase(value);
    }
    if (found->second.empty()) scopes_.erase(found);
  }
  return {};
}

void HorovodTable::Clear(const std::string& scope) {
  finished_.erase(scope);
  const auto found = scopes_.find(scope);
  if (found == scopes_.end()) return;
  for (const auto& [key, value] : found->second) bytes_ -= key.size() + value.size();
  scopes_.erase(found);
}

Result<std::unique_ptr<HorovodServer>> HorovodServer::Listen(asio::io_context& loop,
                                                             const std::string& address,
                                                             std::map<std::string, std::size_t> members) {
  const auto failed = [&](const error_code& error) {
    return NoFreePort(fmt::format("serve Horovod's rendezvous store at {}", address), error.value());
  };
  error_code error;
  const Tcp::endpoint endpoint(asio::ip::make_address(address, error), 0);
  if (error) return failed(error);
  std::unique_ptr<HorovodServer> server(new HorovodServer);
  server->clients_ =
      std::make_shared<HorovodClients>(HorovodClients{std::make_shared<HorovodTable>(std::move(members))});
  server->acceptor_ = std::make_shared<Acceptor<Tcp>>(
      loop, [clients = server->clients_](const error_code& failure, Tcp::socket socket) {
        return clients->Enter(failure, std::move(socket));
      });
  Tcp::acceptor& acceptor = server->acceptor_->socket;
  if (acceptor.open(endpoint.protocol(), error); error) return failed(error);
  error.assign(
      BindInRange(acceptor.native_handle(), endpoint.data(), static_cast<socklen_t>(endpoint.size())),
      boost::system::system_category());
  if (error) return failed(error);
  if (acceptor.listen(asio::socket_base::max_listen_connections, error); error) return failed(error);
  server->acceptor_->Accept();
  return server;
}

}  // namespace dtrun::store
