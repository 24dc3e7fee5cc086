#include "core/network/connectivity_check.h"

#include <list>
#include <set>

#include "core/base/endpoint.h"
#include "core/network/handshake.h"
#include "core/network/session.h"

namespace dtrun::network {
namespace {

constexpr std::chrono::seconds kLongestVisit{10};
constexpr std::size_t kMostPeers = 4096;
constexpr std::chrono::milliseconds kPause{10};
constexpr std::size_t kReadBytes = 256 << 10;

// A bandwidth probe in progress.
struct Count {
  std::vector<char> buffer = std::vector<char>(kReadBytes);
  ProbeCount count;
  std::optional<std::chrono::steady_clock::time_point> begin;
  std::chrono::milliseconds limit = kBandwidthProbe;
};

}  // namespace

struct Listener::State : std::enable_shared_from_this<Listener::State> {
  State(asio::io_context& l, int h, std::string k)
      : loop(l), host(static_cast<std::uint32_t>(h)), key(std::move(k)) {}

  using Peer = std::shared_ptr<Session>;
  void Listen(const std::shared_ptr<Tcp::acceptor>& acceptor) {
    const auto peer = std::make_shared<Session>(loop);
    acceptor->async_accept(peer->socket,
                           [self = shared_from_this(), acceptor, peer](const error_code& error) {
                             if (self->closed) return;
                             const bool full = !error && self->peers.size() >= kMostPeers;
                             const bool room = !self->strangers.empty();  // evict a silent client
                             if ((full || error == asio::error::no_descriptors) && room) {
                               self->Leave(Peer(self->strangers.front()));
                             } else if (full || error) {
                               return self->ListenLater(acceptor);
                             }
                             if (!error) self->Welcome(peer);
                             self->Listen(acceptor);
                           });
  }

  // Out of descriptors, or too many peers: wait for some to leave.
  void ListenLater(const std::shared_ptr<Tcp::acceptor>& acceptor) {
    const auto pause = std::make_shared<asio::steady_timer>(loop, kPause);
    pause->async_wait([self = shared_from_this(), acceptor, pause](const error_code&) {
      if (!self->closed) self->Listen(acceptor);
    });
  }

  void Welcome(const Peer& peer) {
    CloseOnExec(peer->socket.native_handle());
    peer->Limit(kLongestVisit);
    peers.insert(peer);
    strangers.push_back(peer);
    peer->Receive(kHelloBytes,
                  [self = shared_from_this(), peer](const error_code& error, const std::string& bytes) {
                    const auto hello = error ? std::nullopt : ReadHello(self->key, bytes);
                    if (!hello) return self->Leave(peer);
                    self->strangers.remove(peer);
                    peer->Send(AnswerBytes(self->key, hello->challenge, self->host),
                               [self, peer, purpose = hello->purpose](const error_code& failed) {
                                 if (failed) return self->Leave(peer);
                                 if (purpose == Purpose::kReach) return self->Echo(peer);
                                 self->CountProbe(peer, std::make_shared<Count>());
                               });
                  });
  }

  void Echo(const Peer& peer) {
    peer->Receive(kLargeMessageBytes,
                  [self = shared_from_this(), peer](const error_code& error, const std::string& bytes) {
                    if (error) return self->Leave(peer);
                    peer->Send(bytes, [self, peer](const error_code& failed) {
                      failed ? self->Leave(peer) : self->AwaitEnd(peer);
                    });
                  });
  }

  // Reports the bytes received in the time of a bandwidth probe, without waiting for later ones.
  void CountProbe(const Peer& peer, const std::shared_ptr<Count>& bandwidth_probe) {
    peer->socket.async_read_some(
        asio::buffer(bandwidth_probe->buffer),
        [self = shared_from_this(), peer, bandwidth_probe](const error_code& error, std::size_t size) {
          if (error) return self->Leave(peer);
          const auto now = std::chrono::steady_clock::now();
          // The time starts with the first bytes, so these do not count.
          if (bandwidth_probe->begin) bandwidth_probe->count.bytes += size;
          if (!bandwidth_probe->begin) bandwidth_probe->begin = now;
          const std::chrono::nanoseconds time = now - *bandwidth_probe->begin;
          bandwidth_probe->count.time_ns = time.count();
          if (time < bandwidth_probe->limit) return self->CountProbe(peer, bandwidth_probe);
          if (bandwidth_probe->limit == kBandwidthProbe && bandwidth_probe->count.bytes < kLittleBytes) {
            bandwidth_probe->limit = kLongBandwidthProbe;
            return self->CountProbe(peer, bandwidth_probe);
          }
          peer->Send(
              std::string(reinterpret_cast<const char*>(&bandwidth_probe->count),
                          sizeof bandwidth_probe->count),
              [self, peer](const error_code& failed) { failed ? self->Leave(peer) : self->AwaitEnd(peer); });
        });
  }

  // Waits until the other end closes: closing first would drop data that it has not read.
  void AwaitEnd(const Peer& peer) {
    peer->Receive(kLargeMessageBytes,
                  [self = shared_from_this(), peer](const error_code& error, const std::string&) {
                    error ? self->Leave(peer) : self->AwaitEnd(peer);
                  });
  }

  void Leave(const Peer& peer) {
    peer->Close();
    peers.erase(peer);
    strangers.remove(peer);
  }

  asio::io_context& loop;
  const std::uint32_t host;
  const std::string key;
  std::vector<std::shared_ptr<Tcp::acceptor>> acceptors;
  std::set<Peer> peers;
  std::list<Peer> strangers;  // peers with an unfinished handshake; oldest first
  bool closed = false;
};

Listener::Listener(asio::io_context& loop, int host, std::string key, Offer* offer)
    : state_(std::make_shared<State>(loop, host, std::move(key))) {
  std::erase_if(offer->candidates, [&](Candidate& one) {
    auto acceptor = std::make_shared<Tcp::acceptor>(loop);
    const Tcp::endpoint here(one.address.ip, 0);
    error_code error;
    acceptor->open(here.protocol(), error);
    if (!error) {
      error.assign(BindInRange(acceptor->native_handle(), here.data(), static_cast<socklen_t>(here.size())),
                   boost::system::system_category());
    }
    if (!error) acceptor->listen(asio::socket_base::max_listen_connections, error);
    if (!error) one.port = acceptor->local_endpoint(error).port();
    if (error) {
      offer->left_out.push_back({one.interface, one.kind, one.address.Text(),
                                 NoFreePort("cannot be listened on", error.value()).text});
      return true;
    }
    CloseOnExec(acceptor->native_handle());
    state_->acceptors.push_back(acceptor);
    state_->Listen(acceptor);
    return false;
  });
}

Listener::~Listener() {
  state_->closed = true;
  error_code ignored;  // they are being discarded
  for (const auto& acceptor : state_->acceptors) acceptor->close(ignored);
  for (const auto& peer : state_->peers) peer->Close();
}

}  // namespace dtrun::network
