#include "core/metrics/server.h"

#include <fmt/format.h>

#include <boost/asio/write.hpp>
#include <cerrno>
#include <chrono>
#include <list>
#include <optional>
#include <vector>

#include "core/base/endpoint.h"
#include "core/base/port_user.h"
#include "core/metrics/http.h"

namespace dtrun::metrics {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kRequestTime{10}, kAnswerTime{30}, kPageLives{1};
constexpr std::chrono::milliseconds kPause{200};
constexpr std::size_t kMostClients = 32;

// The page, shared by the clients that ask within a second.
class Page {
 public:
  explicit Page(std::function<std::string()> make) : make_(std::move(make)) {}
  std::shared_ptr<const std::string> Now() {
    const Clock::time_point now = Clock::now();
    if (page_ == nullptr || now - made_ >= kPageLives) {
      page_ = std::make_shared<const std::string>(make_());
      made_ = now;
    }
    return page_;
  }

 private:
  const std::function<std::string()> make_;
  std::shared_ptr<const std::string> page_;
  Clock::time_point made_;
};

// Everything of a server; its pending accept shares ownership.
struct Service {
  Service(boost::asio::io_context& loop, std::string needed, std::function<std::string()> make)
      : acceptor(loop), pause(loop), token(std::move(needed)), page(std::move(make)) {}
  Tcp::acceptor acceptor;
  asio::steady_timer pause;
  const std::string token;
  Page page;
};

// One connection: one request, one answer.
class Reader : public std::enable_shared_from_this<Reader> {
 public:
  Reader(Tcp::socket socket, std::shared_ptr<Service> service)
      : socket_(std::move(socket)), deadline_(socket_.get_executor()), service_(std::move(service)) {}

  void Start() {
    Limit(kRequestTime);
    Receive();
  }
  void Close() {
    error_code ignored;
    deadline_.cancel();
    socket_.close(ignored);
  }

 private:
  void Limit(std::chrono::seconds time) {
    deadline_.expires_after(time);
    deadline_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error) self->Close();
    });
  }

  void Receive() {
    const std::size_t had = received_.size();
    received_.resize(had + kMostRequestBytes + 1 - std::min(had, kMostRequestBytes));
    socket_.async_read_some(asio::buffer(received_.data() + had, received_.size() - had),
                            [self = shared_from_this(), had](const error_code& error, std::size_t bytes) {
                              if (error) return self->Close();
                              self->received_.resize(had + bytes);
                              const Request request = ReadRequest(self->received_, self->service_->token);
                              request.status == 0 ? self->Receive() : self->Answer(request);
                            });
  }

  void Answer(const Request& request) {
    const std::string_view text = AnswerText(request.status);
    if (request.status == 200) page_ = service_->page.Now();
    const std::string_view body = page_ == nullptr ? text : *page_;
    head_ = AnswerHead(request.status, body.size());
    std::vector<asio::const_buffer> parts{asio::buffer(head_)};
    if (request.wants_body) parts.push_back(asio::buffer(body.data(), body.size()));
    Limit(kAnswerTime);
    asio::async_write(socket_, parts, [self = shared_from_this()](const error_code& error, std::size_t) {
      if (error) return self->Close();
      error_code ignored;
      self->socket_.shutdown(Tcp::socket::shutdown_send, ignored);
      self->AwaitEnd();
    });
  }

  // Until the client closes: closing first could discard what it has not read yet.
  void AwaitEnd() {
    received_.resize(kMostRequestBytes);
    socket_.async_read_some(asio::buffer(received_),
                            [self = shared_from_this()](const error_code& error, std::size_t) {
                              error ? self->Close() : self->AwaitEnd();
                            });
  }

  Tcp::socket socket_;
  asio::steady_timer deadline_;
  const std::shared_ptr<Service> service_;
  std::string received_, head_;
  std::shared_ptr<const std::string> page_;
};

class PageServer final : public Server {
 public:
  explicit PageServer(std::shared_ptr<Service> service) : service_(std::move(service)) { Accept(); }
  ~PageServer() override {
    *ended_ = true;
    error_code ignored;
    service_->acceptor.close(ignored);
    service_->pause.cancel();
    for (const auto& reader : readers_) {
      if (const auto living = reader.lock()) living->Close();
    }
  }
  int port() const override { return service_->acceptor.local_endpoint().port(); }

 private:
  void Accept() {
    service_->acceptor.async_accept(
        [this, ended = ended_, service = service_](const error_code& error, Tcp::socket socket) {
          if (*ended) return;
          std::erase_if(readers_, [](const auto& reader) { return reader.expired(); });
          if (error) return Pause();
          if (readers_.size() >= kMostClients) {
            if (const auto oldest = readers_.front().lock()) oldest->Close();
            readers_.pop_front();
          }
          auto reader = std::make_shared<Reader>(std::move(socket), service);
          readers_.push_back(reader);
          reader->Start();
          Accept();
        });
  }

  // Most likely out of descriptors: clients leave meanwhile.
  void Pause() {
    service_->pause.expires_after(kPause);
    service_->pause.async_wait([this, ended = ended_](const error_code& error) {
      if (!error && !*ended) Accept();
    });
  }

  const std::shared_ptr<Service> service_;
  std::list<std::weak_ptr<Reader>> readers_;  // oldest first
  const std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);
};

Error CannotListen(const Listening& listening, int number) {
  Error error = Error::System(fmt::format("{}cannot listen on {}", listening.place,
                                          EndpointText(listening.address, std::to_string(listening.port))),
                              number);
  if (number == EADDRINUSE) {
    std::string users;
    for (const PortUser& user : ListenersOn(listening.port)) users += (users.empty() ? "" : ", ") + user.text;
    error.text = fmt::format("{}port {} is in use{}{}; choose another one, or 0 for any", listening.place,
                             listening.port, users.empty() ? "" : " by ", users);
  } else if (number == EADDRNOTAVAIL) {
    error.text += "; this host has no such address: 127.0.0.1 is for this host, 0.0.0.0 for all networks";
  } else if (number == EACCES) {
    error.text += "; choose a port from 1024 on";
  }
  return error;
}

}  // namespace

Result<std::unique_ptr<Server>> Server::Open(boost::asio::io_context& loop, const Listening& listening,
                                             std::function<std::string()> page) {
  error_code error;
  const Tcp::endpoint endpoint(asio::ip::make_address(listening.address, error), listening.port);
  auto service = std::make_shared<Service>(loop, listening.token, std::move(page));
  Tcp::acceptor& acceptor = service->acceptor;
  if (!error) acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(Tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(static_cast<int>(kMostClients), error);
  if (error) return CannotListen(listening, error.value());
  return std::unique_ptr<Server>(std::make_unique<PageServer>(std::move(service)));
}

}  // namespace dtrun::metrics
