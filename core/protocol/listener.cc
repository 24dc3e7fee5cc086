#include "core/protocol/listener.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ssl/stream_base.hpp>
#include <cerrno>
#include <chrono>
#include <list>
#include <map>

#include "core/base/endpoint.h"
#include "core/base/fd.h"
#include "core/base/port_user.h"
#include "core/base/timer.h"
#include "core/protocol/connection.h"

namespace dtrun::protocol {
namespace {

constexpr std::chrono::seconds kLinePause{1};
constexpr std::chrono::milliseconds kAcceptPause{50};
constexpr std::size_t kStrangersPerFile = 8;  // one stranger per this many files
constexpr std::size_t kFewestStrangers = 4;

// State shared by the parts of one listener; outlives it while its last operations end.
struct Acceptor {
  Acceptor(asio::io_context& loop, Listener::Options asked, Listener::Handlers hooks)
      : options(std::move(asked)),
        handlers(std::move(hooks)),
        tls(std::make_shared<Tls>(options.key, options.job)),
        acceptor(loop),
        accept_pause(loop),
        line_pause(loop) {}

  Listener::Options options;
  Listener::Handlers handlers;
  std::shared_ptr<Tls> tls;
  Tcp::acceptor acceptor;
  Timer accept_pause;
  Timer line_pause;
  std::list<std::shared_ptr<class Peer>> peers;  // oldest first
  int port = 0;
  bool open = true;
  std::size_t refused = 0;
  std::size_t unsaid = 0;  // refusals since the last line
  std::string latest;
  bool pausing = false;
};

// Reports now, or together with other refusals of this second.
void Report(const std::shared_ptr<Acceptor>& acceptor) {
  if (acceptor->pausing || acceptor->unsaid == 0 || !acceptor->open) return;
  std::string line = fmt::format("control port {}: refused {}", acceptor->port, acceptor->latest);
  if (acceptor->unsaid > 1) line += fmt::format("; and {} more within a second", acceptor->unsaid - 1);
  acceptor->unsaid = 0;
  acceptor->pausing = true;
  acceptor->line_pause.After(kLinePause, [acceptor] {
    acceptor->pausing = false;
    Report(acceptor);
  });
  if (acceptor->handlers.on_refused) acceptor->handlers.on_refused(line);
}

// One client up to its Hello. Kept alive by its pending operations; in the acceptor's list until it is
// settled.
class Peer : public std::enable_shared_from_this<Peer> {
 public:
  Peer(std::shared_ptr<Connection> connection, std::shared_ptr<Acceptor> acceptor)
      : acceptor_(std::move(acceptor)),
        connection_(std::move(connection)),
        timer_(acceptor_->acceptor.get_executor()) {}

  void Start() {
    acceptor_->peers.push_back(shared_from_this());
    place_ = std::prev(acceptor_->peers.end());
    timer_.After(acceptor_->options.hello_limit,
                 [self = shared_from_this()] { self->Refuse("it did not identify itself in time"); });
    connection_->Handshake(asio::ssl::stream_base::server,
                           [self = shared_from_this()](const error_code& error) {
                             if (!self->settled_) self->HandleHandshake(error);
                           });
  }

  void Refuse(const std::string& why) {
    if (settled_) return;
    if (!said_) Count(why);
    Leave();
    connection_->Close();
  }

  // "10.0.0.7", without the port.
  std::string_view address() const {
    return std::string_view(connection_->peer).substr(0, connection_->peer.rfind(':'));
  }

  // Drops it without an answer when the listener ends.
  void Drop() {
    Leave();
    connection_->Close();
  }

 private:
  void HandleHandshake(const error_code& error) {
    SSL* connection = connection_->stream.native_handle();
    if (!error && ProvedKey(connection)) return ReadHello();
    const std::string claim = ClaimedJob(connection);
    switch (error ? FailureOf(error) : HandshakeFailure::kNoKey) {
      case HandshakeFailure::kGone: ++acceptor_->refused; return Drop();
      case HandshakeFailure::kNotTls: return Refuse("not TLS (does another job use this address?)");
      case HandshakeFailure::kNoKey: return Refuse("TLS without the key of a job");
      case HandshakeFailure::kWrongKey:
        if (claim != ShownJob(acceptor_->options.job)) {
          return Refuse(
              fmt::format("it belongs to job '{}', this is job '{}'", claim, acceptor_->options.job));
        }
        return Refuse(fmt::format("it claims job '{}' with another key than ours{}", claim,
                                  HowToShare(acceptor_->options.key_origin)));
      case HandshakeFailure::kOther: break;
    }
    Refuse(fmt::format("the TLS handshake failed ({})", error.message()));
  }

