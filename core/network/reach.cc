#include "core/network/reach.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "core/base/timer.h"
#include "core/network/evidence.h"
#include "core/network/handshake.h"
#include "core/network/loss.h"
#include "core/network/route.h"
#include "core/network/session.h"

namespace dtrun::network {

struct Call {
  int host = 0;  // this host's number
  std::string key;
  bool by_device = true;
  Candidate from;
  int peer = 0;
  Candidate to;
  Purpose purpose = Purpose::kReach;
};

struct Handshake {
  std::string why;  // why it failed; empty: the other end is the peer
  std::chrono::nanoseconds round_trip{};
};

namespace {

constexpr char kNoAnswer[] = "no answer";
constexpr char kStranger[] = "another program answers there";

// Addresses of a loopback interface are reached through other interfaces.
bool Bindable(const Candidate& from) { return from.kind != Kind::kLoopback; }

error_code LeaveFrom(Tcp::socket& socket, const Candidate& from, const Ip& to, bool by_device) {
  error_code error;
  const Tcp::endpoint source(from.address.ip, 0);
  socket.open(source.protocol(), error);
  if (error) return error;
  CloseOnExec(socket.native_handle());
  // If bound to an interface that the routes do not use, it would test a path that no library's packets take.
  if (by_device && Bindable(from) && LeavesBy(from, to).empty() &&
      ::setsockopt(socket.native_handle(), SOL_SOCKET, SO_BINDTODEVICE, from.interface.data(),
                   static_cast<socklen_t>(from.interface.size())) != 0 &&
      errno != EPERM) {
    return {errno, boost::system::system_category()};
  }
  socket.bind(source, error);
  return error;
}

std::string Reason(const error_code& error) {
  // The socket was closed: the deadline has passed.
  const bool silent = error == asio::error::operation_aborted || error == asio::error::timed_out ||
                      error == asio::error::bad_descriptor;
  if (silent) return kNoAnswer;
  std::string text = error.message();
  if (!text.empty() && text.front() >= 'A' && text.front() <= 'Z') text.front() += 'a' - 'A';
  return text;
}

// Identifies the sender of an answer to `challenge`.
Handshake Judge(const Call& call, const Challenge& challenge, const std::string& answer,
                std::chrono::nanoseconds round_trip) {
  const auto host = ReadAnswer(call.key, challenge, answer);
  if (!host) return {kStranger, {}};
  if (*host == static_cast<std::uint32_t>(call.host)) return {"this host itself answers there", {}};
  if (*host != static_cast<std::uint32_t>(call.peer))
    return {fmt::format("host {} answers there", *host), {}};
  return {"", round_trip};
}

// Sends the hello over an open connection and waits for the answer.
void ShakeHands(const std::shared_ptr<Session>& session, const Call& call,
                std::function<void(const Handshake&)> done) {
  error_code ignored;  // only slower if it fails
  session->socket.set_option(Tcp::no_delay(true), ignored);
  const Hello hello{static_cast<std::uint32_t>(call.host), NewChallenge(), call.purpose};
  const auto begin = std::chrono::steady_clock::now();
  session->Send(HelloBytes(call.key, hello),
                [](const error_code&) {});  // the answer shows whether it arrived
  session->Receive(kAnswerBytes, [session, call, hello, begin, done = std::move(done)](
                                     const error_code& error, const std::string& answer) {
    if (error) return done({session->socket.is_open() ? kStranger : kNoAnswer, {}});
    done(Judge(call, hello.challenge, answer, std::chrono::steady_clock::now() - begin));
  });
}

// Connects and verifies the identity of the other end. The loop calls `done`, never Dial itself. The
// session's deadline limits it.
void Dial(const std::shared_ptr<Session>& session, const Call& call,
          std::function<void(const Handshake&)> done) {
  const error_code unable = LeaveFrom(session->socket, call.from, call.to.address.ip, call.by_device);
  if (unable) {
    return asio::post(session->socket.get_executor(), [unable, done = std::move(done)] {
      done({fmt::format("cannot send from it: {}", Reason(unable)), {}});
    });
  }
  session->socket.async_connect({call.to.address.ip, call.to.port},
                                [session, call, done = std::move(done)](const error_code& error) mutable {
                                  if (error) return done({Reason(error), {}});
                                  session->connected = true;
                                  ShakeHands(session, call, std::move(done));
                                });
}

// Extra time for an attempt after all peers have been reached. The other host's kernel accepts a connection
// even if the host is busy, and by then two packets have asked for it.
constexpr std::chrono::milliseconds kGrace{150};

std::string TooLarge(const Candidate& from) {
  return fmt::format("{}; set the MTU of both interfaces, {} here, to what the network between them carries",
                     kSmallOnly, from.mtu);
}

}  // namespace

struct Reach::State : std::enable_shared_from_this<Reach::State> {
  struct Try {
    Attempt attempt;
    Call call;
    std::vector<std::shared_ptr<Session>> sessions;  // dialing; only one after the first answer
    std::size_t dialing = 0;
    bool over = false;

