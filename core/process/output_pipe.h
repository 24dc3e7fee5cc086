// The read end of one output stream of a process.
//
// Kept alive by its own pending read; loop thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/asio.h"
#include "core/base/fd.h"
#include "core/output/output.h"

namespace dtrun::process {

// Cuts a stream of bytes into lines, in bounded memory and in one pass over the bytes.
//
// Value; one thread at a time.
class LineCutter {
 public:
  // Lines are truncated to `longest` bytes.
  explicit LineCutter(std::size_t longest) : longest_(longest) {}

  // Calls take(std::string) for each line that ends in `bytes`, without its line ending. Skips empty lines.
  template <class Take>
  void Feed(std::string_view bytes, Take take) {
    while (!bytes.empty()) {
      const std::size_t end = bytes.find('\n');
      const std::string_view part = bytes.substr(0, end);
      line_.append(part.substr(0, std::min(part.size(), longest_ - line_.size())));
      if (end == std::string_view::npos) return;
      bytes.remove_prefix(end + 1);
      Finish(take);
    }
  }

  // Passes on the unfinished line, if any.
  template <class Take>
  void Finish(Take take) {
    while (line_.ends_with('\r')) line_.pop_back();
    std::string line;
    line.swap(line_);
    if (!line.empty()) take(std::move(line));
  }

 private:
  const std::size_t longest_;
  std::string line_;
};

// Pauses reading of the ranks' output while too much of it is queued in memory to be sent.
//
// A rank then blocks in write once its pipe is full, and continues when the gate opens, so no output is lost.
// Owned by the agent of a remote host, which closes the gate when its channel to the root is behind; loop
// thread.
class OutputGate {
 public:
  // Calls `go` now if the gate is open, otherwise as soon as it opens.
  void Pass(std::function<void()> go) {
    if (!closed_) return go();
    waiting_.push_back(std::move(go));
  }

  bool open() const { return !closed_; }
  void Close() { closed_ = true; }

  void Open() {
    closed_ = false;
    for (const auto& go : std::exchange(waiting_, {})) Pass(go);  // a callback may close the gate again
  }

 private:
  bool closed_ = false;
  std::vector<std::function<void()>> waiting_;
};

class OutputPipe : public std::enable_shared_from_this<OutputPipe> {
 public:
  // `bytes`: what was read; empty at the end of the stream.
  using Printed = std::function<void(output::Stream stream, std::string_view bytes)>;

  // `end` must be non-blocking. `buffer` is for reads and may be shared. `gate` must outlive this object;
  // null: reads are never paused.
  OutputPipe(asio::io_context& loop, UniqueFd end, output::Stream stream, std::span<char> buffer,
             Printed printed, OutputGate* gate = nullptr);

  void Watch();
  // Reads the available bytes, unless the gate is closed.
  void Pump();
  // Reads the available bytes without waiting for more, even if the gate is closed, then closes. A process
  // outside the job may hold the other end open forever.
  void Finish();
  // Closes; no callback runs after this.
  void Drop();

 private:
  using Descriptor = asio::posix::stream_descriptor;

  void AwaitBytes();
  // False at the end of the stream, and when no bytes are available.
  bool ReadOnce();

  Descriptor descriptor_;
  output::Stream stream_;
  std::span<char> buffer_;
  Printed printed_;
  OutputGate* gate_;
};

}  // namespace dtrun::process