  void ReadHello() {
    connection_->ReadFrame([self = shared_from_this()](Result<std::string_view> frame) {
      if (self->settled_) return;
      // An agent that has proved the key and was welcomed by another way.
      if (!frame && frame.error().code == DTRUN_REMOTE_FAILURE) return self->Drop();
      if (!frame) return self->Refuse(fmt::format("it sent no hello ({})", frame.error().text));
      Result<Hello> hello = DecodeHello(*frame);
      if (!hello) return self->Answer(std::move(hello).error());
      self->Judge(*std::move(hello));
    });
  }

  void Judge(Hello hello) {
    const std::shared_ptr<Acceptor> acceptor = acceptor_;
    if (Status fits = Compare(hello, acceptor->options.job); !fits) return Answer(fits.error());
    if (acceptor->handlers.admit) {
      Status admitted = acceptor->handlers.admit(hello, connection_->peer);
      if (settled_) return;  // the listener has ended
      if (!admitted) return Answer(admitted.error());
    }
    Leave();
    auto channel = MakeChannel(connection_, acceptor->options.welcome.loss_limit, hello.loss_limit,
                               Encode(acceptor->options.welcome));
    acceptor->handlers.on_joined(std::move(hello), std::move(channel));
  }

  // Sends the client the reason, lets it read that until its time is over, and closes.
  void Answer(const Error& error) {
    Count(error.text);
    said_ = true;
    connection_->Write(Encode(Refusal{error.code != DTRUN_BUSY, error.text}), [self = shared_from_this()](
                                                                                  const error_code& failed) {
      if (self->settled_) return;
      if (failed) return self->Drop();
      self->connection_->EndSending();
      self->connection_->ReadFrame([self](const Result<std::string_view>&) { self->Drop(); });
    });
  }

  void Count(const std::string& why) {
    ++acceptor_->refused;
    ++acceptor_->unsaid;
    acceptor_->latest = fmt::format("{}: {}", connection_->peer, why);
    for (char& c : acceptor_->latest) {
      if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
    }
    Report(acceptor_);
  }

  void Leave() {
    if (std::exchange(settled_, true)) return;
    timer_.Cancel();
    acceptor_->peers.erase(place_);
  }

  std::shared_ptr<Acceptor> acceptor_;
  std::shared_ptr<Connection> connection_;
  Timer timer_;
  std::list<std::shared_ptr<Peer>>::iterator place_;
  bool said_ = false;     // it was refused with a reason, and counted
  bool settled_ = false;  // no longer in the list
};

// Prevents a flood from one address from delaying hosts at others. REQUIRES: there are peers.
void PushOneOut(const std::shared_ptr<Acceptor>& acceptor) {
  std::map<std::string_view, std::size_t> counts;
  for (const auto& peer : acceptor->peers) ++counts[peer->address()];
  const auto most = std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; });
  const std::shared_ptr<Peer> oldest = *std::ranges::find_if(
      acceptor->peers, [&](const auto& peer) { return peer->address() == most->first; });
  oldest->Refuse("it sent nothing while too many others connected");
}

void Accept(const std::shared_ptr<Acceptor>& acceptor) {
  acceptor->acceptor.async_accept([acceptor](const error_code& error, Tcp::socket socket) {
    if (!acceptor->open) return;
    const bool full = !error && acceptor->peers.size() >= acceptor->options.max_strangers;
    const bool out_of_files = error == asio::error::no_descriptors && !acceptor->peers.empty();
    if (full || out_of_files) PushOneOut(acceptor);
    if (!acceptor->open) return;  // on_refused has ended the listener
    if (out_of_files) return Accept(acceptor);
    // Most likely out of descriptors: wait for clients to leave instead of spinning.
    if (error) return acceptor->accept_pause.After(kAcceptPause, [acceptor] { Accept(acceptor); });
    auto connection = std::make_shared<Connection>(std::move(socket), acceptor->tls);
    CloseOnExec(connection->socket());
    connection->Name();
    std::make_shared<Peer>(std::move(connection), acceptor)->Start();
    if (acceptor->open) Accept(acceptor);
  });
}

