// A link between root and agent: authenticated, encrypted, ordered messages both ways.
//
// Made by Listener or Dialer, and owned by the code that receives it. Lives on one event loop; every member
// and handler runs on the loop's thread. Both ends send heartbeats when idle, and detect a silent peer within
// the loss limit, even if TCP does not. If a loop blocks for longer than the peer's limit, the peer gives up
// the channel.
//
// A handler may destroy the channel. Destruction without Close drops the connection at once; the peer sees a
// loss.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/base/error.h"

namespace dtrun::protocol {

inline constexpr std::size_t kMaxMessageBytes = std::size_t{64} << 20;

// Why a channel ended.
struct Loss {
  bool closed = false;  // the peer called Close and will send nothing more
  Error error;          // set in both cases; names the peer
};

class Channel {
 public:
  struct Handlers {
    // One whole message; the bytes are valid during the call. Messages may be empty.
    std::function<void(std::string_view message)> on_message;
    // At most once, and last: nothing is called after it, nor after Close or the destructor.
    std::function<void(const Loss& loss)> on_lost;
    // Optional: all queued bytes have been passed to the system.
    std::function<void()> on_drained;
  };

  virtual ~Channel() = default;

  // Begins to read and to expect heartbeats. Call once, soon after the channel was handed over: before that,
  // a silent peer is not detected. Calls no handler from within.
  virtual void Start(Handlers handlers) = 0;

  // Queues a message; never blocks, never calls a handler from within. After the end of the
  // channel it does nothing. REQUIRES: message.size() <= kMaxMessageBytes; a larger one ends
  // the channel as lost.
  virtual void Send(std::string_view message) = 0;

  // Bytes passed to Send that the system has not accepted, for back-pressure.
  virtual std::size_t queued_bytes() const = 0;

  // Sends the queued messages and a goodbye, then ends; no handler is called from here on. Calls `done` once
  // the peer has received everything, or when the loss limit is over. The object may be destroyed meanwhile:
  // the loop finishes the work.
  virtual void Close(std::function<void()> done = {}) = 0;

  // "10.0.0.7:5555"
  virtual const std::string& peer() const = 0;
};

}  // namespace dtrun::protocol
