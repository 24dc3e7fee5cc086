#include "core/net/door.h"

#include <algorithm>
#include <list>
#include <optional>
#include <set>

#include "core/base/port_range.h"
#include "core/net/greeting.h"
#include "core/net/session.h"

namespace dtrun::net {
namespace {

constexpr std::chrono::seconds kLongestVisit{10};
constexpr std::size_t kMostVisitors = 4096;
constexpr std::chrono::milliseconds kPause{10};
constexpr std::size_t kReadBytes = 256 << 10;

// A burst that is being counted.
struct Count {
  std::vector<char> buffer = std::vector<char>(kReadBytes);
  BurstCount count;
  std::optional<std::chrono::steady_clock::time_point> begin;
  std::chrono::milliseconds limit = kBurst;
};

}  // namespace

struct Door::State : std::enable_shared_from_this<Door::State> {
  State(asio::io_context& l, int h, std::string k)
      : loop(l), host(static_cast<std::uint32_t>(h)), key(std::move(k)) {}

  using Visitor = std::shared_ptr<Session>;
  void Listen(const std::shared_ptr<Tcp::acceptor>& acceptor);
  void ListenLater(const std::shared_ptr<Tcp::acceptor>& acceptor);
  void Welcome(const Visitor& visitor);
  void Echo(const Visitor& visitor);
  void CountBurst(const Visitor& visitor, const std::shared_ptr<Count>& burst);
  void AwaitEnd(const Visitor& visitor);
  void Leave(const Visitor& visitor);

  asio::io_context& loop;
  const std::uint32_t host;
  const std::string key;
  std::vector<std::shared_ptr<Tcp::acceptor>> acceptors;
  std::set<Visitor> visitors;
  std::list<Visitor> strangers;  // of the visitors, those that have not greeted yet; the oldest first
  bool closed = false;
};

void Door::State::Listen(const std::shared_ptr<Tcp::acceptor>& acceptor) {
  const auto visitor = std::make_shared<Session>(loop);
  acceptor->async_accept(visitor->socket,
                         [self = shared_from_this(), acceptor, visitor](const error_code& error) {
                           if (self->closed) return;
                           const bool full = !error && self->visitors.size() >= kMostVisitors;
                           const bool room = !self->strangers.empty();  // who says nothing makes it
                           if ((full || error == asio::error::no_descriptors) && room) {
                             self->Leave(Visitor(self->strangers.front()));
                           } else if (full || error) {
                             return self->ListenLater(acceptor);
                           }
                           if (!error) self->Welcome(visitor);
                           self->Listen(acceptor);
                         });
}

// Out of descriptors, or too many visitors: some will leave.
void Door::State::ListenLater(const std::shared_ptr<Tcp::acceptor>& acceptor) {
  const auto pause = std::make_shared<asio::steady_timer>(loop, kPause);
  pause->async_wait([self = shared_from_this(), acceptor, pause](const error_code&) {
    if (!self->closed) self->Listen(acceptor);
  });
}

void Door::State::Welcome(const Visitor& visitor) {
  CloseOnExec(visitor->socket.native_handle());
  visitor->Limit(kLongestVisit);
  visitors.insert(visitor);
  strangers.push_back(visitor);
  visitor->Receive(kGreetingBytes,
                   [self = shared_from_this(), visitor](const error_code& error, const std::string& bytes) {
                     const auto greeting = error ? std::nullopt : ReadGreeting(self->key, bytes);
                     if (!greeting) return self->Leave(visitor);
                     self->strangers.remove(visitor);
                     visitor->Send(AnswerBytes(self->key, greeting->challenge, self->host),
                                   [self, visitor, purpose = greeting->purpose](const error_code& failed) {
                                     if (failed) return self->Leave(visitor);
                                     if (purpose == Purpose::kReach) return self->Echo(visitor);
                                     self->CountBurst(visitor, std::make_shared<Count>());
                                   });
                   });
}

void Door::State::Echo(const Visitor& visitor) {
  visitor->Receive(kLargeMessageBytes,
                   [self = shared_from_this(), visitor](const error_code& error, const std::string& bytes) {
                     if (error) return self->Leave(visitor);
                     visitor->Send(bytes, [self, visitor](const error_code& failed) {
                       failed ? self->Leave(visitor) : self->AwaitEnd(visitor);
                     });
                   });
}

// Tells how much came in the time of a burst; what comes later is not waited for.
void Door::State::CountBurst(const Visitor& visitor, const std::shared_ptr<Count>& burst) {
  visitor->socket.async_read_some(
      asio::buffer(burst->buffer),
      [self = shared_from_this(), visitor, burst](const error_code& error, std::size_t size) {
        if (error) return self->Leave(visitor);
        const auto now = std::chrono::steady_clock::now();
        // The clock starts with the first bytes, which therefore do not count.
        if (burst->begin) burst->count.bytes += size;
        if (!burst->begin) burst->begin = now;
        const std::chrono::nanoseconds time = now - *burst->begin;
        burst->count.time_ns = time.count();
        if (time < burst->limit) return self->CountBurst(visitor, burst);
        if (burst->limit == kBurst && burst->count.bytes < kLittleBytes) {
          burst->limit = kLongBurst;
          return self->CountBurst(visitor, burst);
        }
        visitor->Send(std::string(reinterpret_cast<const char*>(&burst->count), sizeof burst->count),
                      [self, visitor](const error_code& failed) {
                        failed ? self->Leave(visitor) : self->AwaitEnd(visitor);
                      });
      });
}

// Until the other end leaves: closing first would drop what it has not read.
void Door::State::AwaitEnd(const Visitor& visitor) {
  visitor->Receive(kLargeMessageBytes,
                   [self = shared_from_this(), visitor](const error_code& error, const std::string&) {
                     error ? self->Leave(visitor) : self->AwaitEnd(visitor);
                   });
}

void Door::State::Leave(const Visitor& visitor) {
  visitor->Close();
  visitors.erase(visitor);
  strangers.remove(visitor);
}

Door::Door(asio::io_context& loop, int host, std::string key, Offer* offer)
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

Door::~Door() {
  state_->closed = true;
  error_code ignored;  // they are being thrown away
  for (const auto& acceptor : state_->acceptors) acceptor->close(ignored);
  for (const auto& visitor : state_->visitors) visitor->Close();
}

}  // namespace dtrun::net
