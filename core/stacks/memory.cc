#include "core/stacks/memory.h"

#include <elf.h>
#include <sys/uio.h>

#include <cstdint>
#include <cstring>
#include <string_view>

#include "core/base/number.h"
#include "core/base/text.h"

namespace dtrun::stacks {
namespace {

constexpr std::uint64_t kFirstPage = 4096;  // never mapped by a program

constexpr int kMostHeaders = 64;
constexpr int kMostEntries = 256;
constexpr int kLongestChain = 4096;

// The hash of DT_GNU_HASH.
std::uint32_t HashOf(std::string_view name) {
  std::uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

struct Tables {
  std::uint64_t symbols = 0, strings = 0, hashes = 0;
};

Tables TablesOf(const Memory& memory, std::uint64_t dynamic, std::uint64_t bias) {
  Tables tables;
  for (int i = 0; i < kMostEntries; ++i) {
    const auto entry = memory.Read<Elf64_Dyn>(dynamic + static_cast<std::uint64_t>(i) * sizeof(Elf64_Dyn));
    if (!entry || entry->d_tag == DT_NULL) break;
    // glibc's loader has turned these into addresses in shared objects; musl's leaves them as offsets.
    const std::uint64_t address = entry->d_un.d_ptr < bias ? entry->d_un.d_ptr + bias : entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) tables.symbols = address;
    if (entry->d_tag == DT_STRTAB) tables.strings = address;
    if (entry->d_tag == DT_GNU_HASH) tables.hashes = address;
  }
  return tables;
}

std::uint64_t LookUp(const Memory& memory, const Tables& tables, std::string_view name, std::uint64_t bias) {
  struct Head {
    std::uint32_t buckets, first, bloom_words, bloom_shift;
  };
  const auto head = memory.Read<Head>(tables.hashes);
  if (!head || head->buckets == 0) return 0;
  const std::uint64_t buckets = tables.hashes + sizeof(Head) + std::uint64_t{8} * head->bloom_words;
  const std::uint64_t chains = buckets + std::uint64_t{4} * head->buckets;
  const std::uint32_t wanted = HashOf(name);
  auto index = memory.Read<std::uint32_t>(buckets + std::uint64_t{4} * (wanted % head->buckets));
  for (int i = 0; index && *index >= head->first && i < kLongestChain; ++i, ++*index) {
    const auto hash = memory.Read<std::uint32_t>(chains + std::uint64_t{4} * (*index - head->first));
    if (!hash) return 0;
    if ((*hash | 1U) == (wanted | 1U)) {
      const auto symbol = memory.Read<Elf64_Sym>(tables.symbols + std::uint64_t{*index} * sizeof(Elf64_Sym));
      if (!symbol) return 0;
      const std::string text = memory.Bytes(tables.strings + symbol->st_name, name.size() + 1);
      if (text == std::string(name) + '\0') return symbol->st_value + bias;
    }
    if ((*hash & 1U) != 0) return 0;
  }
  return 0;
}

}  // namespace

bool Memory::Copy(std::uint64_t address, void* to, std::size_t size) const {
  if (address < kFirstPage || copies_ == kMostCopies || size > kMostBytes - bytes_) return false;
  ++copies_;
  bytes_ += size;
  return CopyFrom(address, to, size);
}

std::string Memory::Bytes(std::uint64_t address, std::size_t size) const {
  std::string bytes(size, '\0');
  if (!Copy(address, bytes.data(), size)) bytes.clear();
  return bytes;
}

bool ProcessMemory::CopyFrom(std::uint64_t address, void* to, std::size_t size) const {
  const iovec here{to, size};
  const iovec there{reinterpret_cast<void*>(address), size};  // NOLINT(performance-no-int-to-ptr)
  return ::process_vm_readv(pid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(size);
}

std::vector<Mapping> MappingsIn(std::string_view maps) {
  std::vector<Mapping> mappings;
  for (std::string_view line : LinesOf(maps)) {
    const auto path = line.find('/');
    if (path == line.npos) continue;
    Mapping mapping{.path = line.substr(path)};
    line = line.substr(0, path);
    const auto begin = TakeNumber<std::uint64_t>(&line, 16);
    if (!begin || !line.starts_with('-')) continue;
    line.remove_prefix(1);
    mapping.begin = *begin;
    mapping.end = TakeNumber<std::uint64_t>(&line, 16).value_or(0);
    const std::vector<std::string_view> fields = Split(Trim(line), ' ');  // rights, offset, device, inode
    mapping.first = fields.size() > 1 && NumberOf<std::uint64_t>(fields[1], 16) == std::uint64_t{0};
    mappings.push_back(mapping);
  }
  return mappings;
}

std::uint64_t FindSymbol(const Memory& memory, std::uint64_t base, std::string_view name) {
  const auto header = memory.Read<Elf64_Ehdr>(base);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return 0;
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_phentsize != sizeof(Elf64_Phdr)) return 0;
  std::uint64_t dynamic = 0, lowest = UINT64_MAX;
  for (int i = 0; i < header->e_phnum && i < kMostHeaders; ++i) {
    const auto program =
        memory.Read<Elf64_Phdr>(base + header->e_phoff + static_cast<std::uint64_t>(i) * sizeof(Elf64_Phdr));
    if (!program) return 0;
    if (program->p_type == PT_LOAD && program->p_vaddr < lowest) lowest = program->p_vaddr & ~0xfffULL;
    if (program->p_type == PT_DYNAMIC) dynamic = program->p_vaddr;
  }
  if (dynamic == 0 || lowest == UINT64_MAX) return 0;
  const std::uint64_t bias = base - lowest;
  const Tables tables = TablesOf(memory, dynamic + bias, bias);
  if (tables.symbols == 0 || tables.strings == 0 || tables.hashes == 0) return 0;
  return LookUp(memory, tables, name, bias);
}

}  // namespace dtrun::stacks
