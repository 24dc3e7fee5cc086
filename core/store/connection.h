// One connection from a rank to its agent's store, for requests and their replies.
//
// Also passes a file descriptor from an agent to its ranks through a Unix socket, which works for a rank in
// its own user and PID namespaces too, where /proc/PID/fd does not. Owned by one thread, except that any
// thread may call Interrupt.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/store/protocol.h"

namespace dtrun::store {

// Connects to an agent's socket by its path, or by the abstract name with the same text, for ranks in
// containers that do not see the path. The abstract name is accepted only if the agent runs as this user.
Result<UniqueFd> ConnectToAgent(const std::filesystem::path& socket);

// Whether the peer of a Unix socket is a process of this user.
bool IsOfThisUser(int socket);

class Connection {
 public:
  using Clock = std::chrono::steady_clock;

  static Result<Connection> Open(const std::filesystem::path& socket);

  // Sends `body` and waits for its reply, until `deadline` if set. The agent limits waits itself, so the
  // deadline expires only if the agent does not answer at all. After an error the connection is unusable. A
  // reply with an error status is not an error of Call.
  Result<Reply> Call(Body body, std::optional<Clock::time_point> deadline);

  // Makes the running and every later Call fail with DTRUN_REMOTE_FAILURE. [any thread]
  static void Interrupt(int fd);
  int fd() const { return fd_.get(); }

 private:
  explicit Connection(UniqueFd fd) : fd_(std::move(fd)) {}
  Status SendAll(std::string_view bytes, std::optional<Clock::time_point> deadline);
  Status Await(short events, std::optional<Clock::time_point> deadline);

  UniqueFd fd_;
  wire::FrameReader frames_{kMaxFrameBytes};
  std::uint32_t last_id_ = 0;
};

// For the agent's loop thread: never blocks. Ignores a peer that is gone.
void SendDescriptor(int socket, int descriptor);

// Connects to `socket`, as for the store, and receives the descriptor; blocks until the agent sends. Any
// thread.
Result<UniqueFd> ReceiveDescriptor(const std::filesystem::path& socket);

}  // namespace dtrun::store
