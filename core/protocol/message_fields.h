// Encodes and decodes the messages between root and agent field by field, with one function for both
// directions: a coder `C` is an Encoder or a Decoder (core/base/encoding.h) and bounds what it reads. For the
// sources of messages.h.
//
// Pure; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/base/encoding.h"

namespace dtrun::protocol::fields {

// The channel bounds whole messages, and thus single texts. Lists take several times as much memory as their
// encoded bytes, so their counts are also bounded, far above what a job needs.
constexpr std::size_t kAny = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kMostEntries = 1 << 20;  // ranks, ports, arguments, variables
constexpr std::size_t kMostHosts = 1 << 16;
constexpr std::size_t kMostProcesses = 1 << 16;   // per host; also for GPUs and windows
constexpr std::size_t kMostCandidates = 1 << 14;  // per host
constexpr std::size_t kMostCalls = 1 << 10;       // per window
constexpr std::size_t kMostFrameworks = 64;
constexpr std::size_t kMostName = 4096;  // bytes, for names from the system

template <class C>
void Duration(C& c, Of<C, std::chrono::nanoseconds>& value) {
  std::int64_t count = value.count();
  c.Number(count);
  if constexpr (!C::kWrites) value = std::chrono::nanoseconds(count);
}

template <class T>
auto Underlying(T value) {
  if constexpr (std::is_enum_v<T>) {
    return static_cast<std::underlying_type_t<T>>(value);
  } else {
    return value;
  }
}

// An enum value from `first` to `last`.
template <class C, class T, class Bound>
void Choice(C& c, T& value, Bound first, Bound last) {
  auto number = Underlying(value);
  c.Number(number);
  if constexpr (!C::kWrites) {
    const bool known =
        number >= static_cast<decltype(number)>(first) && number <= static_cast<decltype(number)>(last);
    if (!known) return c.Fail("a choice is none of those there are");
    value = static_cast<T>(number);
  }
}

}  // namespace dtrun::protocol::fields
