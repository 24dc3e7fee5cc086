// The options that the user may set for this backend: constant data, and their values. Any
// thread.
#pragma once

#include <optional>
#include <string>

#include "dtrun/plugin.hpp"

namespace dtrun::nccl_plugin {

// Whether NCCL may use one of its paths between GPUs.
inline constexpr const char* kSwitchChoices[] = {"auto", "on", "off"};
enum class Switch { kAuto, kOn, kOff };

inline constexpr const char* kCtaPolicies[] = {"auto", "efficiency", "zero"};
inline constexpr const char* kGraphUsages[] = {"auto", "none", "one", "mixed"};

constexpr sdk::OptionRow SwitchOption(const char* key, const char* doc) {
  return sdk::Option(key, DTRUN_TYPE_ENUM, "auto", doc).Choices(kSwitchChoices);
}

inline constexpr dtrun_option kOptions[] = {
    sdk::Option("library", DTRUN_TYPE_PATH, nullptr, "file of the NCCL library", DTRUN_SCOPE_HOST)
        .Flags(DTRUN_OPTION_MUST_EXIST)
        .Long("Unset: the libnccl.so.2 that is already in the process, as torch brings one; else the "
              "loader's; else that of pip's wheels of the python3 that is first on PATH."),
    sdk::Option("cuda_library", DTRUN_TYPE_PATH, nullptr, "file of the CUDA runtime library",
                DTRUN_SCOPE_HOST)
        .Flags(DTRUN_OPTION_MUST_EXIST)
        .Long(
            "Unset: the libcudart that is already in the process; else the loader's libcudart.so.13, .12 or "
            ".11.0, or one of pip's wheels, as for library."),
    sdk::Option("interface", DTRUN_TYPE_STRING, nullptr,
                "network interface that carries the traffic between hosts, by name, address or network",
                DTRUN_SCOPE_HOST)
        .Long("A name such as \"eth0\", an address of this host such as \"10.0.0.5\", or a network such as "
              "\"10.0.0.0/16\", which fits hosts that name their interfaces differently. Ranks see "
              "NCCL_SOCKET_IFNAME with the exact name (\"=eth0\"), so that programs that use NCCL through "
              "torch "
              "use the same interface.\n"
              "Unset: NCCL chooses.")
        .Alias("NCCL_SOCKET_IFNAME"),
    SwitchOption("p2p", "whether GPUs of one host read each other's memory")
        .Long(
            "auto: before the ranks start, each pair of GPUs makes a verified and timed copy in a child "
            "process, at most 2 s for a pair and 5 s in all. Ranks see NCCL_P2P_DISABLE=1 if access that the "
            "driver claims fails, hangs, corrupts data, is far too slow or works one way only. The result is "
            "cached until the next boot. on: if a pair has no access, the job ends before it starts. off: "
            "ranks see NCCL_P2P_DISABLE=1.\n"
            "Programs with peer copies of their own can read DTRUN_P2P: on, off, or unset if unknown.")
        .Alias("NCCL_P2P_DISABLE"),
    SwitchOption("shm", "whether GPUs of one host may exchange data through host memory")
        .Long("off: ranks see NCCL_SHM_DISABLE=1. on: NCCL_SHM_DISABLE=0. auto: off if peer access is off "
              "and /dev/shm has less than 32 MiB left for each rank, else the variable is unchanged.")
        .Alias("NCCL_SHM_DISABLE"),
    SwitchOption("rdma", "whether InfiniBand and RoCE are used between hosts")
        .Long(
            "off: ranks see NCCL_IB_DISABLE=1 and use sockets. on: NCCL_IB_DISABLE=0. auto: the variable is "
            "unchanged.")
        .Alias("NCCL_IB_DISABLE"),
    SwitchOption("gdr", "whether network cards read and write GPU memory themselves")
        .Long("off: ranks see NCCL_NET_GDR_LEVEL=LOC. on: NCCL_NET_GDR_LEVEL=SYS, at any distance. auto: the "
              "variable is unchanged.")
        .Alias("NCCL_NET_GDR_LEVEL"),
    // What follows configures each communicator: comm_config.h.
    sdk::Option("net_name", DTRUN_TYPE_STRING, nullptr, "network module of NCCL that carries the traffic")
        .Long("\"IB\", \"Socket\", or the name that a plugin of NCCL's has.\nUnset: NCCL chooses.")
        .Alias("NCCL_NET"),
    sdk::Option("cga_cluster_size", DTRUN_TYPE_INT, nullptr,
                "thread blocks of NCCL's kernels that the GPU places together")
        .Long("Unset: NCCL chooses: 4 from compute capability 9.0 on, else 0.")
        .Range("0", "8")
        .Alias("NCCL_CGA_CLUSTER_SIZE"),
    sdk::Option("min_ctas", DTRUN_TYPE_INT, nullptr, "fewest thread blocks of the GPU for one operation")
        .Long("Unset: NCCL chooses.")
        .Range("1", "64")
        .Alias("NCCL_MIN_CTAS"),
    sdk::Option("max_ctas", DTRUN_TYPE_INT, nullptr,
                "most thread blocks of the GPU that one operation may occupy")
        .Long("Fewer leave more of the GPU to computation and use less memory; more move data faster.\n"
              "Unset: NCCL chooses.")
        .Range("1", "64")
        .Alias("NCCL_MAX_CTAS"),
    sdk::Option("cta_policy", DTRUN_TYPE_ENUM, "auto",
                "how NCCL weighs speed against the GPU's thread blocks")
        .Choices(kCtaPolicies)
        .Long("auto: unchanged. efficiency: as few as give decent speed, so that computation overlaps better "
              "(NCCL 2.27). zero: none where NCCL can do without, which needs memory that is registered "
              "symmetrically on all ranks (NCCL 2.28).")
        .Alias("NCCL_CTA_POLICY"),
    sdk::Option("nvls_ctas", DTRUN_TYPE_INT, nullptr, "thread blocks for sums in NVLink switches")
        .Long("Needs NCCL 2.27.\nUnset: NCCL chooses.")
        .Range("1", "64"),
    SwitchOption("collnet", "whether switches of the network may sum (SHARP)")
        .Long("Needs NCCL 2.27. auto: the configuration is unchanged.")
        .Alias("NCCL_COLLNET_ENABLE"),
    sdk::Option("traffic_class", DTRUN_TYPE_INT, nullptr, "traffic class of the network's packets")
        .Long("Service level of InfiniBand, type of service of RoCE. NCCL_IB_SL and NCCL_IB_TC win over it. "
              "Needs NCCL 2.26.\nUnset: NCCL chooses.")
        .Range("0", "255"),
    sdk::Option("channels_per_net_peer", DTRUN_TYPE_INT, nullptr, "network channels for each pair of ranks")
        .Long("More make messages faster, alltoall often slower. Needs NCCL 2.28.\nUnset: NCCL chooses.")
        .Range("1", "64")
        .Alias("NCCL_NCHANNELS_PER_NET_PEER"),
    SwitchOption("nvlink_centric_sched", "whether operations are scheduled for NVLink first")
        .Long("Needs NCCL 2.28. auto: the configuration is unchanged."),
    sdk::Option("max_p2p_peers", DTRUN_TYPE_INT, nullptr,
                "most ranks that a rank exchanges messages with at a time")
        .Long("Needs NCCL 2.30.\nUnset: NCCL chooses.")
        .Range("1", "1048576"),
    sdk::Option("graph_usage", DTRUN_TYPE_ENUM, "auto", "which CUDA graphs hold operations")
        .Choices(kGraphUsages)
        .Long("none, one: operations then need no event more to keep their order. mixed: several graphs, or "
              "operations beside graphs, which is NCCL's default. Needs NCCL 2.29. auto: unchanged.")
        .Alias("NCCL_GRAPH_MIXING_SUPPORT")};

struct NcclOptions {
  explicit NcclOptions(const sdk::Options& options)
      : library(options.FindString("library").value_or("")),
        cuda_library(options.FindString("cuda_library").value_or("")),
        interface(options.FindString("interface")),
        p2p(static_cast<Switch>(options.EnumIndex("p2p"))),
        shm(static_cast<Switch>(options.EnumIndex("shm"))),
        rdma(static_cast<Switch>(options.EnumIndex("rdma"))),
        gdr(static_cast<Switch>(options.EnumIndex("gdr"))) {}

  std::string library;       // empty: find it
  std::string cuda_library;  // empty: find it
  std::optional<std::string> interface;
  Switch p2p;
  Switch shm;
  Switch rdma;
  Switch gdr;
};

}  // namespace dtrun::nccl_plugin
