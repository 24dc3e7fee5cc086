// One collective call with its buffers: laid out, filled, made and checked against what
// types.h says, on the rank that makes it.
//
// A Trial is a value that all ranks of a communicator construct alike. Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "subject.h"
#include "values.h"

namespace dtrun::conformance {

// How the parts of a "v" form lie.
enum class Shape {
  kEven,    // counts alike, no offsets
  kUneven,  // some empty, no offsets
  kGaps,    // some empty, in reverse order with unused elements in between
  kSpread   // the same in order
};

struct Trial {
  std::int32_t kind;
  TypeInfo type;
  std::int32_t reduce = 0;
  std::uint64_t count = 0;  // of a part, before `shape` varies it
  bool in_place = false;
  int root = 0;
  Shape shape = Shape::kEven;
  std::uint32_t flags = 0;
};

std::string KindName(std::int32_t kind);  // "Allreduce"
bool Reduces(std::int32_t kind);
bool Rooted(std::int32_t kind);
bool HasParts(std::int32_t kind);  // a "v" form

// Makes the call and expects the right result, and nothing else written.
void Attempt(Rank& rank, const Trial& trial);

}  // namespace dtrun::conformance
