// The stacks of a Python program, read from outside while it runs, waits or is stopped.
//
// Copies the interpreter's own structures out of the process, like py-spy: it loads nothing into the process,
// sends no signal, does not stop it, and does not need its GIL. Structures that change during the read give a
// wrong or shorter stack, never a fault here. CPython 3.11 to 3.13 (python_layout.h); other versions give no
// stacks. Any thread that may block.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/stacks/frame.h"
#include "core/stacks/memory.h"
#include "core/stacks/python_layout.h"
#include "core/stacks/torch_call.h"

namespace dtrun::stacks {

// `version` is Py_Version of the process; nullopt for unknown versions.
std::optional<PythonLayout> LayoutOf(const Memory& memory, std::uint32_t version, std::uint64_t runtime);

struct Python {
  std::vector<PythonThread> threads;  // main thread first; empty: no readable Python
  // The address range of its GIL: a thread that waits at an address in it waits for the GIL.
  std::uint64_t lock_begin = 0, lock_end = 0;
  std::optional<std::vector<int>> awaited = {};  // by its main thread (torch_call.h)
};

// Reads the stacks of one process, at best many times: keeps where the interpreter is and the code objects
// that it has met, which makes a later read five times cheaper. One thread at a time.
class PythonReader {
 public:
  // `maps`: the process's /proc/PID/maps.
  PythonReader(const Memory& memory, const std::string& maps);

  // Whether it is Python at all; another tool may be able to read it.
  bool is_python() const { return is_python_; }
  // No threads if the process runs another program by now.
  Python Read(const Memory& memory);

 private:
  // A code object, and the values of its fields that tell it from another one at its address.
  struct Code {
    std::uint64_t file_at = 0, function_at = 0, table_at = 0;
    std::int32_t first_line = 0;
    std::string file, function, table;
  };

  const Code* CodeAt(const Memory& memory, std::uint64_t address);
  PythonThread ThreadAt(const Memory& memory, std::uint64_t thread);

  bool is_python_ = false;
  std::optional<PythonLayout> layout_;
  std::uint32_t version_ = 0;  // Py_Version
  std::uint64_t version_at_ = 0, runtime_ = 0;
  std::map<std::uint64_t, Code> codes_;  // by address
  TorchCalls torch_calls_;
};

// The source location of an instruction: the entry for code unit `unit` in a code object's location table
// (PEP 626 and 657).
void Locate(const std::string& table, int first_line, long unit, Frame* frame);

}  // namespace dtrun::stacks
