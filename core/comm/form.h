// What each kind of operation reads and writes: the words of dtrun/abi/types.h as a table.
//
// Constant data; any thread.
#pragma once

#include <cstdint>

#include "dtrun/abi/types.h"

namespace dtrun::comm {

// How many elements a buffer has.
enum class Shape : std::uint8_t {
  kNone,
  kCount,      // count
  kCountEach,  // count for every rank
  kMine,       // recv_counts[rank]
  kSendParts,  // send_counts, at send_offsets
  kRecvParts   // recv_counts, at recv_offsets
};

// The one overlap of the two buffers that is allowed.
enum class InPlace : std::uint8_t { kNever, kSame, kSendInRecv, kRecvInSend };

// Where a buffer is used.
enum class On : std::uint8_t { kEveryRank, kRoot };

struct Form {
  const char* name = "unknown operation";
  Shape send = Shape::kNone;
  Shape recv = Shape::kNone;
  InPlace in_place = InPlace::kNever;
  bool reduces = false;
  bool rooted = false;
  On send_on = On::kEveryRank;
  On recv_on = On::kEveryRank;
};

// By kind; entry 0 stands for every unknown one.
inline constexpr Form kForms[DTRUN_OP_COUNT] = {
    {},
    {"allreduce", Shape::kCount, Shape::kCount, InPlace::kSame, true},
    {"broadcast", Shape::kNone, Shape::kCount, InPlace::kNever, false, true},
    {"allgather", Shape::kCount, Shape::kCountEach, InPlace::kSendInRecv},
    {"reduce_scatter", Shape::kCountEach, Shape::kCount, InPlace::kRecvInSend, true},
    {"barrier"},
    {"send", Shape::kCount},
    {"recv", Shape::kNone, Shape::kCount},
    {"reduce", Shape::kCount, Shape::kCount, InPlace::kSame, true, true, On::kEveryRank, On::kRoot},
    {"alltoall", Shape::kCountEach, Shape::kCountEach, InPlace::kSame},
    {"gather", Shape::kCount, Shape::kCountEach, InPlace::kSendInRecv, false, true, On::kEveryRank,
     On::kRoot},
    {"scatter", Shape::kCountEach, Shape::kCount, InPlace::kRecvInSend, false, true, On::kRoot},
    {"allgatherv", Shape::kMine, Shape::kRecvParts, InPlace::kSendInRecv},
    {"reduce_scatterv", Shape::kRecvParts, Shape::kMine, InPlace::kRecvInSend, true},
    {"alltoallv", Shape::kSendParts, Shape::kRecvParts, InPlace::kSame},
    {"gatherv", Shape::kCount, Shape::kRecvParts, InPlace::kSendInRecv, false, true, On::kEveryRank,
     On::kRoot},
    {"scatterv", Shape::kSendParts, Shape::kCount, InPlace::kRecvInSend, false, true, On::kRoot}};

constexpr bool IsKnown(std::int32_t kind) { return kind > 0 && kind < DTRUN_OP_COUNT; }
constexpr const Form& FormOf(std::int32_t kind) { return kForms[IsKnown(kind) ? kind : 0]; }

}  // namespace dtrun::comm
