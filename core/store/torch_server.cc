#include "core/store/torch_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <chrono>
#include <map>

#include "core/base/peer_user.h"
#include "core/store/torch_table.h"
#include "core/store/torch_wire.h"

namespace dtrun::store {
namespace {

constexpr std::chrono::seconds kLinePause{1};
// Limit of unread replies: beyond it the client's requests wait.
constexpr std::size_t kMaxUnsentBytes = std::size_t{1} << 20;
// Additional limit for replies to waits and watches: beyond it the client is dropped.
constexpr std::size_t kMostUnsentBytes = std::size_t{256} << 20;
// Limit of incomplete requests, for all clients together.
constexpr std::size_t kMaxPartBytes = std::size_t{512} << 20;
constexpr std::size_t kFairPartBytes = std::size_t{1} << 20;  // each client may always use this much

}  // namespace

class TorchSession;

// State shared by one server's sessions; outlives it while their last operations end.
struct TorchShared {
  explicit TorchShared(TorchServer::Options asked)
      : options(std::move(asked)),
        table([this](TorchTable::Client client, std::string bytes) { Send(client, std::move(bytes)); }) {}

  void Send(TorchTable::Client client, std::string bytes);
  // Untrusted clients can trigger messages, so they are limited to one a second.
  void Say(const std::string& peer, const std::string& why) {
    const auto now = std::chrono::steady_clock::now();
    if (!options.said || now < next_line) return;
    next_line = now + kLinePause;
    options.said(fmt::format("MASTER_PORT {}: dropped {}: {}", port, peer, why));
  }

  // Drops a client that has sent no request; false if there is none.
  bool PushOneOut(const std::string& why);

  TorchServer::Options options;
  TorchTable table;
  std::map<TorchTable::Client, std::shared_ptr<TorchSession>> sessions;  // oldest first
  TorchTable::Client last_client = 0;
  std::size_t part_bytes = 0;
  std::chrono::steady_clock::time_point next_line;
  int port = 0;
};

// One connection: reads and answers requests, and stops reading while its answers are not taken.
class TorchSession : public std::enable_shared_from_this<TorchSession> {
 public:
  TorchSession(TorchTable::Client client, Tcp::socket socket, std::shared_ptr<TorchShared> shared)
      : client_(client), socket_(std::move(socket)), shared_(std::move(shared)) {
    error_code ignored;  // the socket may be closed already, or lack the option
    const Tcp::endpoint peer = socket_.remote_endpoint(ignored);
    address_ = peer.address().to_string();
    peer_ = ignored ? "a client that has left" : fmt::format("{}:{}", address_, peer.port());
    socket_.set_option(Tcp::no_delay(true), ignored);
    ::fcntl(socket_.native_handle(), F_SETFD, FD_CLOEXEC);
  }

  void Read() {
    socket_.async_read_some(asio::buffer(chunk_),
                            [self = shared_from_this()](const error_code& error, std::size_t size) {
                              if (self->closed_) return;
                              if (error) return self->Close();
                              self->Count([&] { self->reader_.Append({self->chunk_.data(), size}); });
                              self->Serve();
                            });
  }

  void Send(std::string bytes) {
    if (closed_ || deaf_) return;
    unsent_ += bytes;
    if (sending_.empty()) Write();
    if (unsent_.size() + sending_.size() <= kMostUnsentBytes) return;
    deaf_ = true;  // the table must not be called from here
    asio::post(socket_.get_executor(),
               [self = shared_from_this()] { self->Drop("it does not read its answers"); });
  }

  const std::string& address() const { return address_; }
  // Whether it has sent a request.
  bool known() const { return known_; }

  void Drop(const std::string& why) {
    if (closed_) return;
    shared_->Say(peer_, why);
    Close();
  }

  // Closes without a message.
  void Close() {
    if (std::exchange(closed_, true)) return;
    shared_->part_bytes -= reader_.buffered();
    error_code ignored;  // a failed close still closes
    socket_.close(ignored);
    const auto keep = shared_from_this();
    shared_->sessions.erase(client_);
    shared_->table.Forget(client_);
  }

 private:
  template <typename Work>
  void Count(const Work& work) {
    shared_->part_bytes -= reader_.buffered();
    work();
    shared_->part_bytes += reader_.buffered();
  }

  void Serve() {
    while (unsent_.size() + sending_.size() <= kMaxUnsentBytes) {
      Result<std::optional<TorchRequest>> request = std::optional<TorchRequest>();
      Count([&] { request = reader_.Next(); });
      if (!request) return Drop(request.error().text);
      if (!request->has_value()) {
        const bool large = reader_.buffered() > kFairPartBytes;
        if (large && shared_->part_bytes > kMaxPartBytes) return Drop("it sends too much at a time");
        return Read();
      }
      known_ = true;
      const Status taken = shared_->table.Take(client_, **std::move(request));
      if (closed_) return;
      if (!taken) return Drop(taken.error().text);
    }
    waits_for_room_ = true;
  }

