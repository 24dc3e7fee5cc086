#include "core/output/display.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "core/base/text.h"

namespace dtrun::output {
namespace {

constexpr char kEscape = '\033';
constexpr char kBell = '\a';
constexpr std::string_view kReset = "\033[0m";

std::uint8_t Byte(char c) { return static_cast<std::uint8_t>(c); }

// An invalid byte counts as a character of one byte. REQUIRES: !text.empty()
Character NextCharacter(std::string_view text) {
  const Character next = FirstCharacter(text);
  return next.size == 0 ? Character{1, 0xfffd} : next;
}

struct Range {
  char32_t first;
  char32_t last;
};

// Unicode's combining and invisible characters, and its wide and emoji ones, by block.
constexpr Range kZeroWidth[] = {{0x0300, 0x036f}, {0x0483, 0x0489},   {0x0591, 0x05bd},  {0x0610, 0x061a},
                                {0x064b, 0x065f}, {0x1ab0, 0x1aff},   {0x1dc0, 0x1dff},  {0x200b, 0x200f},
                                {0x202a, 0x202e}, {0x2060, 0x2064},   {0x20d0, 0x20ff},  {0xfe00, 0xfe0f},
                                {0xfe20, 0xfe2f}, {0x1f3fb, 0x1f3ff}, {0xe0100, 0xe01ef}};
constexpr Range kDoubleWidth[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},  {0x23e9, 0x23ec}, {0x25fd, 0x25fe},   {0x2614, 0x2615},
    {0x26a1, 0x26a1},   {0x2705, 0x2705},  {0x2728, 0x2728}, {0x274c, 0x274c},   {0x2795, 0x2797},
    {0x2b1b, 0x2b1c},   {0x2b50, 0x2b50},  {0x2e80, 0x303e}, {0x3041, 0x33ff},   {0x3400, 0x4dbf},
    {0x4e00, 0x9fff},   {0xa000, 0xa4cf},  {0xa960, 0xa97f}, {0xac00, 0xd7a3},   {0xf900, 0xfaff},
    {0xfe30, 0xfe6f},   {0xff00, 0xff60},  {0xffe0, 0xffe6}, {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff},
    {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};

template <std::size_t N>
bool Within(const Range (&ranges)[N], char32_t code) {
  const Range* after =
      std::upper_bound(std::begin(ranges), std::end(ranges), code,
                       [](char32_t value, const Range& range) { return value < range.first; });
  return after != std::begin(ranges) && code <= std::prev(after)->last;
}

int Columns(char32_t code) {
  if (Within(kZeroWidth, code)) return 0;
  return Within(kDoubleWidth, code) ? 2 : 1;
}

// Characters that change the writing direction.
constexpr Range kBidi[] = {{0x061c, 0x061c}, {0x200e, 0x200f}, {0x202a, 0x202e}, {0x2066, 0x2069}};

bool Control(char32_t code) { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

// Whether `parameters`, the text between ESC [ and m, sets colours or attributes without concealing.
bool Colours(std::string_view parameters) {
  std::vector<int> numbers(1);
  for (const char c : parameters) {
    if (c == ';') {
      numbers.push_back(0);
    } else if (c < '0' || c > '9') {
      return false;
    } else {
      int& number = numbers.back();
      number = number * 10 + (c - '0');
      if (number > 999) return false;
    }
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == 8) return false;
    const bool colour = numbers[i] == 38 || numbers[i] == 48 || numbers[i] == 58;
    if (!colour || i + 1 == numbers.size()) continue;
    if (numbers[i + 1] == 5)
      i += 2;  // ; 5 ; index
    else if (numbers[i + 1] == 2)
      i += 4;  // ; 2 ; red ; green ; blue
  }
  return true;
}

enum class Kind { kText, kBroken, kTab, kNewline, kColours, kHidden };

// A character or a whole escape sequence. An unterminated sequence extends to the end of its line.
struct Piece {
  std::size_t size;
  Kind kind;
  char32_t code = 0;     // if it is a character
  char without_end = 0;  // the type of a sequence not terminated in its line; else 0
};

enum class End { kOfLine, kOfSequence, kByAnother };

// The end and the terminator of the OSC, DCS, SOS, PM or APC text that starts at `at`.
struct SequenceText {
  std::size_t size;
  End end;
};
SequenceText FindTextEnd(std::string_view text, std::size_t at, char type) {
  while (at < text.size()) {
    const Character next = NextCharacter(text.substr(at));
    const bool cancel = next.code == 0x18 || next.code == 0x1a;
    if (next.code == 0x9c || cancel || (type == ']' && text[at] == kBell))
      return {at + next.size, End::kOfSequence};
    if (text[at] == '\n') break;
    if (text[at] == kEscape && text.substr(at + 1).starts_with('\\')) return {at + 2, End::kOfSequence};
    if (text[at] == kEscape) return {at, End::kByAnother};
    at += next.size;
  }
  return {at, End::kOfLine};
}

// REQUIRES: text starts with an introducer of `size` bytes, equivalent to ESC `type`
Piece FirstSequence(std::string_view text, std::size_t size, char type) {
  if (std::string_view("]PX^_").find(type) != std::string_view::npos) {
    const SequenceText found = FindTextEnd(text, size, type);
    return {found.size, Kind::kHidden, 0, found.end == End::kOfLine ? type : '\0'};
  }
  if (type != '[') return {size, Kind::kHidden};
  std::size_t end = size;
  while (end < text.size() && Byte(text[end]) >= 0x20 && Byte(text[end]) < 0x40) ++end;
  if (end == text.size() || Byte(text[end]) < 0x40 || Byte(text[end]) > 0x7e) return {end, Kind::kHidden};
  const bool colours = text[0] == kEscape && text[end] == 'm' && Colours(text.substr(size, end - size));
  return {end + 1, colours ? Kind::kColours : Kind::kHidden};
}

// REQUIRES: !text.empty()
Piece FirstPiece(std::string_view text) {
  if (text[0] == kEscape) {
    std::size_t end = 1;
    while (end < text.size() && Byte(text[end]) >= 0x20 && Byte(text[end]) < 0x30) ++end;
    const bool ends = end < text.size() && Byte(text[end]) >= 0x30 && Byte(text[end]) < 0x7f;
    if (!ends) return {end, Kind::kHidden};
    return end == 1 ? FirstSequence(text, 2, text[1]) : Piece{end + 1, Kind::kHidden};
  }
  const Character next = NextCharacter(text);
  if (next.size == 1 && Byte(text[0]) >= 0x80) return {1, Kind::kBroken, next.code};
  if (next.code == '\t') return {1, Kind::kTab, next.code};
  if (next.code == '\n') return {1, Kind::kNewline, next.code};
  if (next.code >= 0x80 && next.code < 0xa0)  // single-character form of ESC and '@' to '_'
    return FirstSequence(text, next.size, static_cast<char>(next.code - 0x40));
  const bool hidden = Control(next.code) || Within(kBidi, next.code);
  return {next.size, hidden ? Kind::kHidden : Kind::kText, next.code};
}

// AppendTamed; calls `saw` for each piece that is not plain text.
template <typename Saw>
void Tame(std::string_view text, std::string* out, const Saw& saw) {
  while (!text.empty()) {
    const auto plain = static_cast<std::size_t>(
        std::ranges::find_if_not(text, [](char c) { return c >= 0x20 && c < 0x7f; }) - text.begin());
    out->append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) return;
    const Piece piece = FirstPiece(text);
    saw(piece, text.substr(0, piece.size));
    if (piece.kind == Kind::kBroken) {
      *out += '?';
    } else if (piece.kind != Kind::kHidden) {
      out->append(text.substr(0, piece.size));
    }
    text.remove_prefix(piece.size);
  }
}

// Updates `open` with `sequence`, which must be of kind kColours.
void SetColours(std::string_view sequence, std::string* open) {
  constexpr std::size_t kMost = 128;  // bytes of consecutive sequences without a reset
  const char first = sequence[2];     // of ESC [ numbers m; no numbers means 0
  const bool resets =
      first == 'm' || first == ';' || (first == '0' && (sequence[3] == 'm' || sequence[3] == ';'));
  if (resets || open->size() + sequence.size() > kMost) open->clear();
  const bool only_resets = sequence == kReset || sequence == "\033[m";
  if (!only_resets && sequence.size() <= kMost) open->append(sequence);
}

constexpr std::string_view kCutMark = " …";
// Text is dropped in batches of this size, so that a line costs one copy and no move.
constexpr std::size_t kSlack = 4 * Tail::kBytes;

}  // namespace

