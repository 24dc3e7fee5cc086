// A running child process, such as a rank or an ssh client: its handle, its two output pipes and their
// content.
//
// Owned by the host, and kept alive by its own pending reads; loop thread. It is not reaped before Reap, so
// its pid, which is also its process group, cannot be reused before.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <span>

#include "core/base/timer.h"
#include "core/process/ending.h"
#include "core/process/output_pipe.h"
#include "core/process/spawn.h"

namespace dtrun::process {

class ChildProcess : public std::enable_shared_from_this<ChildProcess> {
 public:
  using Printed = OutputPipe::Printed;

  // All processes share `buffer` for reads; `ended` is called once; `gate` controls the pipes.
  ChildProcess(asio::io_context& loop, Child child, std::span<char> buffer, Printed printed,
               std::function<void(const Ending&)> ended, OutputGate* gate = nullptr);

  void Watch();
  bool living() const { return !ended_; }
  // Signals its process group, if that can still have members.
  void Signal(int signal);
  // Signals only the process itself: its children may not expect a signal such as USR1 and die of it.
  void Tell(int signal);
  // OutputPipe::Finish for both pipes.
  void FinishOutput();
  void Reap();
  // Kills it, if it lives, and waits for its end. No callback runs after this.
  void Abandon();

 private:
  using Descriptor = asio::posix::stream_descriptor;

  void AwaitEnd();

  pid_t pid_;
  Descriptor handle_;
  std::shared_ptr<OutputPipe> out_, err_;
  std::function<void(const Ending&)> ended_callback_;
  bool ended_ = false;
  bool reaped_ = false;
};

// Detects children stopped by a signal such as SIGSTOP: they neither work nor end, and other ranks wait for
// them.
//
// Asks the kernel a few times a second. Owned by a host; loop thread. Ignores processes held by a debugger
// and stops caused by dtrun's own tools.
class Stops {
 public:
  // `stopped` is called from the loop, or from Look. `ours`: whether a dtrun tool may have stopped the child
  // just now and will let it continue.
  Stops(
      asio::io_context& loop, std::function<void(pid_t child, int signal)> stopped,
      std::function<bool(pid_t child)> ours = [](pid_t) { return false; });

  void Look();
  // The stop signal at the last look; 0: not stopped, or continued.
  int SignalOf(pid_t child) const;

 private:
  void Wait();

  Timer timer_;
  std::function<void(pid_t child, int signal)> stopped_;
  std::function<bool(pid_t child)> ours_;
  std::map<pid_t, int> signals_;
};

}  // namespace dtrun::process
