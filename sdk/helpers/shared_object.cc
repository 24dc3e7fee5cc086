#include "sdk/helpers/shared_object.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <regex>
#include <stdexcept>

namespace dtrun::helpers {
namespace {

class Image {
 public:
  explicit Image(const std::string& file)
      : file_(file), descriptor_(open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    struct stat info {};
    if (descriptor_ < 0 || fstat(descriptor_, &info) != 0 || !S_ISREG(info.st_mode))
      throw std::runtime_error("'" + file + "' cannot be read, or is no file");
    size_ = static_cast<std::size_t>(info.st_size);
    header_ = At<Elf64_Ehdr>(Bytes(0, sizeof header_), 0);
    if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 || header_.e_ident[EI_CLASS] != ELFCLASS64) {
      throw std::runtime_error("'" + file + "' is no 64-bit ELF object");
    }
  }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  ~Image() { close(descriptor_); }

  std::string Bytes(std::size_t offset, std::size_t size) const {
    if (offset > size_ || size_ - offset < size) CutShort();
    std::string bytes(size, '\0');
    for (std::size_t at = 0; at < size;) {
      const ssize_t read = pread(descriptor_, bytes.data() + at, size - at, static_cast<off_t>(offset + at));
      if (read <= 0) CutShort();
      at += static_cast<std::size_t>(read);
    }
    return bytes;
  }
  template <class T>
  T At(const std::string& bytes, std::size_t offset) const {
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) CutShort();
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  }

  Elf64_Shdr Section(std::size_t index) const {
    return At<Elf64_Shdr>(Bytes(header_.e_shoff + index * header_.e_shentsize, sizeof(Elf64_Shdr)), 0);
  }
  // Calls `take` with each T of the sections of this type, and the strings that the section refers to.
  template <class T, class Take>
  void Each(std::uint32_t type, Take take) const {
    for (std::size_t i = 0; i < header_.e_shnum; ++i) {
      const Elf64_Shdr section = Section(i);
      if (section.sh_type != type) continue;
      const Elf64_Shdr linked = Section(section.sh_link);
      const std::string bytes = Bytes(section.sh_offset, section.sh_size);
      const std::string strings = Bytes(linked.sh_offset, linked.sh_size);
      for (std::size_t at = 0; at < bytes.size(); at += sizeof(T)) take(At<T>(bytes, at), strings);
    }
  }
  std::string Text(const std::string& strings, std::size_t offset) const {
    if (offset >= strings.size()) CutShort();
    return strings.substr(offset, strings.find('\0', offset) - offset);
  }

 private:
  [[noreturn]] void CutShort() const {
    throw std::runtime_error("'" + file_ + "' is cut short, or no ELF object");
  }

  const std::string file_;
  const int descriptor_;
  std::size_t size_ = 0;
  Elf64_Ehdr header_;
};

}  // namespace

SharedObject ReadSharedObject(const std::string& file) {
  const Image image(file);
  SharedObject object;
  image.Each<Elf64_Sym>(SHT_DYNSYM, [&](const Elf64_Sym& symbol, const std::string& strings) {
    const int binding = ELF64_ST_BIND(symbol.st_info), shown = ELF64_ST_VISIBILITY(symbol.st_other);
    if (symbol.st_shndx == SHN_UNDEF || binding == STB_LOCAL || shown == STV_HIDDEN || shown == STV_INTERNAL)
      return;
    object.exported.push_back(image.Text(strings, symbol.st_name));
    if (binding == STB_GNU_UNIQUE) object.unique.push_back(object.exported.back());
  });
  image.Each<Elf64_Dyn>(SHT_DYNAMIC, [&](const Elf64_Dyn& entry, const std::string& strings) {
    if (entry.d_tag == DT_NEEDED) object.needed.push_back(image.Text(strings, entry.d_un.d_val));
    if (entry.d_tag == DT_FLAGS_1) object.nodelete = (entry.d_un.d_val & DF_1_NODELETE) != 0;
  });
  return object;
}

std::vector<std::string> ForeignSymbols(const SharedObject& plugin) {
  static const std::regex kEntry("dtrun_plugin_entry_v[0-9]+");
  std::vector<std::string> foreign;
  std::copy_if(plugin.exported.begin(), plugin.exported.end(), std::back_inserter(foreign),
               [](const std::string& name) { return !std::regex_match(name, kEntry); });
  return foreign;
}

std::vector<std::string> Unfit(const SharedObject& plugin) {
  constexpr std::size_t kNamed = 5;
  std::vector<std::string> found;
  const std::vector<std::string> foreign = ForeignSymbols(plugin);
  std::string names;
  for (std::size_t i = 0; i < foreign.size() && i < kNamed; ++i)
    names += (names.empty() ? "'" : ", '") + foreign[i] + "'";
  if (foreign.size() > kNamed) names += " and " + std::to_string(foreign.size() - kNamed) + " more";
  if (!names.empty())
    found.push_back("it exports " + names +
                    "; hide all but the entry (dtrun_add_plugin does, or the linker with plugin.map)");
  for (const std::string& name : plugin.unique)
    found.push_back("'" + name + "' is unique in the process; compile with -fno-gnu-unique");
  static const std::regex kForeign("lib(dtrun|torch|c10)[._-].*");
  for (const std::string& name : plugin.needed) {
    if (std::regex_match(name, kForeign))
      found.push_back("it links '" + name + "'; a plugin sees dtrun through the C ABI only");
  }
  return found;
}

}  // namespace dtrun::helpers
