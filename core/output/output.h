// Handles the output of ranks: raw bytes to a log file per rank, readable lines to the user.
//
// RankOutput lives on the agent's loop thread. Console owns one writer thread; its
// methods may be called from the loop thread only, never block on a slow terminal, and
// lose nothing: what the terminal has not taken yet waits in memory and then in an
// unlinked file. When that file cannot grow either, a line says how many are missing, and why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/own_file.h"
#include "core/output/style.h"

namespace dtrun::output {

// Splits the bytes of one stream into lines.
//
// Owned by a RankOutput; one thread. A line ends with '\n'. A carriage return starts a redraw: the text
// before it is an earlier state of a progress bar, and only the last state counts. "10%\r20%\r\n" becomes the
// line "20%" and "text\r\n" the line "text". A state of blanks clears the bar. A line longer than
// kLongestLine comes in pieces, cut between UTF-8 characters. All other bytes are kept, NUL and escape
// sequences included.
class LineAssembler {
 public:
  static constexpr std::size_t kLongestLine = 64 << 10;

  // Called with each line, without its newline. `continues`: the second or a later piece of a long line. The
  // view is valid during the call, which must not use the assembler.
  using Emit = std::function<void(std::string_view text, bool continues)>;

  explicit LineAssembler(Emit emit) : emit_(std::move(emit)) {}

  void Feed(std::string_view bytes);
  // End of file: emits the unfinished line, unless it is a cleared bar.
  void Close();

  // The unfinished line as a terminal would show it; empty if there is none. May end inside a character.
  // Valid until the next Feed or Close.
  std::string_view State() const { return Shown().text; }
  // Whether the unfinished line contains a carriage return.
  bool redrawn() const { return redrawn_; }

 private:
  struct Segment {
    std::string text;
    bool continues = false;

    // Keeps the memory, unlike an assignment.
    void Clear() {
      text.clear();
      continues = false;
    }
  };

  const Segment& Shown() const { return current_.text.empty() ? earlier_ : current_; }
  void Append(std::string_view bytes);
  void CarriageReturn();
  void EndLine();
  void Forget();

  Emit emit_;
  Segment earlier_;  // the last state before a carriage return
  Segment current_;  // text after it
  bool redrawn_ = false;
};

enum class Stream { kOut = 1, kErr = 2 };

class Console {
 public:
  // Writes to these descriptors, which stay the caller's (1 and 2 in dtrun) and keep their
  // flags. `spill_folder` is where the overflow file is made, once it is needed; empty: nowhere yet. Null
  // when the system has no thread to spare.
  static std::unique_ptr<Console> Open(int out_fd, int err_fd, const std::filesystem::path& spill_folder);
  virtual ~Console() = default;  // clears the states, drains while the reader takes something
                                 // at least every 5 s, then stops

  // Where to create the overflow file, if it does not exist yet: beside the log files, because their disk has
  // room for what ranks print.
  virtual void SpillInto(const std::filesystem::path& folder) = 0;
  // A whole line without its newline, or several with newlines between them. A terminal gets no
  // controls of them but colours (AppendTamed in core/output/display.h; RankOutput ends these with
  // each line of a rank); all else gets every byte.
  virtual void Line(Stream stream, std::string_view text) = 0;
  // Sets the state of a progress bar or an unfinished line. A terminal redraws it in place; other outputs do
  // not get it. `source`: a rank. Empty text clears its state.
  virtual void Transient(int source, std::string_view text) = 0;
  // Waits until everything is written. Gives up if the reader takes nothing for `patience_ms`, or after
  // `limit_ms` (-1: no limit for either). Returns false if it gave up or a reader is gone. A blocked reader
  // of one stream also holds up the other, to preserve order.
  virtual bool Drain(int patience_ms, int limit_ms = -1) = 0;
  // Stops writing to a stream with a blocked reader. Writes the rest of the other stream if its reader
  // continues, with a notice about missing lines. Takes at most a few seconds. Returns the number of lines
  // not shown.
  virtual std::uint64_t GiveUp() = 0;
  // Whether the stream is a terminal.
  virtual bool terminal(Stream stream) const = 0;
  // The current width of the terminal; 80 if it is not a terminal.
  virtual int columns(Stream stream) const = 0;
};

// Where one stream of a rank goes: files and console.
struct Route {
  std::filesystem::path file;         // keeps every byte; empty: no file
  bool shown = true;                  // on the console
  std::optional<std::string> prefix;  // before each shown line; unset: according to the style
  std::vector<std::string> wanted;    // lines that contain one of these ...
  std::filesystem::path wanted_file;  // ... are appended to this file too, with their prefix
};

struct Routes {
  Route out;
  Route err;
};

// Marks the second and later pieces of a long line.
inline constexpr std::string_view kContinuation = "… ";

class Fold;

class RankOutput {
 public:
  struct Place {
    std::filesystem::path folder;
    mode_t file_mode = kPrivateFile;
    // The open folder: files are created there even if the folder is renamed. -1: look it up by name.
    int descriptor = -1;
  };
  // Opens the rank's files, folder/rank-R.out and rank-R.err, and shows both streams, unless `routes` or the
  // style overrides that. Replaces files of an earlier run. Errors name the file. `fold` receives the shown
  // lines if it is not null, and must outlive this object.
  static Result<std::unique_ptr<RankOutput>> Open(const Place& place, const Source& source,
                                                  const Style& style, Console& console,
                                                  std::optional<Routes> routes = {}, Fold* fold = nullptr);
  virtual ~RankOutput() = default;

  // Bytes as read from the rank. Handles carriage-return bars, split UTF-8 and partial lines
  // (core/output/output.h). Lines over 64 KiB are printed in pieces, the later ones marked with "… "; the log
  // file keeps them whole. If a log file cannot be written (disk full), this is reported once per rank on the
  // console and both files are given up. The console continues.
  virtual void Feed(Stream stream, std::string_view bytes) = 0;
  // End of file: prints an unfinished last line.
  virtual void Close(Stream stream) = 0;
  // Call every ~200 ms: shows a line that has been left unfinished, such as a prompt, as
  // the state of this rank. On a pipe a bar is a line now and then, and
  // an unfinished line is printed once it ends.
  virtual void Idle() = 0;
  // The last whole lines of both streams in order of arrival, without prefix; at most `count` lines and 8
  // KiB. Lines over 2 KiB are cut and end with " …".
  virtual std::vector<std::string> Tail(std::size_t count) const = 0;
  // The log files with every byte, stderr first. Leaves out a stream without a file.
  virtual std::vector<std::filesystem::path> Files() const { return {}; }
  // Whether those files are incomplete.
  virtual bool cut() const { return false; }
};

}  // namespace dtrun::output
