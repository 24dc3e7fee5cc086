// dtrun-pmix: serves PMIx to the ranks of one host for dtrun's agent, so that the agent does not load
// libpmix. Internal: started by dtrun only.
#include <cstdio>
#include <string_view>

#include "core/pmi/libpmix/confine.h"
#include "core/pmi/libpmix/serve.h"
#include "core/pmi/pmix_program.h"

int main(int argc, char** argv) {
  const std::string_view word = argc == 2 ? argv[1] : "";
  const dtrun::Status confined = dtrun::pmi::Confine();
  if (word == dtrun::pmi::kPmixCheck) {
    const dtrun::Status here = dtrun::pmi::CheckPmix();
    if (!here) std::fputs(here.error().text.c_str(), stdout);
    return here ? 0 : 1;
  }
  if (word == dtrun::pmi::kPmixServe) {
    if (!confined)
      std::fprintf(stderr, "dtrun-pmix: %s; it serves PMIx without\n", confined.error().text.c_str());
    dtrun::pmi::ServePmix(dtrun::UniqueFd(dtrun::pmi::kPmixDescriptor));
  }
  std::fputs("dtrun-pmix is started by dtrun; see job.pmi in docs/mpi.md\n", stderr);
  return 2;
}
