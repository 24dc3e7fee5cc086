// One running process of the job: its handle, its two pipes, its output.
//
// Owned by the host, and kept by its own pending reads; loop thread. It is not reaped before Reap, so that
// its pid, and with it the name of its process group, cannot be taken by a stranger.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "core/base/asio.h"
#include "core/process/ending.h"
#include "core/process/output_pipe.h"
#include "core/process/spawn.h"

namespace dtrun::process {

class RankProcess : public std::enable_shared_from_this<RankProcess> {
 public:
  using Printed = OutputPipe::Printed;

  // `buffer` is shared by all, for reads; `ended` is called once; `gate` is for its pipes.
  RankProcess(boost::asio::io_context& loop, Child child, std::span<char> buffer, Printed printed,
              std::function<void(const Ending&)> ended, OutputGate* gate = nullptr);

  void Watch();
  bool living() const { return !ended_; }
  // To its process group, if it can still have members.
  void Signal(int signal);
  // To the rank itself only: its children may not expect a message such as USR1 and die of it.
  void Tell(int signal);
  // As OutputPipe::Finish, of both.
  void FinishOutput();
  void Reap();
  // Kills it, if it lives, and waits for its end; calls nothing any more.
  void Abandon();

 private:
  using Descriptor = boost::asio::posix::stream_descriptor;

  void AwaitEnd();

  pid_t pid_;
  Descriptor handle_;
  std::shared_ptr<OutputPipe> out_, err_;
  std::function<void(const Ending&)> ended_callback_;
  bool ended_ = false;
  bool reaped_ = false;
};

}  // namespace dtrun::process
