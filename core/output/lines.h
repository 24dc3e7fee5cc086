// Cuts the bytes of one stream into lines.
//
// Owned by a RankOutput; one thread. A line ends with '\n'. A carriage return starts a
// redraw: what came before it in the line is a state of a progress bar, and only the last
// state counts, so "10%\r20%\r\n" is the line "20%" and "text\r\n" the line "text". A
// state of blanks wipes the bar. A line longer than kLongestLine comes in pieces, cut at a
// UTF-8 character. Every other byte, NUL and escape sequences included, is kept.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace dtrun::output {

class LineAssembler {
 public:
  static constexpr std::size_t kLongestLine = 64 << 10;

  // Gets each line without its end. `continues` is true for the second and later pieces of
  // a long line. The view is valid during the call; the assembler must not be used in it.
  using Emit = std::function<void(std::string_view text, bool continues)>;

  explicit LineAssembler(Emit emit) : emit_(std::move(emit)) {}

  void Feed(std::string_view bytes);
  // End of file: emits what is unfinished, unless that is a bar that was wiped.
  void Close();

  // What a terminal would show of the unfinished line; empty when there is none. May end
  // inside a character. Valid until the next Feed or Close.
  std::string_view State() const { return Shown().text; }
  // Whether the unfinished line has had a carriage return.
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
  Segment current_;  // since then
  bool redrawn_ = false;
};

}  // namespace dtrun::output
