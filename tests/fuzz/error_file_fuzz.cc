// Any bytes as the error file of a rank (TORCHELASTIC_ERROR_FILE): the summary is made, and stays short.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "tests/fuzz/target.h"
#include "tools/dtrun/torchrun/front.h"

namespace error_file_fuzz {

dtrun::verdict::Facts Failed() {
  dtrun::verdict::Facts facts;
  facts.ranks.resize(1);
  facts.ranks[0].ending = dtrun::process::Ending{7};
  facts.first_failed = 0;
  return facts;
}

DTRUN_FUZZ_TARGET(error_file)(const std::uint8_t* data, std::size_t size) {
  static const int file = ::memfd_create("error.json", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (::ftruncate(file, 0) != 0 || ::pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  const auto failures = dtrun::torchrun::FailuresOf(Failed(), 0, {}, {{0, path}});
  if (!failures) std::abort();
  const std::string summary = dtrun::torchrun::Summary("train.py", *failures);
  if (summary.size() > 16 * size + 2000) std::abort();
  (void)dtrun::torchrun::RootErrorFile(*failures);
  return 0;
}

}  // namespace error_file_fuzz