    bool connected() const {
      return std::ranges::any_of(sessions, [](const auto& one) { return one->connected; });
    }
    void Close() const {
      for (const auto& one : sessions) one->Close();
    }
  };

  State(asio::io_context& l, ReachOptions o, std::vector<Peer> p, Done d)
      : loop(l), options(std::move(o)), peers(std::move(p)), done(std::move(d)), grace(l) {}

  // Pairs within one network come first: if hosts have very many interfaces, the rest may be cut. An address
  // that both hosts have would only lead back here.
  void Plan(const std::vector<Candidate>& own) {
    for (const Peer& peer : peers) {
      std::size_t count = 0;
      const auto add = [&](std::size_t from, std::size_t to) {
        if (++count > kMostTriesPerPeer) return;
        Try one;
        one.attempt.from = static_cast<int>(from);
        one.attempt.peer = peer.host;
        one.attempt.to = static_cast<int>(to);
        one.attempt.leaves_by = LeavesBy(own[from], peer.candidates[to].address.ip);
        one.call = {options.host, options.key,         options.by_device, own[from],
                    peer.host,    peer.candidates[to], Purpose::kReach};
        tries.push_back(std::move(one));
      };
      for (const bool inside : {true, false}) {
        for (std::size_t to = 0; to < peer.candidates.size(); ++to) {
          const Candidate& theirs = peer.candidates[to];
          const auto ours = [&](const Candidate& one) { return one.address.ip == theirs.address.ip; };
          if (std::ranges::any_of(own, ours)) continue;
          for (std::size_t from = 0; from < own.size(); ++from) {
            if (OneNetwork(own[from], theirs) == inside && Plausible(own[from], theirs, peer.candidates))
              add(from, to);
          }
        }
      }
    }
  }

  void Begin() {
    left = tries.size();
    if (left == 0) return asio::post(loop, [self = shared_from_this()] { self->Finish(); });
    for (std::size_t i = 0; i < tries.size(); ++i) Dial(i);
  }

  void Dial(std::size_t index) {
    Try& one = tries[index];
    const auto session = std::make_shared<Session>(loop);
    session->Limit(end - std::chrono::steady_clock::now());
    one.sessions.push_back(session);
    ++one.dialing;
    network::Dial(session, one.call, [self = shared_from_this(), index, session](const Handshake& handshake) {
      self->OnHandshake(index, session, handshake);
    });
  }

  // The first answer counts; a session without one leaves the attempt to the other session.
  void OnHandshake(std::size_t index, const std::shared_ptr<Session>& session, const Handshake& handshake) {
    Try& one = tries[index];
    --one.dialing;
    if (one.over || std::ranges::find(one.sessions, session) == one.sessions.end()) return;
    if (!handshake.why.empty() && one.dialing > 0) return;
    one.attempt.why = handshake.why;
    one.attempt.round_trip = handshake.round_trip;
    if (!one.attempt.connected()) return Ended(index);
    for (const auto& other : std::exchange(one.sessions, {session})) {
      if (other != session) other->Close();
    }
    SendLarge(index);
  }

  // Sends a large message and waits for its echo.
  void SendLarge(std::size_t index) {
    Session& session = *tries[index].sessions.front();
    session.Send(std::string(kLargeMessageBytes, '\0'), [](const error_code&) {});  // the echo shows success
    session.Receive(kLargeMessageBytes,
                    [self = shared_from_this(), index](const error_code& error, const std::string&) {
                      Try& one = self->tries[index];
                      if (error) one.attempt.why = TooLarge(one.call.from);
                      self->Ended(index);
                    });
  }

