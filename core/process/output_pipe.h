// The read end of one output stream of a process.
//
// Kept alive by its own pending read; loop thread.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "core/base/asio.h"
#include "core/base/fd.h"
#include "core/output/output.h"
#include "core/process/output_gate.h"

namespace dtrun::process {

class OutputPipe : public std::enable_shared_from_this<OutputPipe> {
 public:
  // `bytes`: what was read; empty at the end of the stream.
  using Printed = std::function<void(output::Stream stream, std::string_view bytes)>;

  // `end` must be non-blocking. `buffer` is for reads and may be shared. `gate` must outlive this object;
  // null: reads are never paused.
  OutputPipe(boost::asio::io_context& loop, UniqueFd end, output::Stream stream, std::span<char> buffer,
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
  using Descriptor = boost::asio::posix::stream_descriptor;

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
