// The options that the user may set for this backend: constant data. Any thread.
#pragma once

#include "dtrun/plugin.hpp"

namespace dtrun::mpi_plugin {

inline constexpr const char* kCollSmChoices[] = {"auto", "on", "off"};
enum class CollSm { kAuto, kOn, kOff, kApart };  // kApart is no choice: ranks of a host share no memory
inline constexpr const char* kBlockingChoices[] = {"caller", "thread"};
enum class Blocking { kCaller, kThread };
inline constexpr const char* kDeviceMemoryChoices[] = {"auto", "staged"};
enum class DeviceMemory { kAuto, kStaged };

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
    sdk::Option("device_memory", DTRUN_TYPE_ENUM, "auto", "how the memory of GPUs goes to other ranks")
        .Long("auto: straight from and to the GPU's memory where Open MPI says that it takes it "
              "(MPIX_Query_cuda_support), for what MPI does by itself: messages, broadcast, allgather, "
              "alltoall, gather, scatter, and allreduce and reduce of types and reductions that MPI has. "
              "The rest goes through the host's memory, and coll_sm is then off. staged: all of it goes "
              "through the host's memory, over whatever carries that, shared memory too. All hosts need the "
              "same.")
        .Choices(kDeviceMemoryChoices),
    sdk::Option("chunk", DTRUN_TYPE_UINT, "1073741824", "largest count of one MPI call")
        .Long("MPI counts are of type int; longer operations are split. Lower it only to test that.")
        .Unit("elements")
        .Range("1", "1073741824")};

}  // namespace dtrun::mpi_plugin
