#include "core/network/dial.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>

#include "core/network/route.h"

namespace dtrun::network {
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

}  // namespace

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

}  // namespace dtrun::network
