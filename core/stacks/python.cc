#include "core/stacks/python.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "core/base/text.h"
#include "core/stacks/memory.h"

namespace dtrun::stacks {
namespace {

// Include/internal/pycore_{runtime,interp,frame,gil}.h, cpython/{pystate,code,unicodeobject}.h, on 64 bits.
constexpr PythonObjects ObjectsOf(std::uint64_t globals_of_frame, std::uint64_t digits_shift) {
  return {.frame = {globals_of_frame, 72},
          .code = {96},
          .size = 16,
          .items = 24,
          .dict = {16, 32},
          .keys = {9, 10, 24, 32},
          .digits = 16,
          .digits_shift = digits_shift,
          .digits_at = 24};
}
constexpr PythonLayout k311 = {.runtime = {40},
                               .interpreter = {16},
                               .gil = {360, 0, 8, 16, 224},
                               .thread = {8, 160, 56, 8},
                               .frame = {32, 48, 56, 72, {}},
                               .code = {72, 112, 128, 136, 184},
                               .text = {16, 32, 48, 72},
                               .bytes = {16, 32},
                               .objects = ObjectsOf(8, 0)};
constexpr PythonLayout k312 = {.runtime = {40},
                               .interpreter = {72},
                               .gil = {0, 384, 8, 16, 208},
                               .thread = {8, 144, 56, 0},
                               .frame = {0, 8, 56, 80, 70},
                               .code = {68, 112, 128, 136, 192},
                               .text = {16, 32, 40, 56},
                               .bytes = {16, 32},
                               .objects = ObjectsOf(24, 3)};

// _Py_DebugOffsets of 3.13, at the start of _PyRuntime.
struct Offsets313 {
  char cookie[8];
  std::uint64_t version, free_threaded;
  struct {
    std::uint64_t size, finalizing, interpreters_head;
  } runtime;
  struct {
    std::uint64_t size, id, next, threads_head, gc, imports_modules, sysdict, builtins, ceval_gil, gil,
        gil_enabled, gil_locked, gil_holder;
  } interpreter;
  struct {
    std::uint64_t size, prev, next, interp, current_frame, thread_id, native_thread_id, datastack_chunk,
        status;
  } thread;
  struct {
    std::uint64_t size, previous, executable, instr_ptr, localsplus, owner;
  } frame;
  struct {
    std::uint64_t size, filename, name, qualname, linetable, firstlineno, argcount, localsplusnames,
        localspluskinds, co_code_adaptive;
  } code;
  std::uint64_t of_object[2], of_type[4], of_tuple[3], of_list[3], of_dict[3], of_float[2], of_long[3];
  struct {
    std::uint64_t size, ob_size, ob_sval;
  } bytes;
  struct {
    std::uint64_t size, state, length, asciiobject_size;
  } text;
};

constexpr std::uint64_t kGilSize = 208;
constexpr std::uint64_t kLargestFrame = 4096, kLargestCode = 4096;

std::optional<PythonLayout> Described(const Memory& memory, std::uint32_t version, std::uint64_t runtime) {
  const auto offsets = memory.Read<Offsets313>(runtime);
  if (!offsets || std::memcmp(offsets->cookie, "xdebugpy", 8) != 0 || offsets->version != version ||
      offsets->free_threaded != 0 || offsets->frame.size > kLargestFrame) {
    return std::nullopt;
  }
  const Offsets313& at = *offsets;
  // A frame is copied whole and its fields are taken from the copy.
  constexpr std::uint64_t kWord = sizeof(std::uint64_t);
  const auto is_within = [&](std::uint64_t offset) { return offset <= at.frame.size - kWord; };
  // So are the fields of a code object, all before its code.
  const auto is_before_code = [&](std::uint64_t offset) {
    return offset <= at.code.co_code_adaptive - kWord;
  };
  const bool sound = at.frame.size >= kWord && is_within(at.frame.executable) &&
                     is_within(at.frame.previous) && is_within(at.frame.instr_ptr) &&
                     at.frame.owner < at.frame.size && at.code.co_code_adaptive >= kWord &&
                     at.code.co_code_adaptive <= kLargestCode && is_before_code(at.code.filename) &&
                     is_before_code(at.code.qualname) && is_before_code(at.code.linetable) &&
                     is_before_code(at.code.firstlineno);
  if (!sound) return std::nullopt;
  return PythonLayout{
      .runtime = {at.runtime.interpreters_head},
      .interpreter = {at.interpreter.threads_head},
      .gil = {0, at.interpreter.ceval_gil, at.interpreter.gil_holder - at.interpreter.gil,
              at.interpreter.gil_locked - at.interpreter.gil, kGilSize},
      .thread = {at.thread.next, at.thread.native_thread_id, at.thread.current_frame, {}},
      .frame = {at.frame.executable, at.frame.previous, at.frame.instr_ptr, at.frame.size, at.frame.owner},
      .code = {at.code.firstlineno, at.code.filename, at.code.qualname, at.code.linetable,
               at.code.co_code_adaptive},
      .text = {at.text.length, at.text.state, at.text.asciiobject_size, at.text.asciiobject_size + 16},
      .bytes = {at.bytes.ob_size, at.bytes.ob_sval},
      .objects = ObjectsOf(24, 3)};
}

constexpr int kMostThreads = 256;
constexpr int kMostFrames = 100;
constexpr std::size_t kLongestText = 1024;
constexpr std::size_t kLongestTable = std::size_t{1} << 20;
constexpr std::size_t kMostCodes = 1024;  // kept

constexpr std::uint8_t kOfInterpreter = 3;  // owner of a frame

void AppendUtf8(std::uint32_t c, std::string* to) {
  if (c < 0x20 || c == 0x7f || c > 0x10ffff) c = '?';
  const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;  // bytes after the first
  constexpr std::uint32_t kFirst[] = {0, 0xc0, 0xe0, 0xf0};
  to->push_back(static_cast<char>(kFirst[more] | (c >> (6 * more))));
  for (int i = more; i-- > 0;) to->push_back(static_cast<char>(0x80 | ((c >> (6 * i)) & 0x3f)));
}

std::string TableAt(const Memory& memory, const PythonLayout& layout, std::uint64_t object) {
  const auto size = memory.Read<std::uint64_t>(object + layout.bytes.size);
  if (!size || *size > kLongestTable) return {};
  return memory.Bytes(object + layout.bytes.data, *size);
}

template <class T>
T FieldOf(const std::string& copy, std::uint64_t offset) {
  T value{};
  copy.copy(reinterpret_cast<char*>(&value), sizeof value, offset);
  return value;
}

bool NamesPython(std::string_view path) {
  const std::string_view name = FileName(path);
  return name.starts_with("libpython3") || name.starts_with("python3");
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

std::string TextAt(const Memory& memory, const PythonText& at, std::uint64_t object) {
  const auto length = memory.Read<std::uint64_t>(object + at.length);
  const auto state = memory.Read<std::uint32_t>(object + at.state);
  if (!length || !state || *length > kLongestText) return {};
  const std::uint32_t kind = (*state >> 2) & 7U;
  const bool compact = ((*state >> 5) & 1U) != 0;
  const bool ascii = ((*state >> 6) & 1U) != 0;
  if (!compact || (kind != 1 && kind != 2 && kind != 4)) return {};
  const std::string bytes = memory.Bytes(object + (ascii ? at.ascii : at.compact), *length * kind);
  std::string text;
  for (std::size_t i = 0; i + kind <= bytes.size(); i += kind) {
    std::uint32_t c = 0;
    for (std::uint32_t j = 0; j < kind; ++j) {
      c |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i + j])) << (8 * j);
    }
    AppendUtf8(c, &text);
  }
  return text;
}