class TcpListener final : public Listener {
 public:
  TcpListener(asio::io_context& loop, std::shared_ptr<Acceptor> acceptor)
      : loop_(loop), acceptor_(std::move(acceptor)) {}
  ~TcpListener() override {
    acceptor_->open = false;
    error_code ignored;  // a failed close still closes
    acceptor_->acceptor.close(ignored);
    acceptor_->accept_pause.Cancel();
    acceptor_->line_pause.Cancel();
    while (!acceptor_->peers.empty()) {
      const std::shared_ptr<Peer> peer = acceptor_->peers.front();
      peer->Drop();
    }
  }
  int port() const override { return acceptor_->port; }
  std::size_t refused() const override { return acceptor_->refused; }
  void Enter(UniqueFd stream, const std::string& from) override {
    auto connection = std::make_shared<Connection>(Tcp::socket(loop_), acceptor_->tls);
    connection->Adopt(std::move(stream), from);
    const std::shared_ptr<Acceptor> acceptor = acceptor_;  // on_refused may end the listener
    if (acceptor->peers.size() >= acceptor->options.max_strangers) PushOneOut(acceptor);
    if (acceptor->open) std::make_shared<Peer>(std::move(connection), acceptor)->Start();
  }

 private:
  asio::io_context& loop_;
  std::shared_ptr<Acceptor> acceptor_;
};

// A socket bound to `endpoint`, or the errno.
Result<UniqueFd> Bind(const Tcp::endpoint& endpoint, bool reuse, int& number) {
  UniqueFd socket(::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1, off = 0;
  if (socket && reuse) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (socket && endpoint.address().is_v6() && endpoint.address().is_unspecified()) {
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  number =
      socket ? BindInRange(socket.get(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) : errno;
  if (number != 0 && endpoint.port() == 0) return NoFreePort("cannot listen for the other hosts", number);
  if (number != 0) return Error::System(fmt::format("listen on {}", TextOf(endpoint)), number);
  // Connections inherit it, so a new listener can bind while they are in TIME_WAIT.
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return socket;
}

// As the agent does for the ports of ranks: SO_REUSEADDR only where it takes the port from no other socket.
Result<UniqueFd> Bind(const Tcp::endpoint& endpoint, int& number) {
  Result<UniqueFd> socket = Bind(endpoint, false, number);
  if (number != EADDRINUSE || endpoint.port() == 0) return socket;
  if (!OnlyFading(endpoint.port())) return PortInUse(endpoint.port());
  return Bind(endpoint, true, number);
}

Result<UniqueFd> Bind(const Listener::Options& options, Tcp::endpoint& endpoint) {
  const auto port = static_cast<std::uint16_t>(options.port);
  int number = 0;
  if (!options.address.empty()) {
    error_code malformed;
    endpoint = {asio::ip::make_address(options.address, malformed), port};
    if (malformed) {
      return Error::Of(DTRUN_INVALID_ARGUMENT,
                       "the address '{}' to listen on is not numeric; give one of this host's, such as "
                       "10.0.0.1, or none for all",
                       options.address);
    }
    Result<UniqueFd> socket = Bind(endpoint, number);
    if (number == EADDRNOTAVAIL) {
      return Error{DTRUN_SYSTEM, socket.error().text + "; no interface of this host has that address"};
    }
    return socket;
  }
  endpoint = {asio::ip::address_v6::any(), port};
  Result<UniqueFd> socket = Bind(endpoint, number);
  if (number != EAFNOSUPPORT && number != EADDRNOTAVAIL) return socket;
  endpoint = {asio::ip::address_v4::any(), port};  // this host has no IPv6
  return Bind(endpoint, number);
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::Listen(asio::io_context& loop, Options options,
                                                   Handlers handlers) {
  if (options.port < 0 || options.port > 65535) {
    return Error::Of(DTRUN_INVALID_ARGUMENT, "there is no port {}; ports go from 1 to 65535", options.port);
  }
  if (const Nanoseconds limit = options.welcome.loss_limit; limit < kMinLossLimit || limit > kMaxLossLimit) {
    return Error::Of(DTRUN_INVALID_ARGUMENT, "a loss limit of {} is out of range; give one from {} to {}",
                     FormatDuration(limit), FormatDuration(kMinLossLimit), FormatDuration(kMaxLossLimit));
  }
  Tcp::endpoint endpoint;
  Result<UniqueFd> socket = Bind(options, endpoint);
  if (!socket) return std::move(socket).error();
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    const std::size_t share = std::max<std::size_t>(files.rlim_cur / kStrangersPerFile, kFewestStrangers);
    options.max_strangers = std::min(options.max_strangers, share);
  }
  auto acceptor = std::make_shared<Acceptor>(loop, std::move(options), std::move(handlers));
  error_code error;
  acceptor->acceptor.assign(endpoint.protocol(), socket->Release(), error);
  if (!error) acceptor->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (!error) acceptor->port = acceptor->acceptor.local_endpoint(error).port();
  if (error) return Error::System(fmt::format("listen on {}", TextOf(endpoint)), error.value());
  auto listener = std::make_unique<TcpListener>(loop, acceptor);
  Accept(acceptor);
  return std::unique_ptr<Listener>(std::move(listener));
}

}  // namespace dtrun::protocol
