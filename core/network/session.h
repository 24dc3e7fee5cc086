// One connection of a connectivity check, with a deadline: what both ends of it share.
//
// Held by a shared_ptr, as its operations do while they are under way. Loop thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/asio.h"

namespace dtrun::network {

// Several times the largest MTU, so that no packet of it fits into a small one.
inline constexpr std::size_t kLargeMessageBytes = 64 << 10;
inline constexpr std::chrono::milliseconds kBandwidthProbe{30};
// A bandwidth probe of which so little has come by then, 140 Mbit/s, goes on for longer: on a busy host it
// may be the processor that was missing.
inline constexpr std::size_t kLittleBytes = 512 << 10;
inline constexpr std::chrono::milliseconds kLongBandwidthProbe{150};

// What came of a bandwidth probe.
struct ProbeCount {
  std::uint64_t bytes = 0;
  std::int64_t time_ns = 0;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  using Sent = std::function<void(const error_code&)>;
  using Received = std::function<void(const error_code&, const std::string& bytes)>;

  explicit Session(asio::io_context& loop) : socket(loop), deadline_(loop) {}

  // Closes the socket when `time` has passed.
  void Limit(std::chrono::nanoseconds time);
  // What is under way ends with an error.
  void Close();

  // All of them, or an error. One of each at a time.
  void Send(std::string bytes, Sent done);
  void Receive(std::size_t size, Received done);

  Tcp::socket socket;
  bool connected = false;  // the other end's kernel has taken the connection

 private:
  asio::steady_timer deadline_;
  std::string out_, in_;
};

// For an open socket: Asio would let the processes that we start inherit it.
void CloseOnExec(int socket);

}  // namespace dtrun::network
