// Tables of other launchers' flags, one per family.
//
// Constant data; any thread. Within a table the first row with a name applies. Tables are searched in this
// order, unless the command is known to belong to another launcher.
#pragma once

#include <span>
#include <string_view>

#include "tools/dtrun/command_line/flags.h"

namespace dtrun::cli {

std::span<const ForeignFlag> CountFlags();  // numbers of hosts and ranks, common to all launchers
std::span<const ForeignFlag> TorchrunFlags();
std::span<const ForeignFlag> MpiFlags();  // Open MPI's mpirun, MPICH's and Intel MPI's mpiexec
std::span<const ForeignFlag> MpirunParameters();  // parameters of --mca that are for mpirun itself, not for the ranks
std::span<const ForeignFlag> SchedulerFlags();
std::span<const ForeignFlag> HorovodFlags();
std::span<const ForeignFlag> FrameworkFlags();  // accelerate, deepspeed
std::span<const ForeignFlag> OtherFlags();      // dtrun's other verbs, and common launcher flags

inline constexpr bool kCertain = true;

// The text of a two-word flag with parameters that are never for the ranks.
inline constexpr std::string_view kMpirunsOwn = "mpirun's own";

// Shared by several tables.
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
