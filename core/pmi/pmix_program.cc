#include "core/pmi/pmix_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/pmi/kind.h"
#include "sdk/helpers/helper.h"

namespace dtrun::pmi {
namespace {

std::filesystem::path place;  // of the program; empty: not set

Status TryToOpen() {
  if (Status built = Servable(Kind::kPmix); !built) return built;
  const std::filesystem::path program = PmixProgram();
  if (::access(program.c_str(), X_OK) != 0) {
    const int number = errno;
    return Error{
        DTRUN_NOT_FOUND,
        Error::System(fmt::format("cannot start the PMIx server '{}'", program.string()), number).text +
            "; install dtrun again, or start the job with mpirun"};
  }
  const helpers::Answer asked = helpers::Ask({{program.string(), kPmixCheck}});
  if (asked.succeeded()) return {};
  if (asked.end == helpers::End::kNotStarted) {
    return Error::System(fmt::format("start '{}'", program.string()), asked.status);
  }
  if (!asked.text.empty()) return Error{DTRUN_NOT_FOUND, asked.text};
  return Error::Of(DTRUN_INTERNAL, "the PMIx server '{}' does not start; run '{} {}' by hand",
                   program.string(), program.string(), kPmixCheck);
}

}  // namespace

std::filesystem::path PmixProgram() {
  if (!place.empty()) return place;
  std::error_code none;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", none);
  return self.parent_path().parent_path() / "lib/dtrun/dtrun-pmix";
}

void SetPmixProgram(std::filesystem::path program) { place = std::move(program); }

const char* KindName(Kind kind) {
  constexpr const char* kNames[] = {"none", "pmix", "pmi1"};
  return kNames[static_cast<std::size_t>(kind)];
}

Status Servable(Kind kind) {
#ifndef DTRUN_HAS_PMIX
  if (kind == Kind::kPmix) {
    return Error{DTRUN_UNSUPPORTED,
                 "this dtrun was built without PMIx; install libpmix-dev and build it again, or start the "
                 "job with mpirun"};
  }
#else
  (void)kind;
#endif
  return {};
}

Status ServableHere(Kind kind) {
  if (kind != Kind::kPmix) return {};
  static const Status opens = TryToOpen();
  return opens;
}

}  // namespace dtrun::pmi
