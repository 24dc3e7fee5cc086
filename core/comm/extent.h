// Computes the bytes that an operation touches on this rank, and checks its parts.
//
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/result.h"
#include "core/comm/operation.h"
#include "dtrun/plugin/op.hpp"

namespace dtrun::comm {

// Bytes from a buffer's first element to the end of its last; 0 if this rank has none.
struct Extent {
  std::uint64_t send = 0;
  std::uint64_t recv = 0;
  // Where this rank's own part begins in a buffer with a part for every rank.
  std::uint64_t own_part = 0;
};

// The error text: the name of `op`'s kind, then `text`.
Error Invalid(const dtrun_op& op, std::string_view text);

// REQUIRES a known kind and type, and a root inside the communicator.
Status Measure(const dtrun_op& op, const Scope& scope, Extent& out);

// Measure for the common case that every rank's buffers have `count` elements and fit into memory; needs no
// Status. Returns false, and does nothing, in other cases.
inline bool MeasureCount(const dtrun_op& op, const sdk::Form& form, Extent& out) {
  constexpr auto counted = [](sdk::Shape shape) {
    return shape == sdk::Shape::kNone || shape == sdk::Shape::kCount;
  };
  const bool everywhere = form.send_on == sdk::On::kEveryRank && form.recv_on == sdk::On::kEveryRank;
  std::uint64_t bytes = 0;
  if (!everywhere || !counted(form.send) || !counted(form.recv) ||
      __builtin_mul_overflow(op.count, DtypeSize(op.dtype), &bytes) || bytes > std::uint64_t{PTRDIFF_MAX})
    return false;
  out.send = form.send == sdk::Shape::kCount ? bytes : 0;
  out.recv = form.recv == sdk::Shape::kCount ? bytes : 0;
  return true;
}

// True if the buffers share no byte, or overlap as the in-place form of the kind does.
bool MayCoexist(const dtrun_op& op, const Scope& scope, const Extent& extent);

// The overlap allowed, for messages: "send == recv".
const char* InPlaceText(std::int32_t kind);

}  // namespace dtrun::comm
