// A call that a rank is in, or its last collective, as a flight recorder has it: dtrun's own, or torch's.
//
// A value; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "core/wire/limits.h"

namespace dtrun::contract {

struct RecordedCall {
  bool under_way = false;
  bool message = false;      // a send or receive: `number` counts those of its peer and tag
  bool polled = false;       // under way, and the rank has asked lately whether it is done
  std::string group;         // the name of the communicator or process group
  std::uint64_t number = 0;  // of the call in the group, from 1; not under way: of the last one
  // If under way:
  std::string name = {};     // "allreduce"
  std::string details = {};  // "(float32 x 8, sum)"; may be empty
  // What all ranks of the group have to agree on; empty: others compare it (contract/checker.h).
  std::string signature = {};

  // "allreduce #7 on 'world'", "recv from rank 0 with tag 5 on 'world'"; not under way: "no collective after
  // #6 on 'world'"
  std::string Brief() const {
    if (message) return name + " on '" + group + "'";
    if (number == 0 && !under_way) return "no collective yet on '" + group + "'";
    return (under_way ? name : "no collective after") + " #" + std::to_string(number) + " on '" + group + "'";
  }
  // "allreduce #7 on 'world' (float32 x 8, sum)"
  std::string Text() const { return details.empty() ? Brief() : Brief() + " " + details; }

  void Fields(auto& io) {
    io("under_way", under_way);
    io("message", message);
    io("polled", polled);
    io("group", group, wire::kMostName, wire::kPrintable);
    io("number", number);
    io("name", name, wire::kMostName, wire::kPrintable);
    io("details", details, wire::kMostName, wire::kPrintable);
    io("signature", signature, wire::kMostName, wire::kPrintable);
  }
};

}  // namespace dtrun::contract