  void Write() {
    std::swap(sending_, unsent_);
    asio::async_write(socket_, asio::buffer(sending_),
                      [self = shared_from_this()](const error_code& error, std::size_t) {
                        if (self->closed_) return;
                        if (error) return self->Close();
                        self->sending_.clear();
                        if (!self->unsent_.empty()) self->Write();
                        if (std::exchange(self->waits_for_room_, false)) self->Serve();
                      });
  }

  const TorchTable::Client client_;
  Tcp::socket socket_;
  std::shared_ptr<TorchShared> shared_;
  std::string address_, peer_;
  TorchReader reader_;
  std::array<char, 4096> chunk_;
  std::string sending_, unsent_;
  bool known_ = false;
  bool waits_for_room_ = false;
  bool deaf_ = false;
  bool closed_ = false;
};

namespace {

// Whether the peer process may connect at all.
bool MayEnter(const TorchShared& shared, int connection) {
  if (!shared.options.admits) return true;
  const PeerOwner owner = OwnerOfPeer(connection);
  return !owner.told || (owner.user && shared.options.admits(*owner.user));
}

void Enter(const std::shared_ptr<TorchShared>& shared, Tcp::socket socket) {
  const bool full = shared->sessions.size() >= shared->options.max_clients;
  const bool allowed = MayEnter(*shared, socket.native_handle());
  const TorchTable::Client client = ++shared->last_client;
  auto session = std::make_shared<TorchSession>(client, std::move(socket), shared);
  if (!allowed) return session->Drop("it is of another user, or has left already");
  if (full && !shared->PushOneOut("it sent no request while too many others connected"))
    return session->Drop(fmt::format("there are {} already", shared->options.max_clients));
  shared->sessions.emplace(client, session);
  session->Read();
}

}  // namespace

void TorchShared::Send(TorchTable::Client client, std::string bytes) {
  const auto session = sessions.find(client);
  if (session != sessions.end()) session->second->Send(std::move(bytes));
}

bool TorchShared::PushOneOut(const std::string& why) {
  std::map<std::string_view, std::size_t> counts;
  for (const auto& [client, session] : sessions) counts[session->address()] += session->known() ? 0 : 1;
  const auto most = std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; });
  if (most == counts.end() || most->second == 0) return false;
  const auto oldest = std::ranges::find_if(sessions, [&](const auto& one) {
    return !one.second->known() && one.second->address() == most->first;
  });
  const std::shared_ptr<TorchSession> session = oldest->second;
  session->Drop(why);
  return true;
}

TorchServer::~TorchServer() {
  for (const auto& acceptor : acceptors_) acceptor->Close();
  while (!shared_->sessions.empty()) {
    const std::shared_ptr<TorchSession> session = shared_->sessions.begin()->second;
    session->Close();
  }
}

Result<std::unique_ptr<TorchServer>> TorchServer::Serve(asio::io_context& loop, std::vector<UniqueFd> bound,
                                                        Options options) {
  std::unique_ptr<TorchServer> server(new TorchServer);
  const auto shared = server->shared_ = std::make_shared<TorchShared>(std::move(options));
  for (UniqueFd& one : bound) {
    int family = 0;
    socklen_t size = sizeof family;
    if (::getsockopt(one.get(), SOL_SOCKET, SO_DOMAIN, &family, &size) != 0) {
      return Error::System("serve torch's store", errno);
    }
    auto acceptor =
        std::make_shared<Acceptor<Tcp>>(loop, [shared](const error_code& failure, Tcp::socket socket) {
          if (!failure) Enter(shared, std::move(socket));
          return !failure || (failure == asio::error::no_descriptors &&
                              shared->PushOneOut("it sent no request, and no descriptor is left"));
        });
    error_code error;
    acceptor->socket.assign(family == AF_INET6 ? Tcp::v6() : Tcp::v4(), one.Release(), error);
    if (!error) shared->port = acceptor->socket.local_endpoint(error).port();
    if (!error) acceptor->socket.listen(asio::socket_base::max_listen_connections, error);
    if (error)
      return Error::System(fmt::format("serve torch's store at port {}", shared->port), error.value());
    server->acceptors_.push_back(std::move(acceptor));
  }
  for (const auto& acceptor : server->acceptors_) acceptor->Accept();
  return server;
}

}  // namespace dtrun::store
