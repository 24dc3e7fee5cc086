// Field offsets, in bytes, in the structures of one CPython version.
//
// 3.11 and 3.12 have fixed layouts; 3.13 describes its own in `_PyRuntime` (_Py_DebugOffsets). Other versions
// are untested. Reads the process's memory; any thread that may block.
#pragma once

#include <cstdint>
#include <optional>

#include "core/stacks/memory.h"

namespace dtrun::stacks {

struct PythonLayout {
  struct {
    std::uint64_t interpreters;
  } runtime;
  struct {
    std::uint64_t threads;
  } interpreter;
  // The GIL: in the runtime at `in_runtime`, or at the target of the interpreter's pointer at
  // `in_interpreter`.
  struct {
    std::uint64_t in_runtime, in_interpreter, holder, locked, size;
  } gil;
  struct {
    std::uint64_t next, native_id;
    std::uint64_t frame;  // a pointer to the innermost frame, or to a structure that has one:
    std::optional<std::uint64_t> in_cframe;
  } thread;
  struct {
    std::uint64_t code, previous, instruction, size;
    std::optional<std::uint64_t> owner;  // a byte; 3: a frame of the interpreter
  } frame;
  struct {
    std::uint64_t first_line, file, qualname, table, units;
  } code;
  struct {
    std::uint64_t length, state, ascii, compact;
  } text;
  struct {
    std::uint64_t size, data;
  } bytes;
};

// `version` is Py_Version of the process; nullopt for unknown versions.
std::optional<PythonLayout> LayoutOf(const Memory& memory, std::uint32_t version, std::uint64_t runtime);

}  // namespace dtrun::stacks
