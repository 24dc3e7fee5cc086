#include "core/agent/dismiss.h"

#include <algorithm>
#include <chrono>

namespace dtrun::agent {
namespace {

// What agents and their remote shells may take to leave.
constexpr std::chrono::seconds kDismissal{2};

}  // namespace

void Dismiss(boost::asio::io_context& loop, const std::vector<RemoteHost*>& hosts, int exit_code,
             const std::string& why) {
  std::size_t left = 0;
  for (RemoteHost* host : hosts) {
    if (host == nullptr || host->lost()) continue;
    ++left;
    host->Leave(exit_code, why, [&left] { --left; });
  }
  bool over = false;
  boost::asio::steady_timer timer(loop, kDismissal);
  timer.async_wait([&over](const boost::system::error_code& error) { over = over || !error; });
  const auto away = [&] {
    return left == 0 && std::ranges::none_of(hosts, [](RemoteHost* host) {
             return host && !host->lost() && host->attached();
           });
  };
  while (!over && !away() && loop.run_one() > 0) {
  }
  timer.cancel();
  loop.poll();  // handlers that refer to what ends here
}

}  // namespace dtrun::agent
