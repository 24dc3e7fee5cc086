#include "core/protocol/channel.h"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <cstdint>
#include <optional>

#include "core/base/number.h"
#include "core/base/timer.h"
#include "core/protocol/connection.h"
#include "core/protocol/hello.h"

namespace dtrun::protocol {
namespace {

constexpr int kBeatsPerLimit = 5;
// Counts silence in checks instead of clock time, so that a process that was itself stopped or starved does
// not blame its peer for the time it missed.
constexpr int kLooksPerLimit = 10;
// RFC 8446, section 5.5, limits the bytes per key; a new key costs next to nothing.
constexpr std::size_t kBytesPerKey = std::size_t{64} << 20;
constexpr std::size_t kKeptBytes = 1 << 20;  // capacity that an empty queue keeps

class Link : public std::enable_shared_from_this<Link> {
 public:
  Link(std::shared_ptr<Connection> connection, Nanoseconds our_limit, Nanoseconds peer_limit)
      : connection_(std::move(connection)),
        our_limit_(our_limit),
        peer_limit_(peer_limit),
        beat_timer_(connection_->stream.get_executor()),
        watch_timer_(connection_->stream.get_executor()) {
    connection_->frames.SetLimit(kMaxMessageBytes + 1);
  }

  void Start(Channel::Handlers handlers) {
    if (state_ == State::kClosing) return;
    handlers_ = std::make_shared<Channel::Handlers>(std::move(handlers));
    if (state_ == State::kEnded) return Later([](Link& link) { link.Report(); });
    Beat();
    Watch();
    // Deliver frames that arrived together with the hello.
    Later([](Link& link) { link.Deliver(); });
  }

  void Queue(Kind kind, std::string_view message) {
    const auto size = static_cast<std::uint32_t>(message.size() + 1);
    queue_.append(reinterpret_cast<const char*>(&size), sizeof size);
    queue_.push_back(static_cast<char>(kind));
    queue_.append(message);
    Write();
  }

  void QueueFrame(std::string_view frame) {
    queue_.append(frame);
    Write();
  }

  void Send(std::string_view message) {
    if (state_ != State::kOpen) return;
    if (message.size() <= kMaxMessageBytes) return Queue(Kind::kMessage, message);
    Later([size = message.size()](Link& link) {
      link.Lose(DTRUN_INTERNAL,
                fmt::format("cannot send a message of {} bytes; the limit is {}", size, kMaxMessageBytes));
    });
  }

  std::size_t queued_bytes() const { return queue_.size() + writing_.size(); }

  void Close(std::function<void()> done) {
    if (state_ != State::kOpen) {
      if (done) Later([done = std::move(done)](Link&) { done(); });
      return;
    }
    state_ = State::kClosing;
    done_ = std::move(done);
    handlers_.reset();
    beat_timer_.Cancel();
    watch_timer_.After(our_limit_, [self = shared_from_this()] { self->End(); });
    Queue(Kind::kGoodbye, {});
    if (!reading_) Read();
  }

  // The owner has been destroyed.
  void Drop() {
    if (state_ == State::kClosing) return;
    handlers_.reset();
    End();
  }

  const std::string& peer() const { return connection_->peer; }

 private:
  enum class State { kOpen, kClosing, kEnded };

  // Runs `action` from the loop instead of from within a member that the owner called.
  template <class Action>
  void Later(Action action) {
    asio::post(connection_->stream.get_executor(),
               [self = shared_from_this(), action = std::move(action)] { action(*self); });
  }

  void Beat() {
    beat_timer_.After(peer_limit_ / kBeatsPerLimit, [self = shared_from_this()] {
      if (self->queued_bytes() == 0) self->Queue(Kind::kAlive, {});
      self->Beat();
    });
  }

  void Watch() {
    watch_timer_.After(our_limit_ / kLooksPerLimit, [self = shared_from_this()] { self->Look(); });
  }

  void Look() {
    if (std::exchange(heard_, false) || !reading_) {
      silent_looks_ = 0;
    } else if (++silent_looks_ == kLooksPerLimit - 1) {  // the last sign of life may be one check older
      return Lose(DTRUN_TIMEOUT, fmt::format("silent for {} although the connection is open; its process or "
                                             "machine is stopped, or the network between is broken",
                                             FormatDuration(our_limit_)));
    }
    Watch();
  }

  void Read() {
    reading_ = true;
    connection_->stream.async_read_some(
        asio::buffer(connection_->chunk),
        [self = shared_from_this()](const error_code& error, std::size_t size) {
          self->reading_ = false;
          self->HandleRead(error, size);
        });
  }

  void HandleRead(const error_code& error, std::size_t size) {
    if (state_ == State::kEnded) return;
    if (state_ == State::kClosing) {  // ignore incoming bytes, wait for the end
      if (error) return End();
      return Read();
    }
    if (error) {
      return Lose(DTRUN_REMOTE_FAILURE,
                  fmt::format("the connection broke without a goodbye ({}); its process ended or was killed, "
                              "or the network dropped the connection",
                              error.message()));
    }
    heard_ = true;
    connection_->frames.Append({connection_->chunk.data(), size});
    Deliver();
  }