std::optional<PythonLayout> LayoutOf(const Memory& memory, std::uint32_t version, std::uint64_t runtime) {
  switch (version >> 16) {  // the minor version
    case 0x030b: return k311;
    case 0x030c: return k312;
    case 0x030d: return Described(memory, version, runtime);
    default: return std::nullopt;
  }
}

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

PythonReader::PythonReader(const Memory& memory, const std::string& maps) {
  for (const Mapping& mapped : MappingsIn(maps)) {
    if (!mapped.first || !NamesPython(mapped.path)) continue;
    is_python_ = true;
    version_at_ = FindSymbol(memory, mapped.begin, "Py_Version");
    runtime_ = FindSymbol(memory, mapped.begin, "_PyRuntime");
    if (version_at_ == 0 || runtime_ == 0) continue;
    version_ = memory.Read<std::uint32_t>(version_at_).value_or(0);
    layout_ = LayoutOf(memory, version_, runtime_);
    if (layout_) return;
  }
}

Python PythonReader::Read(const Memory& memory) {
  if (!layout_ || memory.Read<std::uint32_t>(version_at_) != version_) return {};
  const std::uint64_t interpreter = memory.Pointer(runtime_ + layout_->runtime.interpreters);
  const std::uint64_t gil = layout_->gil.in_runtime != 0
                                ? runtime_ + layout_->gil.in_runtime
                                : memory.Pointer(interpreter + layout_->gil.in_interpreter);
  const bool locked = memory.Read<std::int32_t>(gil + layout_->gil.locked).value_or(0) == 1;
  const std::uint64_t holder = locked ? memory.Pointer(gil + layout_->gil.holder) : 0;
  Python python{{}, gil, gil + layout_->gil.size};
  std::uint64_t at = memory.Pointer(interpreter + layout_->interpreter.threads);
  for (int i = 0; at != 0 && i < kMostThreads; ++i, at = memory.Pointer(at + layout_->thread.next)) {
    PythonThread thread = ThreadAt(memory, at);
    thread.holds_gil = at == holder;
    if (!thread.frames.empty()) python.threads.push_back(std::move(thread));
  }
  std::stable_partition(python.threads.begin(), python.threads.end(),
                        [&](const PythonThread& one) { return one.id == memory.pid(); });
  if (!python.threads.empty())
    python.awaited = torch_calls_.AwaitedIn(memory, *layout_, python.threads.front().frames);
  return python;
}

