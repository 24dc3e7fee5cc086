#include "core/pmi/server.h"

#include "core/pmi/pmi1_server.h"
#include "core/pmi/pmix_server.h"

namespace dtrun::pmi {

Result<std::unique_ptr<Server>> MakeServer(const Job& job, boost::asio::io_context& loop,
                                           const Folders& folders, Events events) {
  if (job.kind == Kind::kPmix) return MakePmixServer(job, loop, folders, std::move(events));
  return MakePmi1Server(loop, std::move(events));
}

}  // namespace dtrun::pmi
