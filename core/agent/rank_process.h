// One running process of the job: its handle, its two pipes, its output.
//
// Owned by the host, and kept by its own pending reads; loop thread. It is not reaped before Reap, so that
// its pid, and with it the name of its process group, cannot be taken by a stranger.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "core/agent/asio.h"
#include "core/agent/facts.h"
#include "core/agent/spawn.h"
#include "core/output/output.h"

namespace dtrun::agent {

class RankProcess : public std::enable_shared_from_this<RankProcess> {
 public:
  using Descriptor = boost::asio::posix::stream_descriptor;

  // What was read; empty at the end of the stream.
  using Printed = std::function<void(output::Stream stream, std::string_view bytes)>;

  // `buffer` is shared by all, for reads; `ended` is called once.
  RankProcess(boost::asio::io_context& loop, Child child, std::span<char> buffer, Printed printed,
              std::function<void(const Ending&)> ended);

  void Watch();
  bool living() const { return !ended_; }
  // To its process group, if it can still have members.
  void Signal(int signal);
  // To the rank itself only: its children may not expect a message such as USR1 and die of it.
  void Tell(int signal);
  // Takes what is in the pipes without waiting for more, then closes them: a process
  // outside the job may hold them for ever.
  void FinishOutput();
  void Reap();
  // Kills it, if it lives, and waits for its end; calls nothing any more.
  void Abandon();

 private:
  struct Pipe {
    Descriptor descriptor;
    output::Stream stream;
  };

  void AwaitEnd();
  void AwaitOutput(Pipe& pipe);
  // False when the pipe is at its end, or has nothing more for now.
  bool ReadOnce(Pipe& pipe);

  pid_t pid_;
  Descriptor handle_;
  Pipe out_, err_;
  std::span<char> buffer_;
  Printed printed_;
  std::function<void(const Ending&)> ended_callback_;
  bool ended_ = false;
  bool reaped_ = false;
};

}  // namespace dtrun::agent
