// The options that the user may set for this backend: constant data. Any thread.
#pragma once

#include "dtrun/plugin.hpp"

namespace dtrun::ucx_plugin {

inline constexpr const char* kRequiredChoices[] = {"any", "rdma"};
inline constexpr int kRequiredRdma = 1;
inline constexpr const char* kP2pChoices[] = {"auto", "on", "off"};
inline constexpr int kP2pAuto = 0;
inline constexpr int kP2pOn = 1;
inline constexpr int kP2pOff = 2;
inline constexpr const char* kDeviceMemoryChoices[] = {"auto", "staged"};
inline constexpr int kDeviceMemoryAuto = 0;

inline constexpr dtrun_option kOptions[] = {
    sdk::Option("transports", DTRUN_TYPE_STRING, nullptr, "transports UCX may use, in the grammar of UCX_TLS")
        .Long(
            "A list such as \"rc,sm,self\", or exclusions: \"^tcp\". Aliases are UCX's: \"sm\" is "
            "shared memory, \"ib\" every InfiniBand and RoCE transport. A name that UCX does not know, or a "
            "list that leaves nothing, is an error that lists what this host has.\n"
            "Unset: UCX_TLS, else everything that UCX offers. When set, ranks also see UCX_TLS.")
        .Alias("UCX_TLS"),
    sdk::Option("devices", DTRUN_TYPE_STRING, nullptr,
                "network devices UCX may use, in the grammar of UCX_NET_DEVICES", DTRUN_SCOPE_HOST)
        .Long("A list such as \"mlx5_0:1,mlx5_1:1\" or \"eth0\", or \"all\". A device that this host lacks "
              "is an error that lists those it has.\n"
              "Unset: UCX_NET_DEVICES, else the RDMA devices. Without RDMA: loopback if all ranks share one "
              "host, else what network.interface found, else the interface of the default route, else the "
              "first that is not loopback. When set, ranks also see UCX_NET_DEVICES.")
        .Alias("UCX_NET_DEVICES"),
    sdk::Option("required", DTRUN_TYPE_ENUM, "any", "what must carry the traffic between hosts")
        .Long("\"rdma\": InfiniBand or RoCE; without it the job ends before it starts, with the reason, "
              "instead of running slowly over TCP. \"any\": any transport.")
        .Choices(kRequiredChoices),
    sdk::Option("rails", DTRUN_TYPE_UINT, nullptr, "devices over which one large message is spread")
        .Long("Unset: UCX decides, which is at most two; it leaves out devices far slower than the fastest.")
        .Range("1", "8")
        .Alias("UCX_MAX_RNDV_RAILS"),
    sdk::Option("p2p", DTRUN_TYPE_ENUM, "auto",
                "whether UCX may let GPUs of a host read each other's memory (cuda_ipc)")
        .Long("For memory of GPUs that UCX moves itself (device_memory), and programs that use UCX. off: "
              "excludes cuda_ipc, so ranks see UCX_TLS=^cuda_ipc, or your exclusions and it, and "
              "DTRUN_P2P=off. on: a host with a UCX without cuda_ipc ends the job before it starts; "
              "DTRUN_P2P=on. auto: off if DTRUN_P2P=off is set, else what UCX offers; unlike nccl, this "
              "backend does not test whether GPUs can read each other. It is an error to combine off with a "
              "list of transports that names cuda_ipc or cuda, or on with one that omits it.")
        .Choices(kP2pChoices),
    sdk::Option("device_memory", DTRUN_TYPE_ENUM, "auto", "how the memory of GPUs goes to other ranks")
        .Long("auto: directly if UCX moves it, which needs a UCX with CUDA or ROCm. Reductions and alltoall "
              "go through host memory, because they need a processor or further memory. staged: everything "
              "goes through host memory, over whichever transport carries that, also shared memory. All "
              "hosts need the same value.")
        .Choices(kDeviceMemoryChoices)};

}  // namespace dtrun::ucx_plugin
