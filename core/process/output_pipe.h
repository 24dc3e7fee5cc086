// The reading end of what a process prints on one stream.
//
// Kept by its own pending read; loop thread.
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
  // What was read; empty at the end of the stream.
  using Printed = std::function<void(output::Stream stream, std::string_view bytes)>;

  // `end` does not block. `buffer` is for reads, and may be shared. `gate` outlives it; null: nothing holds
  // it up.
  OutputPipe(boost::asio::io_context& loop, UniqueFd end, output::Stream stream, std::span<char> buffer,
             Printed printed, OutputGate* gate = nullptr);

  void Watch();
  // Reads what is there, unless the gate is closed.
  void Pump();
  // Takes what is there without waiting for more, whatever the gate says, then closes: a process outside the
  // job may hold the other end for ever.
  void Finish();
  // Closes, and calls nothing any more.
  void Drop();

 private:
  using Descriptor = boost::asio::posix::stream_descriptor;

  void AwaitBytes();
  // False at the end, and when there is nothing more for now.
  bool ReadOnce();

  Descriptor descriptor_;
  output::Stream stream_;
  std::span<char> buffer_;
  Printed printed_;
  OutputGate* gate_;
};

}  // namespace dtrun::process