  void Deliver() {
    if (reading_ || delivering_) return;
    delivering_ = true;
    while (state_ == State::kOpen) {
      Result<std::optional<std::string_view>> frame = connection_->frames.Next();
      if (!frame) {
        Lose(DTRUN_INVALID_ARGUMENT, frame.error().text + "; is it the same dtrun?");
      } else if (!frame->has_value()) {
        Read();
        break;
      } else {
        Handle(**frame);
      }
    }
    delivering_ = false;
  }

  void Handle(std::string_view frame) {
    switch (KindOf(frame)) {
      case Kind::kAlive: return;
      case Kind::kMessage: {
        const auto handlers = handlers_;  // kept alive during a Close from within
        if (handlers->on_message) handlers->on_message(frame.substr(1));
        return;
      }
      case Kind::kGoodbye: return Finish({true, {DTRUN_ABORTED, peer() + " closed the control link"}});
      default:
        return Lose(DTRUN_INVALID_ARGUMENT,
                    fmt::format("it sent a frame of kind {}, which is not expected here; is it the same "
                                "dtrun?",
                                static_cast<int>(KindOf(frame))));
    }
  }

  void Write() {
    if (!writing_.empty() || queue_.empty()) return;
    writing_.swap(queue_);
    sent_with_key_ += writing_.size();
    if (sent_with_key_ > kBytesPerKey) {
      sent_with_key_ = 0;
      if (SSL_key_update(connection_->stream.native_handle(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1) {
        return Later([](Link& link) { link.Lose(DTRUN_VENDOR, "OpenSSL did not change the key"); });
      }
    }
    asio::async_write(
        connection_->stream, asio::buffer(writing_),
        [self = shared_from_this()](const error_code& error, std::size_t) { self->HandleWritten(error); });
  }

  void HandleWritten(const error_code& error) {
    writing_.clear();
    if (writing_.capacity() > kKeptBytes) std::string().swap(writing_);
    if (state_ == State::kEnded) return;
    if (error) {
      if (state_ == State::kClosing) return End();
      return Lose(DTRUN_REMOTE_FAILURE, fmt::format("sending failed: {}", error.message()));
    }
    if (!queue_.empty()) return Write();
    if (state_ == State::kClosing) return connection_->EndSending();
    const auto handlers = handlers_;
    if (handlers && handlers->on_drained) handlers->on_drained();
  }

  void Lose(dtrun_status code, std::string_view why) {
    Finish({false, {code, fmt::format("the control link to {} is lost: {}", peer(), why)}});
  }

  void Finish(Loss loss) {
    if (state_ != State::kOpen) return;
    state_ = State::kEnded;
    loss_ = std::move(loss);
    Release();
    Report();
  }

  // If the loss happened before Start, waits for Start.
  void Report() {
    if (!loss_ || !handlers_) return;
    const auto handlers = std::exchange(handlers_, nullptr);
    if (handlers->on_lost) handlers->on_lost(*loss_);
  }

  void End() {
    if (state_ == State::kEnded) return;
    state_ = State::kEnded;
    Release();
    handlers_.reset();
    if (auto done = std::exchange(done_, nullptr)) done();
  }

  void Release() {
    beat_timer_.Cancel();
    watch_timer_.Cancel();
    connection_->Close();
  }

  std::shared_ptr<Connection> connection_;
  const Nanoseconds our_limit_;
  const Nanoseconds peer_limit_;
  Timer beat_timer_;
  Timer watch_timer_;  // limits silence; limits the goodbye when closing
  std::shared_ptr<Channel::Handlers> handlers_;
  std::function<void()> done_;
  std::optional<Loss> loss_;
  std::string queue_;    // frames not yet given to TLS
  std::string writing_;  // frames of the write in progress
  std::size_t sent_with_key_ = 0;
  State state_ = State::kOpen;
  bool reading_ = false;
  bool delivering_ = false;
  bool heard_ = true;
  int silent_looks_ = 0;
};

// The object that the owner holds.
class Handle final : public Channel {
 public:
  explicit Handle(std::shared_ptr<Link> link) : link_(std::move(link)) {}
  ~Handle() override { link_->Drop(); }
  void Start(Handlers handlers) override { link_->Start(std::move(handlers)); }
  void Send(std::string_view message) override { link_->Send(message); }
  std::size_t queued_bytes() const override { return link_->queued_bytes(); }
  void Close(std::function<void()> done) override { link_->Close(std::move(done)); }
  const std::string& peer() const override { return link_->peer(); }

 private:
  std::shared_ptr<Link> link_;
};

}  // namespace

std::unique_ptr<Channel> MakeChannel(std::shared_ptr<Connection> connection, Nanoseconds our_limit,
                                     Nanoseconds peer_limit, const std::string& first) {
  auto link = std::make_shared<Link>(std::move(connection), our_limit, peer_limit);
  if (!first.empty()) link->QueueFrame(first);
  return std::make_unique<Handle>(std::move(link));
}

}  // namespace dtrun::protocol
