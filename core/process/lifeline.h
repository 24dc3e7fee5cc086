// The agent's end of the connection to its guard (core/node/guard.h).
//
// Signals from the user arrive here as messages. End of stream means that the guard is dead and only the
// agent can end the job. Lives on the agent's loop thread.
#pragma once

#include <filesystem>
#include <string_view>

#include "core/base/fd.h"

namespace dtrun::process {

class Lifeline {
 public:
  static constexpr int kNothing = 0;
  static constexpr int kGuardGone = -1;
  static constexpr int kStacksKey = 100;  // the user has pressed the key that asks for stacks; no signal

  Lifeline(std::filesystem::path runtime_dir, UniqueFd control)
      : runtime_dir_(std::move(runtime_dir)), control_(std::move(control)) {}

  // Private to this job: mode 0700, on a local filesystem, short enough for a Unix socket.
  const std::filesystem::path& runtime_dir() const { return runtime_dir_; }
  // Readable when Next has a result.
  int descriptor() const { return control_.get(); }
  // A signal number, kStacksKey, kNothing, or kGuardGone. Never blocks.
  int Next();
  // Reply to SIGTSTP: the ranks are stopped, so the guard may stop as well.
  void Stopped();
  // Lines that the guard prints under its verdict if the agent is killed. Must be whole lines.
  void LastWords(std::string_view lines);
  // Where the guard then writes the verdict. `folder` is a descriptor of the run directory, `mode` its mode.
  void RecordIn(int folder, const std::filesystem::path& run_dir, mode_t mode, std::string_view job);

 private:
  void Tell(char kind, std::string_view text, int folder = -1);

  std::filesystem::path runtime_dir_;
  UniqueFd control_;
};

// Wire format, one datagram per message. Guard to agent: one byte, the signal or kStacksKey. Agent to guard:
// a kind and text.
inline constexpr char kMessageStopped = 'S';
inline constexpr char kMessageLastWords = 'L';
inline constexpr char kMessageRecord = 'R';  // the folder (SCM_RIGHTS); text: mode, path, newline, job name
inline constexpr std::size_t kMessageBytes = 4096;

}  // namespace dtrun::process
