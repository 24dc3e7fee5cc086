// What a field may hold, written beside it in its type's list of fields (core/wire/coder.h). Readers refuse
// everything else, because even authenticated peers are validated. Constants; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace dtrun::wire {

// At most that many bytes of a text, or entries of a list or map; limits after it are those of each entry.
struct Most {
  std::size_t count;
};
// A number or enum from `least` to `most`.
template <class T>
struct Between {
  T least, most;
};
template <class A, class B>
Between(A, B) -> Between<std::common_type_t<A, B>>;
// A text that dtrun prints: no control characters.
struct Printable {};
inline constexpr Printable kPrintable;
// JSON only: an empty, zero or false value is left out, and a missing one reads as that.
struct MayMiss {};
inline constexpr MayMiss kMayMiss;

// The frame bounds single texts. Lists take several times as much memory as their encoded bytes, so their
// counts are bounded too, far above what a job needs.
inline constexpr Most kAny{std::numeric_limits<std::uint32_t>::max()};
inline constexpr Most kMostEntries{1 << 20};  // ranks, ports, arguments, variables
inline constexpr Most kMostHosts{1 << 16};
inline constexpr Most kMostProcesses{1 << 16};  // per host; also for GPUs and windows
inline constexpr Most kMostName{4096};          // bytes, for names from the system

inline constexpr Between kAnyRank{0, (1 << 20) - 1};
inline constexpr Between kAnyRankOrNone{-1, kAnyRank.most};
inline constexpr Between kAnyHost{0, (1 << 16) - 1};
inline constexpr Between kAnyPort{0, 65535};
inline constexpr Between kAnySignal{0, 64};  // 0: none
inline constexpr Between kAnyExitCode{0, 255};
inline constexpr Between kAnyPid{1, std::numeric_limits<int>::max()};
inline constexpr Between<std::int64_t> kNotNegative{0, std::numeric_limits<std::int64_t>::max()};
inline constexpr Between<std::int64_t> kUpToADay{0, std::int64_t{24} * 3600 * 1'000'000'000};  // nanoseconds

}  // namespace dtrun::wire
