#include "core/stacks/python.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string_view>

#include "core/base/text.h"
#include "core/stacks/python_layout.h"
#include "core/stacks/memory.h"

namespace dtrun::stacks {
namespace {

constexpr int kMostThreads = 256;
constexpr int kMostFrames = 100;
constexpr std::size_t kLongestText = 1024;
constexpr std::size_t kLongestTable = std::size_t{1} << 20;

constexpr std::uint8_t kOfInterpreter = 3;  // owner of a frame

void AppendUtf8(std::uint32_t c, std::string* to) {
  if (c < 0x20 || c == 0x7f || c > 0x10ffff) c = '?';
  if (c < 0x80) {
    to->push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    to->push_back(static_cast<char>(0xc0 | (c >> 6)));
    to->push_back(static_cast<char>(0x80 | (c & 0x3f)));
  } else if (c < 0x10000) {
    to->push_back(static_cast<char>(0xe0 | (c >> 12)));
    to->push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3f)));
    to->push_back(static_cast<char>(0x80 | (c & 0x3f)));
  } else {
    to->push_back(static_cast<char>(0xf0 | (c >> 18)));
    to->push_back(static_cast<char>(0x80 | ((c >> 12) & 0x3f)));
    to->push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3f)));
    to->push_back(static_cast<char>(0x80 | (c & 0x3f)));
  }
}

// A str object, with '?' for characters that could move a terminal's cursor.
std::string TextAt(const Memory& memory, const PythonLayout& layout, std::uint64_t object) {
  const auto length = memory.Read<std::uint64_t>(object + layout.text.length);
  const auto state = memory.Read<std::uint32_t>(object + layout.text.state);
  if (!length || !state || *length > kLongestText) return {};
  const std::uint32_t kind = (*state >> 2) & 7U;
  const bool compact = ((*state >> 5) & 1U) != 0;
  const bool ascii = ((*state >> 6) & 1U) != 0;
  if (!compact || (kind != 1 && kind != 2 && kind != 4)) return {};
  const std::string bytes =
      memory.Bytes(object + (ascii ? layout.text.ascii : layout.text.compact), *length * kind);
  std::string text;
  for (std::size_t at = 0; at + kind <= bytes.size(); at += kind) {
    std::uint32_t c = 0;
    for (std::uint32_t i = 0; i < kind; ++i) {
      c |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
    }
    AppendUtf8(c, &text);
  }
  return text;
}

std::string TableAt(const Memory& memory, const PythonLayout& layout, std::uint64_t object) {
  const auto size = memory.Read<std::uint64_t>(object + layout.bytes.size);
  if (!size || *size > kLongestTable) return {};
  return memory.Bytes(object + layout.bytes.data, *size);
}

std::optional<Frame> FrameOf(const Memory& memory, const PythonLayout& layout, std::uint64_t code,
                             std::uint64_t instruction) {
  Frame frame;
  frame.file = TextAt(memory, layout, memory.Pointer(code + layout.code.file));
  frame.function = TextAt(memory, layout, memory.Pointer(code + layout.code.qualname));
  const auto first_line = memory.Read<std::int32_t>(code + layout.code.first_line);
  if (frame.file.empty() || frame.function.empty() || !first_line) return std::nullopt;
  const std::uint64_t units = code + layout.code.units;
  const long unit = instruction < units ? 0 : static_cast<long>((instruction - units) / 2);
  Locate(TableAt(memory, layout, memory.Pointer(code + layout.code.table)), *first_line, unit, &frame);
  return frame;
}

PythonThread ThreadAt(const Memory& memory, const PythonLayout& layout, std::uint64_t thread) {
  PythonThread out;
  out.id = static_cast<pid_t>(memory.Read<std::uint64_t>(thread + layout.thread.native_id).value_or(0));
  std::uint64_t at = memory.Pointer(thread + layout.thread.frame);
  if (layout.thread.in_cframe) at = memory.Pointer(at + *layout.thread.in_cframe);
  for (int i = 0; at != 0 && i < 2 * kMostFrames; ++i) {
    if (out.frames.size() == kMostFrames) {
      out.cut = true;
      break;
    }
    const std::string frame = memory.Bytes(at, layout.frame.size);
    if (frame.empty()) break;
    const auto word = [&](std::uint64_t offset) {
      std::uint64_t value = 0;
      frame.copy(reinterpret_cast<char*>(&value), sizeof value, offset);
      return value;
    };
    at = word(layout.frame.previous);
    if (layout.frame.owner && static_cast<std::uint8_t>(frame[*layout.frame.owner]) == kOfInterpreter)
      continue;
    const auto known = FrameOf(memory, layout, word(layout.frame.code), word(layout.frame.instruction));
    if (!known) break;
    out.frames.push_back(*known);
  }
  return out;
}