  void Ended(std::size_t index) {
    Try& one = tries[index];
    one.Close();
    one.over = true;
    if (one.attempt.connected()) {
      reached.insert(one.attempt.peer);
      good.insert(one.attempt.from);
    }
    if (--left == 0) return Finish();
    if (!done) return;  // destroyed: attempts in progress end
    if (reached.size() < peers.size() || std::exchange(grace_runs, true)) return;
    for (std::size_t i = 0; i < tries.size(); ++i) {
      if (!tries[i].over && !tries[i].connected()) Dial(i);
    }
    grace.After(kGrace, [this] { GiveUpHopeless(); });
  }

  void GiveUpHopeless() {
    for (const Try& one : tries) {
      if (!one.over && !(one.connected() && good.contains(one.attempt.from))) one.Close();
    }
  }

  void Finish() {
    grace.Cancel();
    if (!done) return;
    std::vector<Attempt> attempts;
    for (const Try& one : tries) attempts.push_back(one.attempt);
    std::exchange(done, nullptr)(std::move(attempts));
  }

  asio::io_context& loop;
  const ReachOptions options;
  const std::vector<Peer> peers;
  Done done;
  Timer grace;
  bool grace_runs = false;
  const std::chrono::steady_clock::time_point end = std::chrono::steady_clock::now() + options.limit;
  std::vector<Try> tries;
  std::size_t left = 0;
  std::set<int> reached;  // peers that were reached
  std::set<int> good;     // own candidates that have reached a peer
};

Reach::Reach(asio::io_context& loop, ReachOptions options, const std::vector<Candidate>& own,
             std::vector<Peer> peers, Done done)
    : state_(std::make_shared<State>(loop, std::move(options), std::move(peers), std::move(done))) {
  state_->Plan(own);
  state_->Begin();
}

Reach::~Reach() {
  state_->done = nullptr;
  for (const State::Try& one : state_->tries) one.Close();
}

struct BandwidthProbe::State : std::enable_shared_from_this<BandwidthProbe::State> {
  State(asio::io_context& l, Call c, double p, Done d)
      : loop(l), call(std::move(c)), pace(p), done(std::move(d)), session(std::make_shared<Session>(l)) {}

  void Begin() {
    Dial(session, call, [self = shared_from_this()](const Handshake& handshake) {
      if (!handshake.why.empty()) return self->Finish({});
      if (self->pace > 0) Pace(self->session->socket.native_handle(), self->pace);
      const LossMeter loss(self->session->socket.native_handle());
      self->Write();
      self->session->Receive(sizeof(ProbeCount), [self, handshake, loss](const error_code& error,
                                                                         const std::string& answer) {
        if (error) return self->Finish({});
        ProbeCount count;
        answer.copy(reinterpret_cast<char*>(&count), sizeof count);
        const auto seconds = static_cast<double>(std::max<std::int64_t>(count.time_ns, 1)) / 1e9;
        self->Finish({8 * static_cast<double>(count.bytes) / seconds, handshake.round_trip, loss.Share()});
      });
    });
  }

  void Write() {
    session->Send(std::string(4 * kLargeMessageBytes, '\0'),
                  [self = shared_from_this()](const error_code& error) {
                    if (!error) self->Write();
                  });
  }

  void Finish(const Throughput& result) {
    // Discard unsent data.
    error_code ignored;
    session->socket.set_option(asio::socket_base::linger(true, 0), ignored);
    session->Close();
    if (done) std::exchange(done, nullptr)(result);
  }

  asio::io_context& loop;
  const Call call;
  const double pace;
  Done done;
  const std::shared_ptr<Session> session;
};

BandwidthProbe::BandwidthProbe(asio::io_context& loop, const ReachOptions& options, Candidate own, int peer,
                               Candidate to, Done done)
    : state_(std::make_shared<State>(loop,
                                     Call{options.host, options.key, options.by_device, std::move(own), peer,
                                          std::move(to), Purpose::kBandwidthProbe},
                                     options.pace, std::move(done))) {
  state_->session->Limit(options.limit);
  state_->Begin();
}

BandwidthProbe::~BandwidthProbe() {
  state_->done = nullptr;
  state_->session->Close();
}

}  // namespace dtrun::network
