// A collective as it was asked for, checked and copied, so that the caller's arrays may go.
// Made by the thread that enqueues, constant afterwards.
#pragma once

#include <cstdint>
#include <vector>

#include "dtrun/plugin.hpp"
#include "meeting.h"

namespace dtrun::mpi_plugin {

// The ranks' parts of a buffer, in elements. Empty where the operation has none.
struct Parts {
  std::vector<std::uint64_t> counts;
  std::vector<std::uint64_t> offsets;

  std::uint64_t Total() const;
  // Whether the parts lie one behind the other.
  bool Packed() const;
  // One behind the last element.
  std::uint64_t End() const;
};

struct Call {
  dtrun_op op{};
  Parts send;
  Parts recv;
};

// Throws what is wrong with `op` on this rank of `size`.
void CheckOperation(const dtrun_op& op, const dtrun_stream* stream, int rank, int size,
                    const std::string& name, int largest_tag);
// REQUIRES a checked operation.
Call CopyCall(const dtrun_op& op, int size);
// What the ranks must agree on; `number` counts the collectives of the communicator.
Agenda MakeAgenda(const Call& call, std::uint64_t number);

}  // namespace dtrun::mpi_plugin
