// The flags of other launchers, a table for each family.
//
// Constant data; any thread. In a table the first row with a name counts; of the tables the first in this
// order, unless the command is known to be another launcher's.
#pragma once

#include <span>
#include <string_view>

#include "tools/dtrun/command_line/flags.h"

namespace dtrun::cli {

std::span<const ForeignFlag> CountFlags();  // hosts and ranks, which all of them have
std::span<const ForeignFlag> TorchrunFlags();
std::span<const ForeignFlag> MpiFlags();  // Open MPI's mpirun, MPICH's and Intel MPI's mpiexec
std::span<const ForeignFlag> MpirunParameters();  // of --mca: those that are not for the ranks
std::span<const ForeignFlag> SchedulerFlags();
std::span<const ForeignFlag> HorovodFlags();
std::span<const ForeignFlag> FrameworkFlags();  // accelerate, deepspeed
std::span<const ForeignFlag> OtherFlags();      // dtrun's other verbs, and what many launchers have

inline constexpr bool kCertain = true;

// The text of a flag of pairs, of which none is for the ranks.
inline constexpr std::string_view kMpirunsOwn = "mpirun's own";

// Said by several tables.
inline constexpr std::string_view kBindingAdvice =
    "choose the ranks' processors with --set job.bind=compact, spread or none";
inline constexpr std::string_view kThreadsAdvice =
    "--set job.bind=compact gives each rank an equal share of a host's cores, and --set "
    "job.env.OMP_NUM_THREADS={} sets its threads";
inline constexpr std::string_view kInherited = "ranks have the environment that dtrun has";
inline constexpr std::string_view kSetVariable =
    "ranks have the environment that dtrun has; to set a variable: --set job.env.NAME=VALUE";
inline constexpr std::string_view kAddressAdvice =
    "leave it out: dtrun tests which network connects the hosts, and MASTER_ADDR is on it (--set "
    "network.interface=NAME chooses one)";

}  // namespace dtrun::cli
