// When root and agent may send a message: each message type has a `kRule`. Constants; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace dtrun::protocol {

// Phase of the agent's host. The agent sees a change before the root does.
enum class Phase : std::uint8_t { kJoining, kIdle, kPreparing, kPrepared, kStarting, kRunning };

constexpr unsigned In(std::initializer_list<Phase> phases) {
  unsigned set = 0;
  for (const Phase phase : phases) set |= 1u << static_cast<unsigned>(phase);
  return set;
}

inline constexpr unsigned kWhileIdle = In({Phase::kIdle});
inline constexpr unsigned kWithRanks = In({Phase::kStarting, Phase::kRunning});
inline constexpr unsigned kServed = kWithRanks | In({Phase::kPreparing, Phase::kPrepared});
inline constexpr unsigned kJoined = kServed | kWhileIdle;
inline constexpr unsigned kAnyPhase = kJoined | In({Phase::kJoining});

// Requests that the agent answers while no ranks are prepared.
enum class Request : std::uint8_t { kNone, kSurvey, kConnectivityCheck, kMeasure, kPreflight };
inline constexpr std::size_t kRequests = 5;

struct Rule {
  const char* name = nullptr;
  unsigned phases = 0;
  bool may_be_late = false;  // it concerns ranks, and may cross the message that they are gone
  Request asks = Request::kNone;
  Request answers = Request::kNone;
};
inline constexpr bool kMayBeLate = true;

}  // namespace dtrun::protocol
