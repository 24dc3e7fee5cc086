// What ranks print: raw bytes to a log file per rank, readable lines to the user.
//
// RankOutput lives on the agent's loop thread. Console owns one writer thread; its
// methods may be called from the loop thread only, never block on a slow terminal, and
// lose nothing: what the terminal has not taken yet waits in memory and then in an
// unlinked file. When that file cannot grow either, a line says how many are missing, and why.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/own_file.h"
#include "core/output/label.h"
#include "core/output/style.h"

namespace dtrun::output {

enum class Stream { kOut = 1, kErr = 2 };

class Console {
 public:
  // Writes to these descriptors, which stay the caller's (1 and 2 in dtrun) and keep their
  // flags. `spill_folder` is where the overflow file is made, once it is needed; empty: nowhere yet. Null when
  // the system has no thread to spare.
  static std::unique_ptr<Console> Open(int out_fd, int err_fd, const std::filesystem::path& spill_folder);
  virtual ~Console() = default;  // wipes the states, drains for as long as the reader takes
                                 // something every 5 s, then stops

  // Where the overflow file is made from now on, if it is not there yet: beside the log files, whose disk has room
  // for what ranks print.
  virtual void SpillInto(const std::filesystem::path& folder) = 0;
  // A whole line without its newline, or several with newlines between them. A terminal gets no
  // controls of them but colours (AppendTamed in core/output/display.h; RankOutput ends these with
  // each line of a rank); all else gets every byte.
  virtual void Line(Stream stream, std::string_view text) = 0;
  // The state of a progress bar or an unfinished line, redrawn in place on a terminal and
  // kept out of everything else. `source` is a rank; empty text clears its state.
  virtual void Transient(int source, std::string_view text) = 0;
  // Waits until everything is written; gives up when the reader takes nothing for
  // `patience_ms` (-1: never gives up), and after `limit_ms` (-1: never). False when it gave up or a reader
  // is gone. The reader of one stream that stands still holds up the other: order is kept.
  virtual bool Drain(int patience_ms, int limit_ms = -1) = 0;
  // Writes nothing more to a stream whose reader stands still now, and what waits for the other one, if that
  // goes on being read, with a line about what is missing; within a few seconds. Returns how many lines were
  // not shown.
  virtual std::uint64_t GiveUp() = 0;
  // Whether that one is a terminal.
  virtual bool terminal(Stream stream) const = 0;
  // How many a line of it has now; 80 when it is not a terminal.
  virtual int columns(Stream stream) const = 0;
};

// What becomes of one stream of a rank: which bytes are kept where, and what the user sees.
struct Route {
  std::filesystem::path file;         // keeps every byte; empty: nothing is kept
  bool shown = true;                  // on the console
  std::optional<std::string> prefix;  // before each line shown; unset: as the style says
  std::vector<std::string> wanted;    // lines that hold one of these ...
  std::filesystem::path wanted_file;  // ... are appended to this file too, with their prefix
};

struct Routes {
  Route out;
  Route err;
};

// Before the later pieces of a long line.
inline constexpr std::string_view kContinuation = "… ";

class Fold;

class RankOutput {
 public:
  struct Place {
    std::filesystem::path folder;
    mode_t file_mode = kPrivateFile;
    // The folder, open: files go there whatever becomes of its name. -1: it is looked up.
    int descriptor = -1;
  };
  // Opens the rank's files, folder/rank-R.out and rank-R.err, all shown, unless `routes` or the style says
  // otherwise. Files of an earlier run are replaced. Errors name the file. `fold` takes the lines that are
  // shown, where there is one, and outlives this.
  static Result<std::unique_ptr<RankOutput>> Open(const Place& place, const Source& source,
                                                  const Style& style, Console& console,
                                                  std::optional<Routes> routes = {}, Fold* fold = nullptr);
  virtual ~RankOutput() = default;

  // Bytes as read from the rank. Carriage-return bars, split UTF-8 and partial lines are
  // handled here (core/output/lines.h). Lines over 64 KiB are printed in pieces, the later
  // ones marked with "… "; the log file has them whole. A log file that cannot be written
  // (disk full) is reported once per rank on the console and both are given up; the console
  // goes on.
  virtual void Feed(Stream stream, std::string_view bytes) = 0;
  // End of file: an unfinished last line is printed.
  virtual void Close(Stream stream) = 0;
  // Call every ~200 ms: shows a line that has been left unfinished, such as a prompt, as
  // the state of this rank. On a pipe a bar is a line now and then, and
  // an unfinished line is printed once it ends.
  virtual void Idle() = 0;
  // The last whole lines of both streams together, in the order of arrival and without
  // prefix, at most `count` and 8 KiB. Lines over 2 KiB are cut and end with " …".
  virtual std::vector<std::string> Tail(std::size_t count) const = 0;
  // Where every byte is kept, stderr first; a stream without a file is left out.
  virtual std::vector<std::filesystem::path> Files() const { return {}; }
  // Those files could not be written to the end.
  virtual bool cut() const { return false; }
};

}  // namespace dtrun::output
