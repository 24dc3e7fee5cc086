// A link between root and agent: authenticated, encrypted, ordered messages both ways.
//
// Made by Listener or Dialer, owned by whoever they hand it to. Lives on one event loop;
// every member and handler runs on the loop's thread. Both ends send heartbeats when they
// have nothing else to say, and notice a silent peer within the loss limit, whether or not
// TCP does. A loop that is blocked for longer than the peer's limit is given up by the peer.
//
// A handler may destroy the channel. Destroying it without Close drops the connection at
// once, which the peer sees as a loss.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/error.h"

namespace dtrun::protocol {

inline constexpr std::size_t kMaxMessageBytes = std::size_t{64} << 20;

// Why a channel ended.
struct Loss {
  bool closed = false;  // the peer said goodbye: it called Close and will send nothing more
  Error error;          // in words, either way; names the peer
};

class Channel {
 public:
  struct Handlers {
    // One whole message; the bytes are valid during the call. Messages may be empty.
    std::function<void(std::string_view message)> on_message;
    // At most once, and last: nothing is called after it, nor after Close or the destructor.
    std::function<void(const Loss& loss)> on_lost;
    // Optional: everything that was queued has been handed to the system.
    std::function<void()> on_drained;
  };

  virtual ~Channel() = default;

  // Begins to read and to expect heartbeats. Once, soon after the channel was handed over,
  // because nobody watches the peer before. Nothing is called from within Start.
  virtual void Start(Handlers handlers) = 0;

  // Queues a message; never blocks, never calls a handler from within. After the end of the
  // channel it does nothing. REQUIRES: message.size() <= kMaxMessageBytes; a larger one ends
  // the channel as lost.
  virtual void Send(std::string_view message) = 0;

  // What Send took and the system did not, for back-pressure.
  virtual std::size_t queued_bytes() const = 0;

  // While paused no message is delivered and soon nothing is read, so that the peer's queue
  // grows instead of ours. Silence is not counted meanwhile.
  virtual void Pause() = 0;
  virtual void Resume() = 0;

  // Sends what is queued and a goodbye, then ends; no handler is called from here on.
  // `done` is called once the peer has taken everything, or when it did not within the loss
  // limit. The object may be destroyed meanwhile: the loop finishes the work.
  virtual void Close(std::function<void()> done = {}) = 0;

  // "10.0.0.7:5555"
  virtual const std::string& peer() const = 0;
};

}  // namespace dtrun::protocol