std::size_t CutPoint(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return text.size();
  std::size_t cut = limit;
  while (cut > 0 && limit - cut < 3 && IsContinuation(text[cut])) --cut;
  return cut == 0 || IsContinuation(text[cut]) ? limit : cut;
}

std::string_view WholeCharacters(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const char c = text[text.size() - back];
    if (IsContinuation(c)) continue;
    return CharacterSize(c) > back ? text.substr(0, text.size() - back) : text;
  }
  return text;
}

std::string FitColumns(std::string_view text, int columns) {
  std::string out;
  bool coloured = false;
  int used = 0;
  for (; !text.empty(); text.remove_prefix(FirstPiece(text).size)) {
    const Piece piece = FirstPiece(text);
    if (piece.kind == Kind::kHidden || piece.kind == Kind::kNewline) continue;
    if (piece.kind == Kind::kColours) {
      coloured = true;
    } else {
      const int width = Columns(piece.code);
      if (used + width > columns) break;
      used += width;
    }
    switch (piece.kind) {
      case Kind::kTab: out += ' '; break;
      case Kind::kBroken: out += '?'; break;
      default: out.append(text.substr(0, piece.size));
    }
  }
  if (coloured) out += kReset;
  return out;
}

void AppendTamed(std::string_view text, std::string* out) {
  Tame(text, out, [](const Piece&, std::string_view) {});
}

