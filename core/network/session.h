// One connection of a connectivity check with a deadline: the part that both ends share.
//
// Held by a shared_ptr, which its pending operations also hold. Loop thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/timer.h"

namespace dtrun::network {

// Several times the largest MTU, so that its packets have full size.
inline constexpr std::size_t kLargeMessageBytes = 64 << 10;
inline constexpr std::chrono::milliseconds kBandwidthProbe{30};
// A bandwidth probe that has received less than this by then (140 Mbit/s) continues for longer: on a busy
// host the CPU may be the bottleneck.
inline constexpr std::size_t kLittleBytes = 512 << 10;
inline constexpr std::chrono::milliseconds kLongBandwidthProbe{150};

// The result of a bandwidth probe.
struct ProbeCount {
  std::uint64_t bytes = 0;
  std::int64_t time_ns = 0;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  using Sent = std::function<void(const error_code&)>;
  using Received = std::function<void(const error_code&, const std::string& bytes)>;

  explicit Session(asio::io_context& loop) : socket(loop), deadline_(loop) {}

  // Closes the socket after `time`.
  void Limit(std::chrono::nanoseconds time);
  // Pending operations end with an error.
  void Close();

  // Transfers all bytes or fails. At most one Send and one Receive at a time.
  void Send(std::string bytes, Sent done);
  void Receive(std::size_t size, Received done);

  Tcp::socket socket;
  bool connected = false;  // the other end's kernel has accepted the connection

 private:
  Timer deadline_;
  std::string out_, in_;
};

// Sets close-on-exec on an open socket: Asio does not, so started processes would inherit it.
void CloseOnExec(int socket);

}  // namespace dtrun::network
