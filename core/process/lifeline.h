// The agent's end of the connection to its guard (core/node/guard.h).
//
// Signals that the user sends arrive here as messages; the end of the stream means that
// the guard is dead and that nobody but the agent can end the job. Lives on the agent's
// loop thread.
#pragma once

#include <filesystem>
#include <string_view>

#include "core/base/fd.h"

namespace dtrun::process {

class Lifeline {
 public:
  static constexpr int kNothing = 0;
  static constexpr int kGuardGone = -1;

  Lifeline(std::filesystem::path runtime_dir, UniqueFd control)
      : runtime_dir_(std::move(runtime_dir)), control_(std::move(control)) {}

  // Private to this job: mode 0700, on a local filesystem, short enough for a Unix socket.
  const std::filesystem::path& runtime_dir() const { return runtime_dir_; }
  // Readable when Next has something to say.
  int descriptor() const { return control_.get(); }
  // A signal number, kNothing, or kGuardGone. Never blocks.
  int Next();
  // Answers SIGTSTP: the ranks are stopped, so the guard may stop as well.
  void Stopped();
  // What the guard prints under its verdict, should the agent be killed: whole lines.
  void LastWords(std::string_view lines);
  // Where the guard writes the verdict of the job then; `folder` is the run directory, open, and `mode` its
  // mode.
  void RecordIn(int folder, const std::filesystem::path& run_dir, mode_t mode, std::string_view job);

 private:
  void Tell(char kind, std::string_view text, int folder = -1);

  std::filesystem::path runtime_dir_;
  UniqueFd control_;
};

// The wire between the two, one datagram each. Guard to agent: one byte, the signal.
// Agent to guard: a kind and text.
inline constexpr char kMessageStopped = 'S';
inline constexpr char kMessageLastWords = 'L';
inline constexpr char kMessageRecord =
    'R';  // the folder (SCM_RIGHTS); its mode, its name, a newline, the name of the job
inline constexpr std::size_t kMessageBytes = 4096;

}  // namespace dtrun::process
