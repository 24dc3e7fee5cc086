// The console's writer thread. The loop thread queues lines and states under the mutex. The writer dequeues
// them and writes without holding it.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/thread.h"
#include "core/output/backlog.h"
#include "core/output/display.h"
#include "core/output/output.h"
#include "core/output/sink.h"

namespace dtrun::output {
namespace {

using Clock = Sink::Clock;

constexpr std::string_view kErase = "\r\033[K";
// Minimum time between redraws of the status line. Updates in between are drawn together.
constexpr auto kFrame = std::chrono::milliseconds(100);
// Redraw earlier if this many bytes are waiting.
constexpr std::size_t kEager = 256 << 10;
constexpr int kLastPatienceMs = 5000;
// GiveUp: time limit for the reader of the other stream.
constexpr std::chrono::seconds kForTheOther{1};

constexpr Stream kStreams[] = {Stream::kOut, Stream::kErr};

// The states of all sources; shows the one that changed last.
class StatusBoard {
 public:
  void Set(int source, std::string_view text) {
    const auto old =
        std::find_if(states_.begin(), states_.end(), [&](auto& state) { return state.first == source; });
    if (text.empty()) {
      if (old != states_.end()) states_.erase(old);
      return;
    }
    if (old == states_.end()) {
      states_.emplace_back(source, text);
    } else {
      old->second = text;
      std::rotate(old, old + 1, states_.end());
    }
  }
  void Clear() { states_.clear(); }
  std::string_view newest() const { return states_.empty() ? std::string_view() : states_.back().second; }

 private:
  std::vector<std::pair<int, std::string>> states_;  // newest last
};

std::size_t IndexOf(Stream stream) { return stream == Stream::kErr ? 1 : 0; }

class ThreadConsole final : public Console {
 public:
  ThreadConsole(int out_fd, int err_fd, const std::filesystem::path& spill_folder)
      : out_(out_fd), err_(err_fd), backlog_(spill_folder) {
    // Signals are handled by the loop thread. Here SIGPIPE becomes an error and SIGTTOU is ignored.
    try {
      writer_ = StartThread("dtrun-console", [this] { Run(); });
    } catch (const std::system_error& error) {
      errno = error.code().value();
    }
  }

  ~ThreadConsole() override {
    if (!started()) return;
    {
      const std::lock_guard lock(mutex_);
      board_.Clear();
    }
    Drain(kLastPatienceMs, -1);
    stop_ = leave_[0] = leave_[1] = true;
    {
      const std::lock_guard lock(mutex_);
      Wake();
    }
    writer_.join();
  }

  bool started() const { return writer_.joinable(); }
  bool terminal(Stream stream) const override { return SinkOf(stream).terminal(); }
  int columns(Stream stream) const override { return SinkOf(stream).columns(); }

  void SpillInto(const std::filesystem::path& folder) override {
    const std::lock_guard lock(mutex_);
    backlog_.SpillInto(folder);
  }

  void Line(Stream stream, std::string_view text) override {
    std::string tamed;  // lines are whole here; chunks of the backlog may not be
    if (terminal(stream)) {
      tamed.reserve(text.size());
      AppendTamed(text, &tamed);
      text = tamed;
    }
    const std::lock_guard lock(mutex_);
    backlog_.Push(stream, text);
    if (!framing_ || backlog_.bytes() > kEager) Wake();
  }

  void Transient(int source, std::string_view text) override {
    if (!out_.terminal()) return;
    const std::lock_guard lock(mutex_);
    board_.Set(source, text);
    if (!framing_) Wake();
  }

  bool Drain(int patience_ms, int limit_ms) override {
    std::unique_lock lock(mutex_);
    draining_ = true;
    Wake();
    const auto begin = Clock::now();
    const auto patience = std::chrono::milliseconds(patience_ms);
    const auto limit = limit_ms < 0 ? Clock::time_point::max() : begin + std::chrono::milliseconds(limit_ms);
    auto deadline = patience_ms < 0 ? limit : std::min(begin + patience, limit);
    while (!Settled()) {
      if (deadline == Clock::time_point::max()) {
        settled_.wait(lock);
        continue;
      }
      if (settled_.wait_until(lock, deadline) == std::cv_status::no_timeout) continue;
      const auto extended = std::min(Clock::time_point(Clock::duration(taken_)) + patience, limit);
      if (patience_ms < 0 || extended <= deadline) break;
      deadline = extended;
    }
    draining_ = false;
    return Settled() && !lost_[0] && !lost_[1];
  }

  std::uint64_t GiveUp() override {
    std::unique_lock lock(mutex_);
    draining_ = true;
    for (std::size_t i = 0; i < std::size(kStreams) && !Settled(); ++i) {
      Leave(writing_);
      AwaitSettled(lock);
    }
    for (const Stream alive : kStreams) {
      if (Lost(alive) || NotShown() == 0) continue;
      backlog_.Push(alive, MissingLines(NotShown()));
      Wake();
      AwaitSettled(lock);
      if (!Settled()) Leave(alive);
      break;
    }
    draining_ = false;
    return NotShown();
  }

 private:
  const Sink& SinkOf(Stream stream) const { return stream == Stream::kErr ? err_ : out_; }

  // The functions below require the mutex.

  void Wake() {
    if (!waiting_) return;
    waiting_ = false;
    wake_.notify_one();
  }

