// dtrun/plugin/names.hpp - what operations, element types, reductions, devices and ranks are called in
// messages.
//
// Not part of plugin.hpp. Pure functions of the values of dtrun/abi/types.h; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "dtrun/abi/backend.h"

namespace dtrun::sdk {
inline namespace v1 __attribute__((visibility("hidden"))) {

  // One past the last value of each enum, as these headers know them.
  inline constexpr int kOperationEnd = DTRUN_SCATTERV + 1;
  inline constexpr int kTypeEnd = DTRUN_COMPLEX128 + 1;
  inline constexpr int kReductionEnd = DTRUN_LOR + 1;

  inline constexpr const char* kOperationNames[] = {"unknown operation",
                                                    "allreduce",
                                                    "broadcast",
                                                    "allgather",
                                                    "reduce_scatter",
                                                    "barrier",
                                                    "send",
                                                    "recv",
                                                    "reduce",
                                                    "alltoall",
                                                    "gather",
                                                    "scatter",
                                                    "allgatherv",
                                                    "reduce_scatterv",
                                                    "alltoallv",
                                                    "gatherv",
                                                    "scatterv"};
  inline constexpr const char* kTypeNames[] = {
      "unknown type", "float16", "bfloat16", "float32", "float64", "int32", "int64",     "uint8",
      "int8",         "int16",   "uint16",   "uint32",  "uint64",  "bool",  "complex64", "complex128"};
  inline constexpr const char* kReductionNames[] = {
      "unknown reduction", "sum",  "prod", "min",  "max",  "avg",
      "premul_sum",        "band", "bor",  "bxor", "land", "lor"};
  static_assert(sizeof kOperationNames / sizeof *kOperationNames == kOperationEnd);
  static_assert(sizeof kTypeNames / sizeof *kTypeNames == kTypeEnd);
  static_assert(sizeof kReductionNames / sizeof *kReductionNames == kReductionEnd);

  template <std::size_t Count>
  constexpr const char* NameIn(const char* const(&names)[Count], std::int32_t value) {
    return names[value > 0 && value < static_cast<std::int32_t>(Count) ? value : 0];
  }

  // "reduce_scatter"; "unknown operation" for a value that is none. The others likewise.
  constexpr const char* OperationName(std::int32_t kind) { return NameIn(kOperationNames, kind); }
  constexpr const char* TypeName(std::int32_t dtype) { return NameIn(kTypeNames, dtype); }
  constexpr const char* ReductionName(std::int32_t reduce) { return NameIn(kReductionNames, reduce); }

  // "cuda"; "device kind 32" for one that dtrun has no name for.
  inline std::string DeviceKindText(std::int32_t kind) {
    constexpr const char* kNames[] = {"host", "cuda", "rocm", "level_zero"};
    static_assert(sizeof kNames / sizeof *kNames == DTRUN_DEVICE_LEVEL_ZERO + 1);
    if (kind >= 0 && kind <= DTRUN_DEVICE_LEVEL_ZERO) return kNames[kind];
    return "device kind " + std::to_string(kind);
  }

  // "rank 1", "ranks 1, 4 and 7", "ranks 1, 2, 3, 4 and 59 more". REQUIRES at least one.
  inline std::string RanksText(const std::vector<int>& ranks) {
    constexpr std::size_t kListed = 4;
    if (ranks.size() == 1) return "rank " + std::to_string(ranks[0]);
    const bool cut = ranks.size() > kListed + 1;
    const std::size_t listed = cut ? kListed : ranks.size() - 1;
    std::string text = "ranks ";
    for (std::size_t i = 0; i < listed; ++i) text.append(i == 0 ? "" : ", ").append(std::to_string(ranks[i]));
    return text + " and " +
           (cut ? std::to_string(ranks.size() - listed) + " more" : std::to_string(ranks[listed]));
  }

}  // namespace v1
}  // namespace dtrun::sdk
