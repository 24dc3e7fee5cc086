// Splits the bytes of one stream into lines.
//
// Owned by a RankOutput; one thread. A line ends with '\n'. A carriage return starts a redraw: the text
// before it is an earlier state of a progress bar, and only the last state counts. "10%\r20%\r\n" becomes the
// line "20%" and "text\r\n" the line "text". A state of blanks clears the bar. A line longer than
// kLongestLine comes in pieces, cut between UTF-8 characters. All other bytes are kept, NUL and escape
// sequences included.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace dtrun::output {

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

}  // namespace dtrun::output
