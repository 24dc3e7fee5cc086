// Field offsets, in bytes, in the structures of one CPython version.
//
// Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/stacks/memory.h"

namespace dtrun::stacks {

struct PythonText {
  std::uint64_t length, state, ascii, compact;
};

// What is needed to find a frame's variables, and an entry of a dict.
struct PythonObjects {
  struct {
    std::uint64_t globals, variables;
  } frame;
  struct {
    std::uint64_t names;  // of the variables: a tuple
  } code;
  std::uint64_t size, items;  // of a tuple
  struct {
    std::uint64_t used, keys;
  } dict;
  struct {
    std::uint64_t log2_index_bytes, kind, entries, indices;
  } keys;
  std::uint64_t digits, digits_shift, digits_at;  // of an int: its number of digits, above some bits; these
};

// Of one version. 3.11 and 3.12 have fixed layouts; 3.13 describes its own in `_PyRuntime`
// (_Py_DebugOffsets). Other versions are untested.
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
  PythonText text;
  struct {
    std::uint64_t size, data;
  } bytes;
  std::optional<PythonObjects> objects;
};

// A str object, with '?' for characters that could move a terminal's cursor.
std::string TextAt(const Memory& memory, const PythonText& text, std::uint64_t object);

}  // namespace dtrun::stacks
