// One connection from a rank to its agent's store: a request out, its reply back.
//
// Not shared between threads, except that Interrupt may come from any thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>

#include "core/base/fd.h"
#include "core/base/units.h"
#include "core/store/protocol.h"

namespace dtrun::store {

// Connects to an agent's socket: by its path, or by the abstract name of the same text where a rank in a
// container does not see that path. Only an agent of this user is believed there.
Result<UniqueFd> ConnectToAgent(const std::filesystem::path& socket);

// Whether a process of this user has the other end of a Unix socket.
bool IsOfThisUser(int socket);

class Connection {
 public:
  using Clock = std::chrono::steady_clock;

  static Result<Connection> Open(const std::filesystem::path& socket);

  // Sends `body` and waits for its reply, until `deadline` when there is one. The agent
  // bounds waits itself, so a deadline passes only when it does not answer at all. After an
  // error the connection is of no more use; a reply with a status of its own is no error.
  Result<Reply> Call(Body body, std::optional<Clock::time_point> deadline);

  // Makes a running and every later Call fail with DTRUN_REMOTE_FAILURE. [any thread]
  static void Interrupt(int fd);
  int fd() const { return fd_.get(); }

 private:
  explicit Connection(UniqueFd fd) : fd_(std::move(fd)) {}
  Status SendAll(std::string_view bytes, std::optional<Clock::time_point> deadline);
  Status Await(short events, std::optional<Clock::time_point> deadline);

  UniqueFd fd_;
  FrameReader frames_{kMaxFrameBytes};
  std::uint32_t last_id_ = 0;
};

}  // namespace dtrun::store
