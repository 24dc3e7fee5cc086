#include "core/pmi/kind.h"

#include "core/pmi/pmix_program.h"

namespace dtrun::pmi {

const char* KindName(Kind kind) {
  switch (kind) {
    case Kind::kNone: return "none";
    case Kind::kPmix: return "pmix";
    case Kind::kPmi1: break;
  }
  return "pmi1";
}

Status Servable(Kind kind) {
  if (kind == Kind::kPmix) return PmixBuilt();
  return {};
}

Status ServableHere(Kind kind) {
  if (kind == Kind::kPmix) return PmixOpens();
  return {};
}

}  // namespace dtrun::pmi