std::string Tamed(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::size_t begin = out.size();
    AppendTamed(text.substr(0, end), &out);
    const std::size_t last = out.rfind(kEscape);  // only colours contain one by now
    const bool coloured = last != out.npos && last >= begin;
    const std::string_view rest = coloured ? std::string_view(out).substr(last) : std::string_view();
    if (coloured && !rest.starts_with(kReset) && !rest.starts_with("\033[m")) out += kReset;
    if (end == text.size()) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string TamedMessage(std::string_view text) {
  std::string out;
  for (const std::string_view line : Split(text, '\n')) {
    std::string tamed = Tamed(line);
    const bool quotes = line.substr(std::min(line.find_first_not_of(' '), line.size())).starts_with("| ");
    for (std::size_t at = 0; !quotes && (at = tamed.find(kEscape, at)) != tamed.npos;)
      tamed.erase(at, tamed.find('m', at) + 1 - at);
    out.append(line.data() == text.data() ? "" : "\n").append(tamed);
  }
  return out;
}

void TamedLines::Append(std::string_view text, bool continues, std::string* out) {
  if (without_end_ != 0) {
    const SequenceText rest = FindTextEnd(text, 0, without_end_);
    if (rest.end == End::kOfSequence || continues) text.remove_prefix(rest.size);
    if (rest.end != End::kOfLine || !continues) without_end_ = 0;
  }
  out->append(colours_);
  Tame(text, out, [this](const Piece& piece, std::string_view sequence) {
    if (piece.kind == Kind::kColours) SetColours(sequence, &colours_);
    if (piece.without_end != 0) without_end_ = piece.without_end;
  });
  if (!colours_.empty()) out->append(kReset);
}

bool Blank(std::string_view text) {
  while (!text.empty()) {
    const Piece piece = FirstPiece(text);
    const bool unseen = piece.kind == Kind::kHidden || piece.kind == Kind::kColours;
    if (!unseen && text[0] != ' ') return false;
    text.remove_prefix(piece.size);
  }
  return true;
}

void Tail::Append(std::string_view line) {
  if (line.size() > kLineBytes) {
    text_.append(line.substr(0, CutPoint(line, kLineBytes - kCutMark.size()))).append(kCutMark);
  } else {
    text_.append(line);
  }
  text_ += '\n';
  // Empty lines count as no text but take a byte here, hence twice kBytes.
  if (text_.size() > 2 * kBytes + kSlack) text_.erase(0, text_.find('\n', text_.size() - 2 * kBytes) + 1);
}

std::vector<std::string> Tail::Last(std::size_t count) const {
  std::vector<std::string> lines;
  std::size_t bytes = 0;
  std::string_view rest = text_;
  while (!rest.empty() && lines.size() < count) {
    rest.remove_suffix(1);
    const std::size_t newline = rest.rfind('\n');
    const std::string_view line = rest.substr(newline == rest.npos ? 0 : newline + 1);
    bytes += line.size();
    if (bytes > kBytes) break;
    lines.emplace_back(line);
    rest.remove_suffix(line.size());
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

}  // namespace dtrun::output
