#include "core/plugin/elf.h"

#include <elf.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

namespace dtrun::plugin {
namespace {

// Larger notes contain no build-id worth printing.
constexpr std::uint64_t kMaxNoteBytes = 64 << 10;

Error Unlike(std::string why) { return Error{DTRUN_INVALID_ARGUMENT, std::move(why)}; }

Error Broken(std::string_view why) {
  return Unlike(fmt::format("truncated or not a shared object: {}", why));
}

Elf64_Half NativeMachine() {
#if defined(__x86_64__)
  return EM_X86_64;
#elif defined(__aarch64__)
  return EM_AARCH64;
#elif defined(__riscv)
  return EM_RISCV;
#elif defined(__powerpc64__)
  return EM_PPC64;
#else
#error "add this machine's ELF number"
#endif
}

// Whether [offset, offset + size) lies in the file.
bool Inside(std::uint64_t offset, std::uint64_t size, std::uint64_t file_size) {
  return offset <= file_size && size <= file_size - offset;
}

bool ReadAt(int fd, void* out, std::size_t size, std::uint64_t offset) {
  return ::pread(fd, out, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

// The build-id among the notes of one PT_NOTE segment.
std::string BuildId(const std::vector<unsigned char>& notes) {
  std::size_t at = 0;
  while (notes.size() - at >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr header;
    std::memcpy(&header, notes.data() + at, sizeof header);
    at += sizeof header;
    const std::size_t name = (std::size_t{header.n_namesz} + 3) & ~std::size_t{3};
    const std::size_t body = (std::size_t{header.n_descsz} + 3) & ~std::size_t{3};
    if (name > notes.size() - at || body > notes.size() - at - name) return {};
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
        std::memcmp(notes.data() + at, "GNU", 4) == 0) {
      std::string hex;
      for (std::size_t i = 0; i < header.n_descsz; ++i) hex += fmt::format("{:02x}", notes[at + name + i]);
      return hex;
    }
    at += name + body;
  }
  return {};
}

}  // namespace

Result<ElfFile> ReadElf(const OpenedFile& file) {
  const int fd = file.descriptor();
  const auto size = static_cast<std::uint64_t>(file.info().st_size);

  Elf64_Ehdr header;
  if (size < sizeof header)
    return Broken(fmt::format("the file has {} bytes, an ELF header alone has 64", size));
  if (!ReadAt(fd, &header, sizeof header, 0)) return Broken("its header cannot be read");
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return Broken("it does not begin with the ELF magic");
  constexpr unsigned char kByteOrder = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  if (header.e_ident[EI_CLASS] == ELFCLASS32)
    return Unlike("it is of the 32-bit ELF class, and this dtrun loads 64-bit objects");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != kByteOrder ||
      header.e_machine != NativeMachine()) {
    return Unlike(fmt::format("it is for another machine (ELF machine {}; this one is {})", header.e_machine,
                              NativeMachine()));
  }
  if (header.e_type != ET_DYN) return Broken("its ELF type is not 'shared object'");
  const std::uint64_t segments_bytes = std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0 ||
      !Inside(header.e_phoff, segments_bytes, size)) {
    return Broken("its program headers lie outside the file");
  }
  // A truncated file loses the section headers first; the loader would not notice.
  if (!Inside(header.e_shoff, std::uint64_t{header.e_shnum} * header.e_shentsize, size)) {
    return Broken(fmt::format("its section headers lie behind the end of the file at byte {}", size));
  }

  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!ReadAt(fd, segments.data(), segments_bytes, header.e_phoff)) {
    return Broken("its program headers cannot be read");
  }
  ElfFile elf;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD && !Inside(segment.p_offset, segment.p_filesz, size)) {
      return Broken(fmt::format("a segment lies behind the end of the file at byte {}", size));
    }
    if (segment.p_type != PT_NOTE || !elf.build_id.empty() || segment.p_filesz > kMaxNoteBytes ||
        !Inside(segment.p_offset, segment.p_filesz, size)) {
      continue;
    }
    std::vector<unsigned char> notes(segment.p_filesz);
    if (ReadAt(fd, notes.data(), notes.size(), segment.p_offset)) elf.build_id = BuildId(notes);
  }
  return elf;
}

}  // namespace dtrun::plugin
