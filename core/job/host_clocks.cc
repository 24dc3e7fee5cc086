#include "core/job/host_clocks.h"

#include <utility>

namespace dtrun::job {
namespace {

constexpr int kRoundTrips = 8;
constexpr std::chrono::seconds kBetweenLooks{30};

}  // namespace

HostClocks::HostClocks(asio::io_context& loop, std::size_t hosts, Hooks hooks)
    : hooks_(std::move(hooks)), hosts_(hosts), timer_(loop) {
  Look();
}

void HostClocks::Look() {
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    hosts_[host].left = kRoundTrips;
    hosts_[host].shortest = 0;
    Ask(host);
  }
  timer_.After(kBetweenLooks, [this] { Look(); });
}

void HostClocks::Ask(std::size_t host) {
  Asked& asked = hosts_[host];
  asked.number = ++last_;
  asked.sent = protocol::WallClock();
  hooks_.ask(host, {asked.number});
}

void HostClocks::On(std::size_t host, const protocol::ClockRead& read) {
  Asked& asked = hosts_[host];
  const std::uint64_t now = protocol::WallClock();
  if (read.number != asked.number || asked.left == 0 || now < asked.sent) return;
  const std::uint64_t trip = now - asked.sent + 1;
  if (asked.shortest == 0 || trip < asked.shortest) {
    asked.shortest = trip;
    asked.ahead = static_cast<std::int64_t>(read.nanoseconds - (asked.sent + trip / 2));
  }
  if (--asked.left > 0) return Ask(host);
  hooks_.found(host, {{}, asked.ahead, asked.shortest / 2 + 1});
}

}  // namespace dtrun::job