PythonThread PythonReader::ThreadAt(const Memory& memory, std::uint64_t thread) {
  PythonThread out;
  out.id = static_cast<pid_t>(memory.Read<std::uint64_t>(thread + layout_->thread.native_id).value_or(0));
  std::uint64_t at = memory.Pointer(thread + layout_->thread.frame);
  if (layout_->thread.in_cframe) at = memory.Pointer(at + *layout_->thread.in_cframe);
  for (int i = 0; at != 0 && i < 2 * kMostFrames; ++i) {
    if (out.frames.size() == kMostFrames) {
      out.cut = true;
      break;
    }
    const std::string copy = memory.Bytes(at, layout_->frame.size);
    if (copy.empty()) break;
    const std::uint64_t frame_at = at;
    at = FieldOf<std::uint64_t>(copy, layout_->frame.previous);
    if (layout_->frame.owner && static_cast<std::uint8_t>(copy[*layout_->frame.owner]) == kOfInterpreter)
      continue;
    const auto address = FieldOf<std::uint64_t>(copy, layout_->frame.code);
    const Code* const code = CodeAt(memory, address);
    if (code == nullptr) break;
    Frame& frame = out.frames.emplace_back();
    frame.file = code->file;
    frame.function = code->function;
    frame.at = frame_at;
    frame.code = address;
    const std::uint64_t units = address + layout_->code.units;
    const auto instruction = FieldOf<std::uint64_t>(copy, layout_->frame.instruction);
    const long unit = instruction < units ? 0 : static_cast<long>((instruction - units) / 2);
    Locate(code->table, code->first_line, unit, &frame);
  }
  return out;
}

const PythonReader::Code* PythonReader::CodeAt(const Memory& memory, std::uint64_t address) {
  const std::string copy = memory.Bytes(address, layout_->code.units);
  if (copy.empty()) return nullptr;
  const auto file = FieldOf<std::uint64_t>(copy, layout_->code.file);
  const auto function = FieldOf<std::uint64_t>(copy, layout_->code.qualname);
  const auto table = FieldOf<std::uint64_t>(copy, layout_->code.table);
  const auto first_line = FieldOf<std::int32_t>(copy, layout_->code.first_line);
  if (codes_.size() >= kMostCodes && !codes_.contains(address)) codes_.clear();
  Code& code = codes_[address];
  if (code.file_at == file && code.function_at == function && code.table_at == table &&
      code.first_line == first_line && !code.file.empty() && !code.function.empty())
    return &code;
  code = {file,
          function,
          table,
          first_line,
          TextAt(memory, layout_->text, file),
          TextAt(memory, layout_->text, function),
          TableAt(memory, *layout_, table)};
  return code.file.empty() || code.function.empty() ? nullptr : &code;
}

}  // namespace dtrun::stacks
