#include "nccl_options.h"

namespace dtrun::nccl_plugin {
namespace {

constexpr const char* kSwitch[] = {"auto", "on", "off"};

constexpr dtrun_option MakePath(const char* key, const char* doc, const char* long_doc) {
  dtrun_option option = sdk::Option(key, DTRUN_TYPE_PATH, nullptr, doc, DTRUN_SCOPE_HOST);
  option.flags = DTRUN_OPTION_MUST_EXIST;
  option.long_doc = long_doc;
  return option;
}

constexpr dtrun_option MakeInterface() {
  dtrun_option option =
      sdk::Option("interface", DTRUN_TYPE_STRING, nullptr,
                  "network interface that carries the traffic between hosts, by name, address or network",
                  DTRUN_SCOPE_HOST);
  option.long_doc =
      "A name such as \"eth0\", an address of this host such as \"10.0.0.5\", or a network such as "
      "\"10.0.0.0/16\", which fits hosts whose names differ. Ranks see NCCL_SOCKET_IFNAME with the exact "
      "name "
      "(\"=eth0\"), so that programs that use NCCL through torch take the same interface.\n"
      "Unset: NCCL chooses.";
  option.env_alias = "NCCL_SOCKET_IFNAME";
  return option;
}

constexpr dtrun_option MakeSwitch(const char* key, const char* doc, const char* long_doc, const char* alias) {
  dtrun_option option = sdk::Option(key, DTRUN_TYPE_ENUM, "auto", doc);
  option.choices = kSwitch;
  option.choice_count = std::size(kSwitch);
  option.long_doc = long_doc;
  option.env_alias = alias;
  return option;
}

constexpr dtrun_option MakeMaxCtas() {
  dtrun_option option = sdk::Option("max_ctas", DTRUN_TYPE_INT, nullptr,
                                    "most thread blocks of the GPU that one operation may occupy");
  option.long_doc =
      "Fewer leave more of the GPU to computation and use less memory; more move data faster.\n"
      "Unset: NCCL chooses.";
  option.min_text = "1";
  option.max_text = "64";
  option.env_alias = "NCCL_MAX_CTAS";
  return option;
}

constexpr dtrun_option kTable[] = {
    MakePath(
        "library", "file of the NCCL library",
        "Unset: the libnccl.so.2 that is already in the process, as torch brings one; else the loader's."),
    MakePath("cuda_library", "file of the CUDA runtime library",
             "Unset: the libcudart that is already in the process; else the loader's libcudart.so.13, .12 or "
             ".11.0."),
    MakeInterface(),
    MakeSwitch(
        "p2p", "whether GPUs of one host read each other's memory",
        "auto: before the ranks start, each pair of GPUs makes a verified and timed copy in a child process, "
        "2 s for a pair and "
        "5 s "
        "at most; where the driver claims access that fails, hangs, corrupts or crawls, or grants it one way "
        "only, ranks see NCCL_P2P_DISABLE=1. What was found is kept until the next boot. on: a pair that "
        "cannot "
        "ends the job before it starts. off: ranks see NCCL_P2P_DISABLE=1.\n"
        "DTRUN_P2P tells programs with peer copies of their own: on or off, unset when nobody knows.",
        "NCCL_P2P_DISABLE"),
    MakeSwitch(
        "shm", "whether GPUs of one host may meet in host memory",
        "off: ranks see NCCL_SHM_DISABLE=1. on: NCCL_SHM_DISABLE=0. auto: off where peer access is off "
        "and /dev/shm has less than 32 MiB left for each rank, else the variable is left as it is.",
        "NCCL_SHM_DISABLE"),
    MakeSwitch("rdma", "whether InfiniBand and RoCE are used between hosts",
               "off: ranks see NCCL_IB_DISABLE=1 and use sockets. on: NCCL_IB_DISABLE=0. auto: the variable "
               "is left as "
               "it is.",
               "NCCL_IB_DISABLE"),
    MakeSwitch(
        "gdr", "whether network cards read and write GPU memory themselves",
        "off: ranks see NCCL_NET_GDR_LEVEL=LOC. on: NCCL_NET_GDR_LEVEL=SYS, at any distance. auto: the "
        "variable is left as it is.",
        "NCCL_NET_GDR_LEVEL"),
    MakeMaxCtas()};

Switch ReadSwitch(const sdk::Options& options, const char* key) {
  return static_cast<Switch>(options.EnumIndex(key));
}

}  // namespace

NcclOptions::NcclOptions(const sdk::Options& options)
    : library(options.FindString("library").value_or("")),
      cuda_library(options.FindString("cuda_library").value_or("")),
      interface(options.FindString("interface")),
      p2p(ReadSwitch(options, "p2p")),
      shm(ReadSwitch(options, "shm")),
      rdma(ReadSwitch(options, "rdma")),
      gdr(ReadSwitch(options, "gdr")) {
  if (const auto value = options.FindInt("max_ctas")) max_ctas = static_cast<int>(*value);
}

const dtrun_option* OptionTable() { return kTable; }
std::uint64_t OptionCount() { return std::size(kTable); }

}  // namespace dtrun::nccl_plugin
