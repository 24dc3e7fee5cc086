#include "core/pmi/server.h"

#include "core/pmi/pmi1_server.h"
#include "core/pmi/pmix_server.h"

namespace dtrun::pmi {

std::unique_ptr<Server> MakeServer(Kind kind, boost::asio::io_context& loop, Folders folders, Events events,
                                   StartPmix start) {
  if (kind == Kind::kPmix)
    return MakePmixServer(loop, std::move(folders), std::move(events), std::move(start));
  return MakePmi1Server(loop, std::move(events));
}

}  // namespace dtrun::pmi
