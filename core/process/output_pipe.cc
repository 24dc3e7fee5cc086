#include "core/process/output_pipe.h"

#include <unistd.h>

#include <cerrno>

namespace dtrun::process {
namespace {

// The default maximum size of a pipe on any system. Reading this much gets all that was written before the
// process ended.
constexpr std::size_t kPipeBytes = 1 << 20;

}  // namespace

OutputPipe::OutputPipe(asio::io_context& loop, UniqueFd end, output::Stream stream, std::span<char> buffer,
                       Printed printed, OutputGate* gate)
    : descriptor_(loop, end.Release()),
      stream_(stream),
      buffer_(buffer),
      printed_(std::move(printed)),
      gate_(gate) {}

void OutputPipe::Watch() {
  if (gate_ == nullptr) return AwaitBytes();
  gate_->Pass([self = shared_from_this()] {
    if (self->descriptor_.is_open()) self->AwaitBytes();
  });
}

void OutputPipe::AwaitBytes() {
  descriptor_.async_wait(Descriptor::wait_read, [this, self = shared_from_this()](const error_code& error) {
    if (error || !descriptor_.is_open()) return;
    if (gate_ == nullptr || gate_->open()) ReadOnce();  // otherwise Pump has closed it
    if (descriptor_.is_open()) Watch();
  });
}

bool OutputPipe::ReadOnce() {
  ssize_t size = 0;
  do {
    size = ::read(descriptor_.native_handle(), buffer_.data(), buffer_.size());
  } while (size < 0 && errno == EINTR);
  if (size > 0) {
    printed_(stream_, {buffer_.data(), static_cast<std::size_t>(size)});
    return true;
  }
  if (size == 0 || errno != EAGAIN) {
    descriptor_.close();
    printed_(stream_, {});
  }
  return false;
}

void OutputPipe::Pump() {
  const auto open = [this] { return descriptor_.is_open() && (gate_ == nullptr || gate_->open()); };
  for (std::size_t bytes = 0; open() && bytes < kPipeBytes; bytes += buffer_.size()) {
    if (!ReadOnce()) return;
  }
}

void OutputPipe::Finish() {
  for (std::size_t bytes = 0; descriptor_.is_open() && bytes < kPipeBytes; bytes += buffer_.size()) {
    if (!ReadOnce()) break;
  }
  if (!descriptor_.is_open()) return;
  descriptor_.close();
  printed_(stream_, {});
}

void OutputPipe::Drop() {
  descriptor_.close();
  printed_ = [](output::Stream, std::string_view) {};
}

}  // namespace dtrun::process
