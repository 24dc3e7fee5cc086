// The bytes that an operation touches on this rank, and whether its parts are sound.
//
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/result.h"
#include "core/comm/operation.h"
#include "dtrun/plugin/op.hpp"

namespace dtrun::comm {

// Bytes from the first element of a buffer to behind its last; 0 where this rank has none.
struct Extent {
  std::uint64_t send = 0;
  std::uint64_t recv = 0;
  // Where this rank's own part begins in the buffer that has a part for every rank.
  std::uint64_t own_part = 0;
};

// What is wrong with `op`, behind the name of its kind.
Error Invalid(const dtrun_op& op, std::string_view text);

// REQUIRES a known kind and type, and a root inside the communicator.
Status Measure(const dtrun_op& op, const Scope& scope, Extent& out);

// As Measure, where every rank's buffers have `count` elements and they fit into memory: the common case,
// without a Status. False, and nothing done, for others.
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

// True when the buffers share no byte, or overlap as the in-place form of the kind does.
bool MayCoexist(const dtrun_op& op, const Scope& scope, const Extent& extent);

// The overlap allowed, for messages: "send == recv".
const char* InPlaceText(std::int32_t kind);

}  // namespace dtrun::comm
