// Hostfiles: one host per line, in the notations of the common launchers.
//
//   node0 slots=4 max_slots=8   Open MPI, DeepSpeed, Horovod
//   node0:4                     MPICH's Hydra, Horovod
//   node0                       all; on N > 1 lines: N slots (Open MPI, PBS)
//
// "#" starts a comment. Slots of a repeated "node0:4" add up, as in Hydra; repeating a host with
// "slots=" is an error, as in Open MPI and DeepSpeed. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/hosts/host_slots.h"

namespace dtrun::hosts {

// Hosts in the order of their first line. Errors start with "NAME:LINE:COLUMN: ", counted
// from 1, columns in bytes.
Result<std::vector<HostSlots>> ParseHostfile(std::string_view text, std::string_view name);

}  // namespace dtrun::hosts
