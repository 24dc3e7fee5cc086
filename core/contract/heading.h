// What a ring says of itself, read once and found to make sense.
//
// Ranks write their pages themselves, and a rank whose memory is going wrong writes anything: a reader
// takes its own copy and looks whether it can be true. Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/contract/recorder_memory.h"

namespace dtrun::contract {

struct Heading {
  std::uint64_t communicator = 0;  // 0: it is over, and its ring free
  std::uint64_t started = 0;
  std::uint64_t ended = 0;
  std::int32_t rank = -1;  // in the communicator
  std::int32_t size = 0;
  std::string name;  // printable
};

// At most one of the two; neither: nobody has used the ring, or it became another's just now.
struct HeadingRead {
  std::optional<Heading> heading;
  const char* damage = nullptr;  // why it cannot be true, for people
};

// In a world of `ranks` ranks.
HeadingRead ReadHeading(const Ring& ring, int ranks);

// Why the calls that `ring` remembers cannot be what its rank called; null when they may be. Costs a
// look at all of them.
const char* DamageIn(const Ring& ring, const Heading& heading);

}  // namespace dtrun::contract
