// The options that the user may set for this backend: constant data. Any thread.
#pragma once

#include "dtrun/plugin.hpp"

namespace dtrun::mpi_plugin {

inline constexpr const char* kCollSmChoices[] = {"auto", "on", "off"};
enum class CollSm { kAuto, kOn, kOff };
inline constexpr const char* kBlockingChoices[] = {"caller", "thread"};
enum class Blocking { kCaller, kThread };

inline constexpr dtrun_option kOptions[] = {
    sdk::Option("library", DTRUN_TYPE_STRING, nullptr, "path of libmpi, or a name for the dynamic linker",
                DTRUN_SCOPE_HOST)
        .Long("Unset: " MPI_SONAME
              ", which belongs to the headers that this plugin was built with. If the program has already "
              "loaded an MPI, the plugin uses that one."),
    sdk::Option("coll_sm", DTRUN_TYPE_ENUM, "auto", "Open MPI's shared-memory collectives")
        .Long(
            "Open MPI ships them with priority 0, which disables them.\n"
            "auto: for allreduce, reduce and broadcast of 32 MiB and more, when all ranks share a host and "
            "each has a processor. on: at every size, wherever Open MPI can use them. off: as installed.\n"
            "OMPI_MCA_coll_sm_priority in the environment takes precedence. The option has no effect if the "
            "program has called MPI_Init itself.")
        .Choices(kCollSmChoices)
        .Alias("OMPI_MCA_coll_sm_priority"),
    sdk::Option("blocking", DTRUN_TYPE_ENUM, "caller", "which thread makes a blocking call's MPI call",
                DTRUN_SCOPE_PROCESS)
        .Long("caller: the waiting thread, once all ranks have arrived, which saves a thread switch. If a "
              "rank dies in the middle of the MPI call, the thread stays in it.\n"
              "thread: always a thread of the communicator, so that every wait ends at its deadline whatever "
              "MPI does.\n"
              "Ranks on several hosts always use the communicator's thread.")
        .Choices(kBlockingChoices),
    sdk::Option("chunk", DTRUN_TYPE_UINT, "1073741824", "largest count of one MPI call")
        .Long("MPI counts are of type int; longer operations are split. Lower it only to test that.")
        .Unit("elements")
        .Range("1", "1073741824")};

}  // namespace dtrun::mpi_plugin
