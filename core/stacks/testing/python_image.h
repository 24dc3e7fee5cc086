// The memory of a process with CPython 3.11, as far as core/stacks/python.h reads it: two threads, the first
// one two calls deep. A test may change any bytes.
//
// Owned by a test; one thread.
#pragma once

#include <elf.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "core/stacks/memory.h"

namespace dtrun::stacks::testing {

class PythonImage final : public Memory {
 public:
  static constexpr std::uint64_t kBase = 0x10000;
  static constexpr std::size_t kSize = 0x2000;
  static constexpr pid_t kPid = 100;
  // Addresses of both threads, of the frames and of their code.
  static constexpr std::uint64_t kThread = 0x1000, kSecondThread = 0x1100, kFrame = 0x1200, kCaller = 0x1280,
                                 kCode = 0x1300, kCallerCode = 0x1400;
  static constexpr std::uint64_t kVersion = 0x380;  // of Py_Version

  PythonImage() : Memory(kPid) {
    PutLibrary();
    Put(kVersion, std::uint32_t{0x030b07f0});
    PutPointer(kRuntime + 40, kInterpreter);
    PutPointer(kRuntime + 368, kThread);   // holds the GIL,
    Put(kRuntime + 376, std::int32_t{1});  // which is locked
    PutPointer(kInterpreter + 16, kThread);
    PutThread(kThread, kSecondThread, kFrame, kPid);
    PutThread(kSecondThread, 0, kCaller, kPid + 1);
    PutFrame(kFrame, kCode, kCaller);
    PutFrame(kCaller, kCallerCode, 0);
    PutCode(kCode, 40, 0x1500, 0x1600, 0x1700);
    PutCode(kCallerCode, 3, 0x1500, 0x1680, 0x1780);
    PutText(0x1500, "/work/train.py");
    PutText(0x1600, "step");
    PutText(0x1680, "<module>");
    PutTable(0x1700, {0x80, 0x45});  // one unit, no lines further, columns 4 to 9
    PutTable(0x1780, {0xe8, 0x02});  // one unit, one line further, no columns
  }

  static std::string Maps() {
    return "00010000-00012000 r--p 00000000 00:00 1 /usr/lib/libpython3.11.so.1.0\n";
  }

  // `at`: offset from the base.
  template <class T>
  void Put(std::uint64_t at, const T& value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  void PutPointer(std::uint64_t at, std::uint64_t to) { Put(at, to == 0 ? 0 : kBase + to); }
  void PutTable(std::uint64_t at, std::initializer_list<unsigned char> table) {
    Put(at + 16, std::uint64_t{table.size()});
    for (const unsigned char byte : table) Put(at++ + 32, byte);
  }
  void PutText(std::uint64_t at, std::string_view text) {
    Put(at + 16, std::uint64_t{text.size()});
    Put(at + 32, std::uint32_t{1U << 2 | 1U << 5 | 1U << 6});  // of bytes, compact, ASCII
    text.copy(bytes_.data() + at + 48, text.size());
  }

 private:
  static constexpr std::uint64_t kDynamic = 0x100, kSymbols = 0x200, kNames = 0x280, kHashes = 0x300,
                                 kRuntime = 0x400, kInterpreter = 0x800, kCframe = 0x80;

  bool CopyFrom(std::uint64_t address, void* to, std::size_t size) const override {
    const std::uint64_t at = address - kBase;
    if (address < kBase || at > kSize || size > kSize - at) return false;
    std::memcpy(to, bytes_.data() + at, size);
    return true;
  }

  void PutLibrary() {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 2;
    Put(0, header);
    Elf64_Phdr program{};
    program.p_type = PT_LOAD;
    Put(sizeof header, program);
    program.p_type = PT_DYNAMIC;
    program.p_vaddr = kDynamic;
    Put(sizeof header + sizeof program, program);
    std::uint64_t at = kDynamic;
    for (const auto& [tag, where] :
         {std::pair(DT_SYMTAB, kSymbols), std::pair(DT_STRTAB, kNames), std::pair(DT_GNU_HASH, kHashes)}) {
      Elf64_Dyn entry{};
      entry.d_tag = tag;
      entry.d_un.d_ptr = kBase + where;
      Put(at, entry);
      at += sizeof entry;
    }
    constexpr std::string_view kVersionName = "Py_Version", kRuntimeName = "_PyRuntime";
    PutSymbol(1, 1, kVersionName, kVersion);
    PutSymbol(2, 32, kRuntimeName, kRuntime);
    // One bucket with a chain that begins with symbol 1; a filter of one word.
    Put(kHashes, std::array<std::uint32_t, 9>{1, 1, 1, 0, 0, 0, 1, HashOf(kVersionName) & ~1U,
                                              HashOf(kRuntimeName) | 1U});
  }

  void PutSymbol(std::uint64_t index, std::uint32_t name_at, std::string_view name, std::uint64_t value) {
    Elf64_Sym symbol{};
    symbol.st_name = name_at;
    symbol.st_value = value;
    Put(kSymbols + index * sizeof symbol, symbol);
    name.copy(bytes_.data() + kNames + name_at, name.size());
  }

  static std::uint32_t HashOf(std::string_view name) {
    std::uint32_t hash = 5381;
    for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
    return hash;
  }

  void PutThread(std::uint64_t at, std::uint64_t next, std::uint64_t frame, pid_t id) {
    PutPointer(at + 8, next);
    PutPointer(at + 56, at + kCframe + 56);
    PutPointer(at + kCframe + 64, frame);
    Put(at + 160, std::uint64_t{static_cast<std::uint32_t>(id)});
  }
  void PutFrame(std::uint64_t at, std::uint64_t code, std::uint64_t caller) {
    PutPointer(at + 32, code);
    PutPointer(at + 48, caller);
    PutPointer(at + 56, code + 184);
  }
  void PutCode(std::uint64_t at, std::int32_t line, std::uint64_t file, std::uint64_t name,
               std::uint64_t table) {
    Put(at + 72, line);
    PutPointer(at + 112, file);
    PutPointer(at + 128, name);
    PutPointer(at + 136, table);
  }

  std::array<char, kSize> bytes_{};
};

}  // namespace dtrun::stacks::testing
