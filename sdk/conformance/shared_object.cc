#include "shared_object.h"

#include <elf.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace dtrun::conformance {
namespace {

class Image {
 public:
  explicit Image(const std::string& file) : file_(file) {
    std::ifstream in(file, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
    header_ = At<Elf64_Ehdr>(0);
    if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 || header_.e_ident[EI_CLASS] != ELFCLASS64) {
      throw std::runtime_error("'" + file + "' is no 64-bit ELF object");
    }
  }

  template <class T>
  T At(std::size_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) {
      throw std::runtime_error("'" + file_ + "' is cut short, or no ELF object");
    }
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }

  // The sections of this type.
  std::vector<Elf64_Shdr> Sections(std::uint32_t type) const {
    std::vector<Elf64_Shdr> found;
    for (std::size_t i = 0; i < header_.e_shnum; ++i) {
      const auto section = Section(i);
      if (section.sh_type == type) found.push_back(section);
    }
    return found;
  }
  Elf64_Shdr Section(std::size_t index) const {
    return At<Elf64_Shdr>(header_.e_shoff + index * header_.e_shentsize);
  }
  // The string at `offset` of the table that `section` links.
  std::string Text(const Elf64_Shdr& section, std::size_t offset) const {
    const std::size_t at = Section(section.sh_link).sh_offset + offset;
    At<char>(at);
    return std::string(bytes_.data() + at, strnlen(bytes_.data() + at, bytes_.size() - at));
  }

 private:
  const std::string file_;
  std::vector<char> bytes_;
  Elf64_Ehdr header_;
};

}  // namespace

SharedObject ReadSharedObject(const std::string& file) {
  const Image image(file);
  SharedObject object;
  for (const Elf64_Shdr& section : image.Sections(SHT_DYNSYM)) {
    for (std::size_t at = 0; at < section.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = image.At<Elf64_Sym>(section.sh_offset + at);
      const int binding = ELF64_ST_BIND(symbol.st_info), shown = ELF64_ST_VISIBILITY(symbol.st_other);
      if (symbol.st_shndx == SHN_UNDEF || binding == STB_LOCAL || shown == STV_HIDDEN ||
          shown == STV_INTERNAL)
        continue;
      object.exported.push_back(image.Text(section, symbol.st_name));
      if (binding == STB_GNU_UNIQUE) object.unique.push_back(object.exported.back());
    }
  }
  for (const Elf64_Shdr& section : image.Sections(SHT_DYNAMIC)) {
    for (std::size_t at = 0; at < section.sh_size; at += sizeof(Elf64_Dyn)) {
      const auto entry = image.At<Elf64_Dyn>(section.sh_offset + at);
      if (entry.d_tag == DT_NEEDED) object.needed.push_back(image.Text(section, entry.d_un.d_val));
      if (entry.d_tag == DT_FLAGS_1) object.nodelete = (entry.d_un.d_val & DF_1_NODELETE) != 0;
    }
  }
  return object;
}

}  // namespace dtrun::conformance
