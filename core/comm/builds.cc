#include "core/comm/builds.h"

#include <fmt/format.h>

#include "core/base/error_id.h"

namespace dtrun::comm {
namespace {

constexpr char kFirst[] = "first";

}  // namespace

Status CheckBuilds(dtrun_kv& kv, int rank, const std::string& mine) {
  const Result<bool> is_first = kv.CompareSet(kFirst, false, {}, fmt::format("rank {} has {}", rank, mine));
  if (!is_first) return is_first.error();
  if (*is_first) return {};
  const Result<std::string> first = kv.TryGet(kFirst);
  if (!first) return first.error();
  if (first->ends_with(" has " + mine)) return {};
  return Error{DTRUN_MISMATCH,
               fmt::format("the ranks have libraries of two versions: {}, and rank {} has {}; install "
                           "one version on all hosts and in all environments of Python",
                           *first, rank, mine),
               -1, ErrorId::kVersionsDiffer};
}

}  // namespace dtrun::comm
