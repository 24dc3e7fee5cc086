#include "core/comm/call.h"

#include <fmt/format.h>

#include "core/comm/form.h"
#include "dtrun/plugin/names.hpp"

namespace dtrun::comm {
namespace {

// FNV-1a; never 0.
std::uint64_t Digest(const std::uint64_t* counts, int size) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (int i = 0; i < size; ++i) {
    for (int shift = 0; shift < 64; shift += 8) {
      hash = (hash ^ ((counts[i] >> shift) & 0xffu)) * 0x100000001b3u;
    }
  }
  return hash | 1;
}

}  // namespace

Call CallOf(const dtrun_op& op, int size) {
  Call call;
  call.kind = static_cast<std::uint8_t>(op.kind);
  if (op.kind == DTRUN_BARRIER) return call;
  call.dtype = static_cast<std::uint8_t>(op.dtype);
  if (FormOf(op.kind).reduces) call.reduce = static_cast<std::uint8_t>(op.reduce);
  if (FormOf(op.kind).rooted) call.root = op.root;
  switch (op.kind) {
    case DTRUN_ALLGATHERV:
    case DTRUN_REDUCE_SCATTERV: call.shape = Digest(op.recv_counts, size); break;
    case DTRUN_ALLTOALLV:
    case DTRUN_GATHERV:
    case DTRUN_SCATTERV: break;
    default: call.count = op.count;
  }
  return call;
}

std::string CallText(const Call& call) {
  std::string text = FormOf(call.kind).name;
  if (call.kind == DTRUN_BARRIER) return text;
  text += fmt::format(" ({}", sdk::TypeName(call.dtype));
  if (call.shape == 0 && call.kind < DTRUN_ALLGATHERV) text += fmt::format(" x {}", call.count);
  if (call.reduce != 0) text += fmt::format(", {}", sdk::ReductionName(call.reduce));
  if (call.root >= 0) text += fmt::format(", root {}", call.root);
  if (call.shape != 0)
    text += fmt::format(", counts per rank with digest {:08x}", static_cast<std::uint32_t>(call.shape));
  return text + ")";
}

}  // namespace dtrun::comm
