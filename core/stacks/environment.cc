#include "core/stacks/environment.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "core/base/text.h"
#include "core/stacks/memory.h"

namespace dtrun::stacks {
namespace {

constexpr int kMostVariables = 4096;
constexpr std::size_t kLongestEntry = 320;
constexpr std::uint64_t kPageBytes = 4096;

// Where the program itself and its C library are mapped. If a program refers to `environ`, the loader has
// moved the variable into the program (copy relocation).
std::vector<std::uint64_t> ModulesWithEnviron(const std::string& maps) {
  std::vector<std::uint64_t> bases;
  bool first = true;
  for (const Mapping& mapping : MappingsIn(maps)) {
    if (!mapping.first) continue;
    const std::string_view name = FileName(mapping.path);
    if (first || name.starts_with("libc.so") || name.starts_with("libc-") || name.starts_with("ld-musl"))
      bases.push_back(mapping.begin);
    first = false;
  }
  return bases;
}

// Reads up to the end of the entry, or up to the wanted length.
std::string EntryAt(const Memory& memory, std::uint64_t address) {
  std::string text;
  while (text.size() < kLongestEntry) {
    const std::size_t size =
        std::min<std::size_t>(kPageBytes - address % kPageBytes, kLongestEntry - text.size());
    const std::string piece = memory.Bytes(address, size);
    const auto end = piece.find('\0');
    text += piece.substr(0, end);
    if (piece.empty() || end != std::string::npos) break;
    address += size;
  }
  return text;
}

}  // namespace

std::map<std::string, std::string> EnvironmentNow(const Memory& memory, const std::string& maps,
                                                  const std::vector<std::string>& names) {
  constexpr std::size_t kLongestValue = 256;
  std::map<std::string, std::string> found;
  for (const std::uint64_t base : ModulesWithEnviron(maps)) {
    const std::uint64_t symbol = FindSymbol(memory, base, "__environ");
    std::uint64_t at = symbol == 0 ? 0 : memory.Pointer(symbol);
    for (int i = 0; at != 0 && i < kMostVariables; ++i, at += sizeof(std::uint64_t)) {
      const std::uint64_t entry = memory.Pointer(at);
      if (entry == 0) break;
      const std::string text = EntryAt(memory, entry);
      const auto equals = text.find('=');
      if (equals == std::string::npos || std::ranges::find(names, text.substr(0, equals)) == names.end())
        continue;
      found.emplace(text.substr(0, equals), text.substr(equals + 1, kLongestValue));
    }
    if (!found.empty()) break;
  }
  return found;
}

}  // namespace dtrun::stacks
