// Not a test: prints the join time of agents, the round-trip time and the throughput, with root and agents on
// one loop of one process.
#include <fmt/format.h>

#include <algorithm>

#include "core/protocol/testing.h"

namespace {

using namespace dtrun::protocol;
using namespace dtrun::protocol::testing;
using Clock = std::chrono::steady_clock;

double Since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void Print(const char* what, std::vector<double> values, const char* unit) {
  std::sort(values.begin(), values.end());
  fmt::print("{:32} min {:8.2f}  median {:8.2f}  max {:8.2f} {}\n", what, values.front(),
             values[values.size() / 2], values.back(), unit);
}

void Join() {
  std::vector<double> times;
  for (int round = 0; round < 9; ++round) {
    boost::asio::io_context loop;
    Root root(loop);
    const auto start = Clock::now();
    std::vector<std::unique_ptr<Agent>> agents;
    for (int i = 0; i < 64; ++i) agents.push_back(std::make_unique<Agent>(loop, root.Way()));
    std::size_t ended = 0;
    RunUntil(loop, [&] {
      while (ended < agents.size() && agents[ended]->ended) ++ended;
      return ended == agents.size() && root.joined.size() == 64;
    });
    times.push_back(Since(start) * 1e3);
  }
  Print("64 agents join", times, "ms");
}

void RoundTrip() {
  Pair pair(seconds(60), seconds(60), false);
  pair.far.on_message = [&](std::string_view message) { pair.far.channel->Send(message); };
  std::vector<double> times;
  for (std::size_t i = 1; i <= 5000; ++i) {
    const auto start = Clock::now();
    pair.near.channel->Send("12345678");
    RunUntil(pair.loop, [&] { return pair.near.count == i; });
    times.push_back(Since(start) * 1e6);
  }
  Print("round trip of 8 bytes", times, "us");
}

void Stream() {
  constexpr std::size_t kBytes = 64 << 10, kMessages = 4096, kAhead = 4 << 20;
  std::vector<double> rates;
  for (int round = 0; round < 9; ++round) {
    Pair pair(seconds(60), seconds(60), false);
    const std::string message(kBytes, 'x');
    std::size_t sent = 0;
    const auto start = Clock::now();
    RunUntil(pair.loop, [&] {
      while (sent < kMessages && pair.near.channel->queued_bytes() < kAhead) {
        pair.near.channel->Send(message);
        ++sent;
      }
      return pair.far.count == kMessages;
    });
    rates.push_back(static_cast<double>(kBytes * kMessages) / Since(start) / 1e6);
  }
  Print("64 KiB messages, one way", rates, "MB/s");
}

}  // namespace

int main() {
  Join();
  RoundTrip();
  Stream();
}
