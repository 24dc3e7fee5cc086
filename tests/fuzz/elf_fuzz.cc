// Any bytes as a plugin or as the program of a job, before a loader sees them: what is read is said or
// refused.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/plugin/elf.h"
#include "core/plugin/plugin_file.h"
#include "core/pmi/program.h"
#include "tests/fuzz/target.h"

namespace elf_fuzz {

DTRUN_FUZZ_TARGET(elf)(const std::uint8_t* data, std::size_t size) {
  static const int file = ::memfd_create("program", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (::ftruncate(file, 0) != 0 || ::pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  const auto opened = dtrun::plugin::OpenedFile::Open(path);
  if (!opened) return 0;  // it holds more than a plugin may
  const auto elf = dtrun::plugin::ReadElf(*opened);
  if (elf.ok() ? elf->build_id.size() > 2 * size : elf.error().text.empty()) std::abort();
  if (dtrun::pmi::MpiLibraryOf(path).size() > size) std::abort();
  return 0;
}

}  // namespace elf_fuzz
