// Networks being checked, from both ends: who knocks at a host's listeners may know the key and still say
// anything, and so may who answers a host's tries. Over loopback; every input is one exchange.
#include <sys/socket.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <vector>

#include "core/network/connectivity_check.h"
#include "core/network/handshake.h"
#include "core/network/session.h"
#include "tests/fuzz/source.h"
#include "tests/fuzz/target.h"

namespace connectivity_fuzz {

using namespace dtrun;
using dtrun::fuzz::Source;

const std::string kKey(32, 'k');

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

network::Candidate Loopback() {
  network::Candidate one;
  one.interface = "lo";
  one.kind = network::Kind::kLoopback;
  one.address = {dtrun::asio::ip::make_address("127.0.0.1"), 8};
  return one;
}

void Turn(dtrun::asio::io_context& loop) {
  loop.restart();
  for (int i = 0; i < 8; ++i) loop.poll();
}

// Peers of host 1's listeners.
void Knock(Source& in) {
  dtrun::asio::io_context loop;
  network::Offer offer;
  offer.candidates = {Loopback()};
  network::ConnectivityCheck connectivity_check(loop, 1, kKey, &offer);
  Require(offer.candidates.size() == 1, "nothing to knock at");
  std::vector<dtrun::Tcp::socket> peers;
  for (int steps = 0; !in.empty() && steps < 40; ++steps) {
    dtrun::error_code ignored;
    if (peers.empty() || (in.Below(4) == 0 && peers.size() < 8)) {
      dtrun::Tcp::socket& peer = peers.emplace_back(loop);
      peer.connect({dtrun::asio::ip::make_address("127.0.0.1"), offer.candidates[0].port}, ignored);
      peer.non_blocking(true, ignored);
    }
    dtrun::Tcp::socket& peer = peers[in.Below(peers.size())];
    std::string bytes;
    switch (in.Below(5)) {
      case 0: {
        network::Hello hello{in.Byte(), network::NewChallenge(),
                             in.Coin() ? network::Purpose::kReach : network::Purpose::kBandwidthProbe};
        bytes = network::HelloBytes(kKey, hello);
        if (in.Rarely()) bytes[in.Byte() % bytes.size()] ^= static_cast<char>(1 + in.Below(255));
        if (in.Rarely()) bytes.resize(in.Byte() % bytes.size());
        break;
      }
      case 1: bytes.assign(network::kLargeMessageBytes / (1 + in.Below(3)), 'x'); break;
      case 2: bytes = in.Bytes(100); break;
      case 3: peer.close(ignored); break;
      default: peer.shutdown(dtrun::Tcp::socket::shutdown_send, ignored);
    }
    if (!bytes.empty() && peer.is_open())
      (void)!::send(peer.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    Turn(loop);
    char sink[4096];
    if (peer.is_open() && in.Coin()) (void)!::recv(peer.native_handle(), sink, sizeof sink, MSG_DONTWAIT);
  }
}

// Another host's listener, played by the fuzzer, that host 0 tries to reach or to send a bandwidth probe to.
void Answer(Source& in) {
  dtrun::asio::io_context loop;
  dtrun::Tcp::acceptor acceptor(loop, {dtrun::asio::ip::make_address("127.0.0.2"), 0});
  network::Offer own;
  own.candidates = {Loopback()};
  network::ConnectivityCheck connectivity_check(loop, 0, kKey, &own);
  network::Candidate theirs = Loopback();
  theirs.address.ip = dtrun::asio::ip::make_address("127.0.0.2");
  theirs.port = acceptor.local_endpoint().port();
  bool done = false;
  const auto connected = [&](const std::vector<network::Attempt>& attempts) {
    for (const network::Attempt& one : attempts)
      Require(one.from == 0 && one.to == 0 && one.peer == 1, "a try of what is not there");
    done = true;
  };
  if (in.Coin()) {
    connectivity_check.Run({{1, {theirs}}}, false, std::chrono::milliseconds(200), connected);
  } else {
    connectivity_check.Measure(0, 1, theirs, false, 0, [&](const network::Throughput& seen) {
      Require(seen.bits_per_s >= 0, "a negative rate");
      done = true;
    });
  }
  dtrun::error_code error;
  acceptor.non_blocking(true, error);
  dtrun::Tcp::socket peer(loop);
  for (int i = 0; i < 100 && !peer.is_open() && !done; ++i) {
    Turn(loop);
    acceptor.accept(peer, error);
  }
  std::string heard;
  char bytes[network::kHelloBytes];
  for (int i = 0; i < 100 && peer.is_open() && heard.size() < network::kHelloBytes && !done; ++i) {
    Turn(loop);
    const ssize_t size = ::recv(peer.native_handle(), bytes, sizeof bytes - heard.size(), MSG_DONTWAIT);
    if (size > 0) heard.append(bytes, static_cast<std::size_t>(size));
  }
  const auto hello = network::ReadHello(kKey, heard);
  for (int steps = 0; !in.empty() && steps < 20 && peer.is_open() && !done; ++steps) {
    std::string said;
    switch (in.Below(4)) {
      case 0:
        if (hello) said = network::AnswerBytes(kKey, hello->challenge, in.Rarely() ? in.Byte() : 1);
        break;
      case 1: said.assign(network::kLargeMessageBytes, 'y'); break;
      case 2: {
        network::ProbeCount count{static_cast<std::uint64_t>(in.Number()), in.Number()};
        said.assign(reinterpret_cast<const char*>(&count), sizeof count);
        break;
      }
      default: said = in.Bytes(100);
    }
    (void)!::send(peer.native_handle(), said.data(), said.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    Turn(loop);
  }
  peer.close(error);
  acceptor.close(error);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!done) {
    loop.restart();
    loop.run_one_for(std::chrono::milliseconds(50));
    Require(std::chrono::steady_clock::now() < deadline, "a try that does not end");
  }
}

DTRUN_FUZZ_TARGET(connectivity)(const std::uint8_t* data, std::size_t size) {
  Source in(data, size);
  in.Coin() ? Knock(in) : Answer(in);
  return 0;
}

}  // namespace connectivity_fuzz
