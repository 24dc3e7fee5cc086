// Where the structures of one version of CPython have their fields, in bytes.
//
// 3.11 and 3.12 have fixed layouts; 3.13 describes its own in `_PyRuntime` (_Py_DebugOffsets). Others have
// not been tried. Reads the process's memory; any thread, where waiting is allowed.
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
  // The interpreter's lock (GIL): in the runtime at `in_runtime`, or where the interpreter's pointer at
  // `in_interpreter` leads.
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
    std::optional<std::uint64_t> owner;  // a byte; 3: a frame of the interpreter itself
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

// `version` is Py_Version of the process; nothing for one that is not known.
std::optional<PythonLayout> LayoutOf(const Memory& memory, std::uint32_t version, std::uint64_t runtime);

}  // namespace dtrun::stacks
