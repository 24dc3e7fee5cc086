#include "core/output/lines.h"

#include <utility>

#include "core/output/display.h"

namespace dtrun::output {

void LineAssembler::Feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    std::string_view part = bytes.substr(0, end);
    std::size_t redraw = part.find('\r');
    const bool begins = current_.text.empty() && !redrawn_;
    if (begins && end != bytes.npos && redraw == part.npos && part.size() <= kLongestLine) {
      emit_(part, false);  // an ordinary whole line: no copy needed
    } else {
      for (; redraw != part.npos; redraw = part.find('\r')) {
        Append(part.substr(0, redraw));
        CarriageReturn();
        part.remove_prefix(redraw + 1);
      }
      Append(part);
      if (end != bytes.npos) EndLine();
    }
    if (end == bytes.npos) return;
    bytes.remove_prefix(end + 1);
  }
}

void LineAssembler::Close() {
  const bool wiped = redrawn_ && Blank(State());
  if (State().empty() || wiped) {
    Forget();
  } else {
    EndLine();
  }
}

void LineAssembler::Append(std::string_view bytes) {
  std::string& text = current_.text;
  text.append(bytes);
  std::size_t emitted = 0;
  while (text.size() - emitted > kLongestLine) {
    const std::string_view rest = std::string_view(text).substr(emitted);
    const std::size_t cut = CutPoint(rest, kLongestLine);
    emit_(rest.substr(0, cut), current_.continues);
    current_.continues = true;
    emitted += cut;
  }
  text.erase(0, emitted);
}

void LineAssembler::CarriageReturn() {
  redrawn_ = true;
  if (current_.text.empty()) return;
  if (Blank(current_.text)) {
    earlier_.Clear();
  } else {
    std::swap(earlier_, current_);
  }
  current_.Clear();
}

void LineAssembler::EndLine() {
  emit_(Shown().text, Shown().continues);
  Forget();
}

void LineAssembler::Forget() {
  earlier_.Clear();
  current_.Clear();
  redrawn_ = false;
}

}  // namespace dtrun::output
