#include "core/output/display.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace dtrun::output {
namespace {

constexpr char kEscape = '\033';
constexpr char kBell = '\a';

std::uint8_t Byte(char c) { return static_cast<std::uint8_t>(c); }
bool Continuation(char c) { return (Byte(c) & 0xc0) == 0x80; }

// Bytes of a character that starts with `lead`; 1 for what cannot start one.
std::size_t CharacterSize(char lead) {
  const std::uint8_t byte = Byte(lead);
  if (byte >= 0xc2 && byte <= 0xdf) return 2;
  if (byte >= 0xe0 && byte <= 0xef) return 3;
  if (byte >= 0xf0 && byte <= 0xf4) return 4;
  return 1;
}

struct Character {
  std::size_t size;
  char32_t code;
};

// REQUIRES: !text.empty()
Character FirstCharacter(std::string_view text) {
  constexpr Character kBroken{1, 0xfffd};
  const std::size_t size = CharacterSize(text[0]);
  if (size == 1) return Byte(text[0]) < 0x80 ? Character{1, Byte(text[0])} : kBroken;
  if (text.size() < size) return kBroken;
  char32_t code = Byte(text[0]) & (0x7f >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if (!Continuation(text[i])) return kBroken;
    code = code << 6 | (Byte(text[i]) & 0x3f);
  }
  return {size, code};
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

// A sequence that starts with ESC. `final` is 'm' for a colour; 0 when the end is missing.
struct Sequence {
  std::size_t size;
  bool control;  // ESC [ ...
  char final;
};

// REQUIRES: text[0] is ESC
Sequence FirstSequence(std::string_view text) {
  if (text.size() < 2) return {text.size(), false, '\0'};
  if (text[1] == ']') {  // a title or a link, up to BEL or ESC backslash
    for (std::size_t i = 2; i < text.size(); ++i) {
      if (text[i] == kBell) return {i + 1, false, kBell};
      if (text[i] == kEscape && i + 1 < text.size() && text[i + 1] == '\\') return {i + 2, false, '\\'};
    }
    return {text.size(), false, '\0'};
  }
  const bool control = text[1] == '[';
  std::size_t i = control ? 2 : 1;
  const std::uint8_t lowest_final = control ? 0x40 : 0x30;
  while (i < text.size() && Byte(text[i]) >= 0x20 && Byte(text[i]) < lowest_final) ++i;
  if (i == text.size()) return {i, control, '\0'};
  const bool complete = Byte(text[i]) >= lowest_final && Byte(text[i]) < 0x7f;
  if (!complete) return {i, control, '\0'};  // cut off by a byte that belongs to no sequence
  return {i + 1, control, text[i]};
}

}  // namespace

std::size_t CutPoint(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return text.size();
  std::size_t cut = limit;
  while (cut > 0 && limit - cut < 3 && Continuation(text[cut])) --cut;
  return cut == 0 || Continuation(text[cut]) ? limit : cut;
}

std::string_view WholeCharacters(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const char c = text[text.size() - back];
    if (Continuation(c)) continue;
    return CharacterSize(c) > back ? text.substr(0, text.size() - back) : text;
  }
  return text;
}

std::string FitColumns(std::string_view text, int columns) {
  std::string out;
  bool coloured = false;
  int used = 0;
  while (!text.empty()) {
    if (text[0] == kEscape) {
      const Sequence sequence = FirstSequence(text);
      if (sequence.control && sequence.final == 'm') {
        out.append(text.substr(0, sequence.size));
        coloured = true;
      }
      text.remove_prefix(sequence.size);
      continue;
    }
    const Character character = FirstCharacter(text);
    const bool tab = character.code == '\t';
    const bool unseen = character.code < 0x20 || (character.code >= 0x7f && character.code < 0xa0);
    if (tab || !unseen) {
      const int width = Columns(character.code);
      if (used + width > columns) break;
      used += width;
      if (tab) {
        out += ' ';
      } else if (character.code == 0xfffd) {
        out += '?';
      } else {
        out.append(text.substr(0, character.size));
      }
    }
    text.remove_prefix(character.size);
  }
  if (coloured) out += "\033[0m";
  return out;
}

void AppendWithoutMoves(std::string_view text, std::string* out) {
  while (true) {
    const std::size_t plain = std::min(text.find(kEscape), text.size());
    out->append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) return;
    const Sequence sequence = FirstSequence(text);
    const bool moves = sequence.control && sequence.final != 'm' && sequence.final != '\0';
    if (!moves) out->append(text.substr(0, sequence.size));
    text.remove_prefix(sequence.size);
  }
}

bool Blank(std::string_view text) {
  while (!text.empty()) {
    if (text[0] == kEscape) {
      text.remove_prefix(FirstSequence(text).size);
    } else if (text[0] == ' ') {
      text.remove_prefix(1);
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace dtrun::output
