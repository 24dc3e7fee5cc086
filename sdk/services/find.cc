#include <cstring>

#include "services.h"

namespace dtrun::services {

const void* Find(const char* id) {
  struct Service {
    const char* id;
    const void* table;
  };
  const Service all[] = {{DTRUN_KERNELS_SERVICE, Kernels()},
                         {DTRUN_COLLECTIVES_SERVICE, Collectives()},
                         {DTRUN_CALLS_SERVICE, Calls()},
                         {DTRUN_MEMBERSHIP_SERVICE, Memberships()}};
  for (const Service& service : all) {
    if (std::strcmp(service.id, id) == 0) return service.table;
  }
  return nullptr;
}

}  // namespace dtrun::services
