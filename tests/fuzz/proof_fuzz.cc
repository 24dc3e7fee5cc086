// Networks being proven, from both ends: who knocks at a host's doors may know the key and still say
// anything, and so may who answers a host's tries. Over loopback; every input is one exchange.
#include <sys/socket.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <vector>

#include "core/net/greeting.h"
#include "core/net/prover.h"
#include "core/net/session.h"
#include "tests/fuzz/source.h"

namespace {

using namespace dtrun;
using dtrun::fuzz::Source;

const std::string kKey(32, 'k');

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

net::Candidate Loopback() {
  net::Candidate one;
  one.interface = "lo";
  one.kind = net::Kind::kLoopback;
  one.address = {dtrun::asio::ip::make_address("127.0.0.1"), 8};
  return one;
}

void Turn(dtrun::asio::io_context& loop) {
  loop.restart();
  for (int i = 0; i < 8; ++i) loop.poll();
}

// Visitors of host 1's doors.
void Knock(Source& in) {
  dtrun::asio::io_context loop;
  net::Offer offer;
  offer.candidates = {Loopback()};
  net::Prover prover(loop, 1, kKey, &offer);
  Require(offer.candidates.size() == 1, "nothing to knock at");
  std::vector<dtrun::Tcp::socket> visitors;
  for (int steps = 0; !in.empty() && steps < 40; ++steps) {
    dtrun::error_code ignored;
    if (visitors.empty() || (in.Below(4) == 0 && visitors.size() < 8)) {
      dtrun::Tcp::socket& visitor = visitors.emplace_back(loop);
      visitor.connect({dtrun::asio::ip::make_address("127.0.0.1"), offer.candidates[0].port}, ignored);
      visitor.non_blocking(true, ignored);
    }
    dtrun::Tcp::socket& visitor = visitors[in.Below(visitors.size())];
    std::string bytes;
    switch (in.Below(5)) {
      case 0: {
        net::Greeting greeting{in.Byte(), net::NewChallenge(),
                               in.Coin() ? net::Purpose::kReach : net::Purpose::kBurst};
        bytes = net::GreetingBytes(kKey, greeting);
        if (in.Rarely()) bytes[in.Byte() % bytes.size()] ^= static_cast<char>(1 + in.Below(255));
        if (in.Rarely()) bytes.resize(in.Byte() % bytes.size());
        break;
      }
      case 1: bytes.assign(net::kLargeMessageBytes / (1 + in.Below(3)), 'x'); break;
      case 2: bytes = in.Bytes(100); break;
      case 3: visitor.close(ignored); break;
      default: visitor.shutdown(dtrun::Tcp::socket::shutdown_send, ignored);
    }
    if (!bytes.empty() && visitor.is_open())
      (void)!::send(visitor.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    Turn(loop);
    char sink[4096];
    if (visitor.is_open() && in.Coin())
      (void)!::recv(visitor.native_handle(), sink, sizeof sink, MSG_DONTWAIT);
  }
}

// Another host's door, played by the fuzzer, that host 0 tries to reach or to send a burst to.
void Answer(Source& in) {
  dtrun::asio::io_context loop;
  dtrun::Tcp::acceptor acceptor(loop, {dtrun::asio::ip::make_address("127.0.0.2"), 0});
  net::Offer own;
  own.candidates = {Loopback()};
  net::Prover prover(loop, 0, kKey, &own);
  net::Candidate theirs = Loopback();
  theirs.address.ip = dtrun::asio::ip::make_address("127.0.0.2");
  theirs.port = acceptor.local_endpoint().port();
  bool done = false;
  const auto proven = [&](const std::vector<net::Attempt>& attempts) {
    for (const net::Attempt& one : attempts)
      Require(one.from == 0 && one.to == 0 && one.peer == 1, "a try of what is not there");
    done = true;
  };
  if (in.Coin()) {
    prover.Prove({{1, {theirs}}}, false, std::chrono::milliseconds(200), proven);
  } else {
    prover.Measure(0, 1, theirs, false, 0, [&](const net::Throughput& seen) {
      Require(seen.bits_per_s >= 0, "a negative rate");
      done = true;
    });
  }
  dtrun::error_code error;
  acceptor.non_blocking(true, error);
  dtrun::Tcp::socket visitor(loop);
  for (int i = 0; i < 100 && !visitor.is_open() && !done; ++i) {
    Turn(loop);
    acceptor.accept(visitor, error);
  }
  std::string heard;
  char bytes[net::kGreetingBytes];
  for (int i = 0; i < 100 && visitor.is_open() && heard.size() < net::kGreetingBytes && !done; ++i) {
    Turn(loop);
    const ssize_t size = ::recv(visitor.native_handle(), bytes, sizeof bytes - heard.size(), MSG_DONTWAIT);
    if (size > 0) heard.append(bytes, static_cast<std::size_t>(size));
  }
  const auto greeting = net::ReadGreeting(kKey, heard);
  for (int steps = 0; !in.empty() && steps < 20 && visitor.is_open() && !done; ++steps) {
    std::string said;
    switch (in.Below(4)) {
      case 0:
        if (greeting) said = net::AnswerBytes(kKey, greeting->challenge, in.Rarely() ? in.Byte() : 1);
        break;
      case 1: said.assign(net::kLargeMessageBytes, 'y'); break;
      case 2: {
        net::BurstCount count{static_cast<std::uint64_t>(in.Number()), in.Number()};
        said.assign(reinterpret_cast<const char*>(&count), sizeof count);
        break;
      }
      default: said = in.Bytes(100);
    }
    (void)!::send(visitor.native_handle(), said.data(), said.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    Turn(loop);
  }
  visitor.close(error);
  acceptor.close(error);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!done) {
    loop.restart();
    loop.run_one_for(std::chrono::milliseconds(50));
    Require(std::chrono::steady_clock::now() < deadline, "a try that does not end");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Source in(data, size);
  in.Coin() ? Knock(in) : Answer(in);
  return 0;
}
