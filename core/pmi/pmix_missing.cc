// In place of pmix_server.cc where PMIx's headers were not found.
#include "core/pmi/pmix_server.h"

namespace dtrun::pmi {

Status PmixBuilt() {
  return Error{DTRUN_UNSUPPORTED,
               "this dtrun was built without PMIx; install libpmix-dev and build it again, or start the "
               "job with mpirun"};
}

Status PmixOpens() { return PmixBuilt(); }

Result<std::unique_ptr<Server>> MakePmixServer(const Job&, boost::asio::io_context&, const Folders&, Events) {
  return PmixBuilt().error();
}

}  // namespace dtrun::pmi
