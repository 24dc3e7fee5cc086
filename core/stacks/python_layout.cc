#include "core/stacks/python_layout.h"

#include <cstring>

namespace dtrun::stacks {
namespace {

// Include/internal/pycore_{runtime,interp,frame,gil}.h, cpython/{pystate,code,unicodeobject}.h, on 64 bits.
constexpr PythonLayout k311 = {.runtime = {40},
                               .interpreter = {16},
                               .gil = {360, 0, 8, 16, 224},
                               .thread = {8, 160, 56, 8},
                               .frame = {32, 48, 56, 72, {}},
                               .code = {72, 112, 128, 136, 184},
                               .text = {16, 32, 48, 72},
                               .bytes = {16, 32}};
constexpr PythonLayout k312 = {.runtime = {40},
                               .interpreter = {72},
                               .gil = {0, 384, 8, 16, 208},
                               .thread = {8, 144, 56, 0},
                               .frame = {0, 8, 56, 80, 70},
                               .code = {68, 112, 128, 136, 192},
                               .text = {16, 32, 40, 56},
                               .bytes = {16, 32}};

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
constexpr std::uint64_t kLargestFrame = 4096;

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
  const bool sound = at.frame.size >= kWord && is_within(at.frame.executable) &&
                     is_within(at.frame.previous) && is_within(at.frame.instr_ptr) &&
                     at.frame.owner < at.frame.size;
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
      .bytes = {at.bytes.ob_size, at.bytes.ob_sval}};
}

}  // namespace

std::optional<PythonLayout> LayoutOf(const Memory& memory, std::uint32_t version, std::uint64_t runtime) {
  switch (version >> 16) {  // the minor version
    case 0x030b: return k311;
    case 0x030c: return k312;
    case 0x030d: return Described(memory, version, runtime);
    default: return std::nullopt;
  }
}

}  // namespace dtrun::stacks
