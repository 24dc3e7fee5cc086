// The header of a ring, read once and validated.
//
// Ranks write their pages themselves, and a rank with corrupt memory may write anything: a reader takes its
// own copy and checks it. Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/contract/recorder_memory.h"

namespace dtrun::contract {

struct Heading {
  std::uint64_t communicator = 0;  // 0: it has ended, and its ring is free
  std::uint64_t started = 0;
  std::uint64_t ended = 0;
  std::int32_t rank = -1;  // in the communicator
  std::int32_t size = 0;
  std::string name;  // printable
};

// At most one of the two is set. Neither: the ring is unused, or has just changed its communicator.
struct HeadingRead {
  std::optional<Heading> heading;
  const char* damage = nullptr;  // why it is invalid, for messages
};

// In a world of `ranks` ranks.
HeadingRead ReadHeading(const Ring& ring, int ranks);

// Why the calls that `ring` remembers cannot be what its rank called; null if they may be. Reads all of them.
const char* DamageIn(const Ring& ring, const Heading& heading);

}  // namespace dtrun::contract