  void AwaitSettled(std::unique_lock<std::mutex>& lock) {
    settled_.wait_for(lock, kForTheOther, [this] { return Settled(); });
  }

  // Cancels the write in progress on `stream` and writes nothing more to it.
  void Leave(Stream stream) {
    lost_[IndexOf(stream)] = leave_[IndexOf(stream)] = true;
    backlog_.LeaveOut(stream);
    if (stream == Stream::kOut) drawn_.clear();
    Wake();
  }
  std::uint64_t NotShown() const { return cut_ + backlog_.lines_left_out(); }

  bool Lost(Stream stream) const { return lost_[IndexOf(stream)]; }
  bool StatusChanged() const { return out_.terminal() && !Lost(Stream::kOut) && board_.newest() != drawn_; }
  bool HasWork() const { return !backlog_.empty() || StatusChanged(); }
  bool Settled() const { return !busy_ && !HasWork(); }

  void Run() {
    std::unique_lock lock(mutex_);
    while (!stop_) {
      if (!HasWork()) {
        settled_.notify_all();
        waiting_ = true;
        wake_.wait(lock, [this] { return !waiting_; });
      } else if (!drawn_.empty() && !draining_ && backlog_.bytes() <= kEager && Clock::now() < next_frame_) {
        waiting_ = framing_ = true;
        wake_.wait_until(lock, next_frame_, [this] { return !waiting_; });
        waiting_ = framing_ = false;
      } else if (!WriteLines(lock) && StatusChanged()) {
        DrawStatus(lock);
      }
    }
  }

  // Writes the oldest chunk; false if no line waits.
  bool WriteLines(std::unique_lock<std::mutex>& lock) {
    Chunk chunk;
    if (!backlog_.Pop(&chunk)) return false;
    const Sink& sink = SinkOf(chunk.stream);
    if (sink.terminal() && !drawn_.empty()) {
      chunk.bytes.insert(0, kErase);
      drawn_.clear();
    }
    Write(lock, chunk.stream, chunk.bytes);
    return true;
  }

  void DrawStatus(std::unique_lock<std::mutex>& lock) {
    drawn_ = board_.newest();
    std::string bytes(kErase);
    // Leave one column free: some terminals wrap a full line.
    if (!drawn_.empty()) bytes += FitColumns(drawn_, out_.columns() - 1);
    Write(lock, Stream::kOut, bytes);
    next_frame_ = Clock::now() + kFrame;
  }

  void Write(std::unique_lock<std::mutex>& lock, Stream stream, std::string_view bytes) {
    if (Lost(stream)) return;
    busy_ = true;
    writing_ = stream;
    lock.unlock();
    const Sink& sink = stream == Stream::kErr ? err_ : out_;
    const int number = sink.Write(&bytes, leave_[IndexOf(stream)], &taken_);
    lock.lock();
    busy_ = false;
    if (number == ECANCELED) cut_ += static_cast<std::uint64_t>(std::ranges::count(bytes, '\n'));
    if (number != 0 && number != ECANCELED) Lose(stream, number);
  }

  // Stops writing to `stream`. Reports the reason on the other stream, except for a terminal hangup and
  // errors that mean the reader is gone. The job continues without a reader, which may be a `tee`.
  void Lose(Stream stream, int number) {
    lost_[IndexOf(stream)] = true;
    const bool out = stream == Stream::kOut;
    if (out) drawn_.clear();
    const bool hung_up = number == EIO && (out ? out_ : err_).terminal();
    const bool gone = number == EPIPE || number == ECONNRESET;
    if (hung_up || (gone && !out)) return;
    if (gone) {
      backlog_.Push(
          Stream::kErr,
          "dtrun: the reader of standard output has gone; the job continues, and its run folder has the "
          "output of every rank; Ctrl-C ends it");
      return;
    }
    const std::string action = std::string("dtrun: cannot write to standard ") + (out ? "output" : "error");
    backlog_.Push(out ? Stream::kErr : Stream::kOut,
                  Error::System(action, number).text + "; the job continues, see the log files");
  }

  const Sink out_;
  const Sink err_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> leave_[2] = {false, false};  // by stream: cancels a blocked write
  std::atomic<Clock::rep> taken_ = 0;

  std::mutex mutex_;
  std::condition_variable wake_;     // for the writer
  std::condition_variable settled_;  // for Drain
  Backlog backlog_;
  StatusBoard board_;
  std::string drawn_;  // the state on the screen, before fitting
  Clock::time_point next_frame_;
  bool waiting_ = false;           // the writer waits to be woken
  bool framing_ = false;           // ... or for next_frame_
  bool draining_ = false;          // do not wait for frames
  bool busy_ = false;              // the writer is writing
  Stream writing_ = Stream::kOut;  // the current or last stream
  std::uint64_t cut_ = 0;          // lines of cancelled writes
  bool lost_[2] = {false, false};

  std::thread writer_;  // last member: uses all of the above
};

}  // namespace

std::unique_ptr<Console> Console::Open(int out_fd, int err_fd, const std::filesystem::path& spill_folder) {
  auto console = std::make_unique<ThreadConsole>(out_fd, err_fd, spill_folder);
  if (!console->started()) return nullptr;
  return console;
}

}  // namespace dtrun::output