bool NamesPython(std::string_view path) {
  const std::string_view name = FileName(path);
  return name.starts_with("libpython3") || name.starts_with("python3");
}

struct Mapped {
  std::uint64_t base = 0;
  std::string path;
};

// The mapped files that may be the interpreter, with their start addresses.
std::vector<Mapped> Interpreters(const std::string& maps) {
  std::vector<Mapped> found;
  std::istringstream lines(maps);
  for (std::string line; std::getline(lines, line);) {
    const auto path = line.find('/');
    if (path == std::string::npos || !NamesPython(std::string_view(line).substr(path))) continue;
    std::istringstream fields(line);
    std::string range, mode, offset;
    fields >> range >> mode >> offset;
    if (offset.find_first_not_of('0') != std::string::npos) continue;
    found.push_back({std::stoull("0" + range.substr(0, range.find('-')), nullptr, 16), line.substr(path)});
  }
  return found;
}

// Reads one number of the table, six bits per byte.
unsigned long Varint(const std::string& table, std::size_t* at) {
  unsigned long value = 0;
  for (int shift = 0; *at < table.size() && shift < 32; shift += 6) {
    const auto byte = static_cast<unsigned char>(table[(*at)++]);
    value |= static_cast<unsigned long>(byte & 63U) << shift;
    if ((byte & 64U) == 0) break;
  }
  return value;
}

long SignedVarint(const std::string& table, std::size_t* at) {
  const unsigned long value = Varint(table, at);
  return (value & 1U) != 0 ? -static_cast<long>(value >> 1) : static_cast<long>(value >> 1);
}

}  // namespace

void Locate(const std::string& table, int first_line, long unit, Frame* frame) {
  enum : unsigned { kShortest = 0, kOneLine = 10, kNoColumns = 13, kLong = 14, kNone = 15 };
  long line = first_line;
  long begin = 0;
  for (std::size_t at = 0; at < table.size();) {
    const auto head = static_cast<unsigned char>(table[at++]);
    const unsigned code = (head >> 3) & 15U;
    const long units = (head & 7U) + 1;
    int column = -1, end_column = -1;
    bool has_line = true;
    const auto next = [&] { return at < table.size() ? static_cast<unsigned char>(table[at++]) : 0; };
    if (code == kNone) {
      has_line = false;
    } else if (code == kLong) {
      line += SignedVarint(table, &at);
      const unsigned long lines = Varint(table, &at);
      const auto from = static_cast<int>(Varint(table, &at) - 1);
      const auto to = static_cast<int>(Varint(table, &at) - 1);
      if (lines == 0) column = from, end_column = to;
    } else if (code == kNoColumns) {
      line += SignedVarint(table, &at);
    } else if (code >= kOneLine) {
      line += static_cast<long>(code - kOneLine);
      column = next();
      end_column = next();
    } else {
      const int second = next();
      column = static_cast<int>(code << 3) | (second >> 4);
      end_column = column + (second & 15);
    }
    if (unit < begin + units) {
      frame->line = has_line ? static_cast<int>(line) : 0;
      frame->column = column;
      frame->end_column = end_column;
      return;
    }
    begin += units;
  }
}

bool IsPython(const std::string& maps) { return !Interpreters(maps).empty(); }

Python ReadPython(const Memory& memory, const std::string& maps) {
  for (const Mapped& mapped : Interpreters(maps)) {
    const std::uint64_t version = FindSymbol(memory, mapped.base, "Py_Version");
    const std::uint64_t runtime = FindSymbol(memory, mapped.base, "_PyRuntime");
    if (version == 0 || runtime == 0) continue;
    const auto layout = LayoutOf(memory, memory.Read<std::uint32_t>(version).value_or(0), runtime);
    if (!layout) continue;
    const std::uint64_t interpreter = memory.Pointer(runtime + layout->runtime.interpreters);
    const std::uint64_t gil = layout->gil.in_runtime != 0
                                  ? runtime + layout->gil.in_runtime
                                  : memory.Pointer(interpreter + layout->gil.in_interpreter);
    const bool locked = memory.Read<std::int32_t>(gil + layout->gil.locked).value_or(0) == 1;
    const std::uint64_t holder = locked ? memory.Pointer(gil + layout->gil.holder) : 0;
    Python python{{}, gil, gil + layout->gil.size};
    std::uint64_t at = memory.Pointer(interpreter + layout->interpreter.threads);
    for (int i = 0; at != 0 && i < kMostThreads; ++i, at = memory.Pointer(at + layout->thread.next)) {
      PythonThread thread = ThreadAt(memory, *layout, at);
      thread.holds_gil = at == holder;
      if (!thread.frames.empty()) python.threads.push_back(std::move(thread));
    }
    std::stable_partition(python.threads.begin(), python.threads.end(),
                          [&](const PythonThread& one) { return one.id == memory.pid(); });
    return python;
  }
  return {};
}

}  // namespace dtrun::stacks
