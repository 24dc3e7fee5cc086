// What a frame of the control link is: the first byte of its payload.
//
// Constants; any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace dtrun::protocol {

enum class Kind : std::uint8_t {
  kHello = 1,    // agent to root, first
  kWelcome = 2,  // the root's answer ...
  kRefusal = 3,  // ... or this, then the end
  kMessage = 4,  // from here on both ways: what Channel::Send was given
  kAlive = 5,    // nothing to say
  kGoodbye = 6,  // nothing will follow
};

// REQUIRES: not empty, which FrameReader ensures.
inline Kind KindOf(std::string_view payload) { return static_cast<Kind>(payload.front()); }

}  // namespace dtrun::protocol
