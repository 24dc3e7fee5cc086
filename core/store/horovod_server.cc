#include "core/store/horovod_server.h"

#include <fmt/format.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <vector>

#include "core/base/port_range.h"
#include "core/store/horovod_table.h"

namespace dtrun::store {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

// Ranks send a request at once and keep no connection for later.
constexpr std::chrono::seconds kRequestTime{10};
constexpr std::chrono::milliseconds kPause{50};
constexpr std::size_t kMostSessions = 4096;  // one more pushes the oldest out

// One connection: a request, its answer, and the next one when the client keeps it.
class HorovodSession : public std::enable_shared_from_this<HorovodSession> {
 public:
  HorovodSession(tcp::socket socket, std::shared_ptr<HorovodTable> table)
      : stream_(std::move(socket)), table_(std::move(table)) {}

  void Read() {
    request_ = {};
    stream_.expires_after(kRequestTime);
    http::async_read(stream_, buffer_, request_,
                     [self = shared_from_this()](const error_code& error, std::size_t) {
                       if (!error) self->Answer();
                     });
  }
  void Close() { stream_.close(); }

 private:
  void Answer() {
    const auto view = [](beast::string_view text) { return std::string_view(text.data(), text.size()); };
    HorovodTable::Answer answer =
        table_->Take(view(request_.method_string()), view(request_.target()), request_.body());
    response_ = {static_cast<http::status>(answer.status), request_.version(), std::move(answer.body)};
    response_.keep_alive(request_.keep_alive());
    response_.prepare_payload();
    http::async_write(stream_, response_, [self = shared_from_this()](const error_code& error, std::size_t) {
      if (error) return;
      if (self->response_.keep_alive()) return self->Read();
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, self->ignored_);
    });
  }

  beast::tcp_stream stream_;
  std::shared_ptr<HorovodTable> table_;
  beast::flat_buffer buffer_{64 << 10};
  http::request<http::string_body> request_;
  http::response<http::string_body> response_;
  error_code ignored_;  // the client may be gone already
};

// Accepts while it lives; shared with its pending accept.
class HorovodAcceptor : public std::enable_shared_from_this<HorovodAcceptor> {
 public:
  HorovodAcceptor(asio::io_context& loop, std::map<std::string, std::size_t> members)
      : acceptor_(loop), pause_(loop), table_(std::make_shared<HorovodTable>(std::move(members))) {}

  tcp::acceptor& acceptor() { return acceptor_; }

  void Accept() {
    acceptor_.async_accept([self = shared_from_this()](const error_code& error, tcp::socket socket) {
      if (!self->acceptor_.is_open()) return;
      std::erase_if(self->sessions_, [](const auto& session) { return session.expired(); });
      const bool full = error == asio::error::no_descriptors || self->sessions_.size() >= kMostSessions;
      if (full && !self->sessions_.empty()) self->CloseOldest();
      if (error) return self->Pause();
      auto session = std::make_shared<HorovodSession>(std::move(socket), self->table_);
      self->sessions_.push_back(session);
      session->Read();
      self->Accept();
    });
  }

  void Close() {
    error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
    for (const auto& session : sessions_) {
      if (const auto living = session.lock()) living->Close();
    }
  }

 private:
  void CloseOldest() {
    if (const auto oldest = sessions_.front().lock()) oldest->Close();
    sessions_.erase(sessions_.begin());
  }

  // Out of descriptors, most likely: give clients time to leave instead of spinning.
  void Pause() {
    pause_.expires_after(kPause);
    pause_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error && self->acceptor_.is_open()) self->Accept();
    });
  }

  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::shared_ptr<HorovodTable> table_;
  std::vector<std::weak_ptr<HorovodSession>> sessions_;
};

class HorovodService final : public HorovodServer {
 public:
  explicit HorovodService(std::shared_ptr<HorovodAcceptor> porter) : porter_(std::move(porter)) {}
  ~HorovodService() override { porter_->Close(); }
  int port() const override { return porter_->acceptor().local_endpoint().port(); }

 private:
  std::shared_ptr<HorovodAcceptor> porter_;
};

}  // namespace

Result<std::unique_ptr<HorovodServer>> HorovodServer::Listen(asio::io_context& loop,
                                                             const std::string& address,
                                                             std::map<std::string, std::size_t> members) {
  const auto failed = [&](const error_code& error) {
    return NoFreePort(fmt::format("serve Horovod's rendezvous store at {}", address), error.value());
  };
  error_code error;
  const tcp::endpoint endpoint(asio::ip::make_address(address, error), 0);
  if (error) return failed(error);
  auto porter = std::make_shared<HorovodAcceptor>(loop, std::move(members));
  tcp::acceptor& acceptor = porter->acceptor();
  if (acceptor.open(endpoint.protocol(), error); error) return failed(error);
  error.assign(
      BindInRange(acceptor.native_handle(), endpoint.data(), static_cast<socklen_t>(endpoint.size())),
      boost::system::system_category());
  if (error) return failed(error);
  if (acceptor.listen(asio::socket_base::max_listen_connections, error); error) return failed(error);
  porter->Accept();
  return std::unique_ptr<HorovodServer>(std::make_unique<HorovodService>(std::move(porter)));
}

}  // namespace dtrun::store
