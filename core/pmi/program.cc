#include "core/pmi/program.h"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/fd.h"
#include "core/base/read_file.h"

namespace dtrun::pmi {
namespace {

// Limit for the sections that are read; no real program exceeds it.
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

UniqueFd Opened(const std::filesystem::path& file) {
  Result<UniqueFd> opened = OpenForeignFile(file);
  return opened ? *std::move(opened) : UniqueFd();
}

// The sections of a file that name its dependencies. Missing or invalid parts count as empty.
class Elf {
 public:
  explicit Elf(const std::filesystem::path& file) : fd_(Opened(file)) {
    const auto header = Read<Elf64_Ehdr>(0, 1);
    if (header.empty() || std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0 ||
        header[0].e_ident[EI_CLASS] != ELFCLASS64) {
      return;
    }
    segments_ = Read<Elf64_Phdr>(header[0].e_phoff, header[0].e_phnum);
  }

  std::vector<std::string> Needed() const {
    std::vector<std::string> names;
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type != PT_DYNAMIC) continue;
      const auto entries = Read<Elf64_Dyn>(segment.p_offset, segment.p_filesz / sizeof(Elf64_Dyn));
      std::uint64_t address = 0, size = 0;
      for (const Elf64_Dyn& entry : entries) {
        if (entry.d_tag == DT_STRTAB) address = entry.d_un.d_ptr;
        if (entry.d_tag == DT_STRSZ) size = entry.d_un.d_val;
      }
      std::vector<char> texts = Read<char>(OffsetOf(address), size);
      texts.push_back('\0');
      for (const Elf64_Dyn& entry : entries) {
        if (entry.d_tag == DT_NEEDED && entry.d_un.d_val < texts.size())
          names.emplace_back(&texts[entry.d_un.d_val]);
      }
    }
    return names;
  }

 private:
  template <class T>
  std::vector<T> Read(std::uint64_t offset, std::uint64_t count) const {
    if (!fd_ || count > kMostBytes / sizeof(T)) return {};
    std::vector<T> out(count);
    const auto bytes = static_cast<ssize_t>(count * sizeof(T));
    if (::pread(fd_.get(), out.data(), count * sizeof(T), static_cast<off_t>(offset)) != bytes) return {};
    return out;
  }

  std::uint64_t OffsetOf(std::uint64_t address) const {
    for (const Elf64_Phdr& segment : segments_) {
      const bool holds = address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz;
      if (segment.p_type == PT_LOAD && holds) return segment.p_offset + (address - segment.p_vaddr);
    }
    return 0;
  }

  UniqueFd fd_;
  std::vector<Elf64_Phdr> segments_;
};

}  // namespace

Kind KindOfLibrary(std::string_view name) {
  // MPICH itself, and the common name agreed with its derivatives.
  if (name.starts_with("libmpich.so") || name == "libmpi.so.12") return Kind::kPmi1;
  return name.starts_with("libmpi.so.") ? Kind::kPmix : Kind::kNone;
}

std::string MpiLibraryOf(const std::filesystem::path& program) {
  for (const std::string& name : Elf(program).Needed()) {
    if (KindOfLibrary(name) != Kind::kNone) return name;
  }
  return {};
}

bool IsLinkedWith(const std::filesystem::path& program, std::string_view library) {
  return std::ranges::any_of(Elf(program).Needed(),
                             [&](const std::string& name) { return name.starts_with(library); });
}

Kind KindOfProgram(const std::filesystem::path& program) { return KindOfLibrary(MpiLibraryOf(program)); }

}  // namespace dtrun::pmi
