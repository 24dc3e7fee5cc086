#include "core/process/stops.h"

#include <sys/wait.h>

#include <chrono>
#include <utility>

namespace dtrun::process {

Stops::Stops(boost::asio::io_context& loop, std::function<void(pid_t child, int signal)> stopped,
             std::function<bool(pid_t child)> ours)
    : timer_(loop), stopped_(std::move(stopped)), ours_(std::move(ours)) {
  Wait();
}

void Stops::Wait() {
  timer_.expires_after(std::chrono::milliseconds(200));
  timer_.async_wait([this, ended = ended_](const boost::system::error_code& error) {
    if (error || *ended) return;
    Look();
    Wait();
  });
}

void Stops::Look() {
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WSTOPPED | WCONTINUED | WNOHANG) != 0 || info.si_pid == 0) return;
    if (info.si_code == CLD_CONTINUED) {
      signals_.erase(info.si_pid);
    } else if (!ours_(info.si_pid)) {
      signals_[info.si_pid] = info.si_status;
      stopped_(info.si_pid, info.si_status);
    }
  }
}

int Stops::SignalOf(pid_t child) const {
  const auto found = signals_.find(child);
  return found == signals_.end() ? 0 : found->second;
}

}  // namespace dtrun::process
