// The kind of a control-link frame: the first byte of its payload.
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
  kMessage = 4,  // then in both directions: a message passed to Channel::Send
  kAlive = 5,    // heartbeat
  kGoodbye = 6,  // nothing will follow
};

// REQUIRES: not empty, which FrameReader ensures.
inline Kind KindOf(std::string_view payload) { return static_cast<Kind>(payload.front()); }

}  // namespace dtrun::protocol
