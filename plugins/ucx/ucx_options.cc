#include "ucx_options.h"

namespace dtrun::ucx_plugin {
namespace {

constexpr dtrun_option MakeTransports() {
  dtrun_option option = sdk::Option(kTransportsOption, DTRUN_TYPE_STRING, nullptr,
                                    "transports UCX may use, in the grammar of UCX_TLS");
  option.long_doc =
      "A list such as \"rc,sm,self\", or one that excludes: \"^tcp\". Aliases are UCX's: \"sm\" is shared "
      "memory, \"ib\" every InfiniBand and RoCE transport. A name that UCX does not know is an error that "
      "lists what this host has, as is a list that leaves nothing.\n"
      "Unset: UCX_TLS, else everything that UCX offers. When set, ranks also see UCX_TLS.";
  option.env_alias = "UCX_TLS";
  return option;
}

constexpr dtrun_option MakeDevices() {
  dtrun_option option =
      sdk::Option(kDevicesOption, DTRUN_TYPE_STRING, nullptr,
                  "network devices UCX may use, in the grammar of UCX_NET_DEVICES", DTRUN_SCOPE_HOST);
  option.long_doc =
      "A list such as \"mlx5_0:1,mlx5_1:1\" or \"eth0\", or \"all\". A device that this host lacks is an "
      "error "
      "that lists those it has.\n"
      "Unset: UCX_NET_DEVICES, else the RDMA devices; where there are none, loopback when all ranks share "
      "one host, otherwise what network.interface has found, without that the interface of the default "
      "route, else the first that is not loopback. When set, ranks also see UCX_NET_DEVICES.";
  option.env_alias = "UCX_NET_DEVICES";
  return option;
}

constexpr const char* kRequired[] = {"any", "rdma"};

constexpr dtrun_option MakeRequired() {
  dtrun_option option =
      sdk::Option(kRequiredOption, DTRUN_TYPE_ENUM, "any", "what must carry the traffic between hosts");
  option.long_doc =
      "\"rdma\": InfiniBand or RoCE; without it the job ends before it starts, with the reason, instead of "
      "running slowly over TCP. \"any\": whatever there is.";
  option.choices = kRequired;
  option.choice_count = 2;
  return option;
}

constexpr dtrun_option MakeRails() {
  dtrun_option option =
      sdk::Option(kRailsOption, DTRUN_TYPE_UINT, nullptr, "devices over which one large message is spread");
  option.long_doc =
      "Unset: UCX decides, which is at most two; it leaves out devices far slower than the fastest.";
  option.min_text = "1";
  option.max_text = "8";
  option.env_alias = "UCX_MAX_RNDV_RAILS";
  return option;
}

constexpr const char* kP2p[] = {"auto", "on", "off"};

constexpr dtrun_option MakeP2p() {
  dtrun_option option = sdk::Option(kP2pOption, DTRUN_TYPE_ENUM, "auto",
                                    "whether UCX may let GPUs of a host read each other's memory (cuda_ipc)");
  option.long_doc =
      "This backend moves host memory and does not need it; programs that use UCX directly may. off: "
      "cuda_ipc is taken out of the transports, so ranks see UCX_TLS=^cuda_ipc, or your exclusions with it, "
      "and "
      "DTRUN_P2P=off. on: a host whose UCX has no cuda_ipc ends the job before it starts; DTRUN_P2P=on. "
      "auto: "
      "off when DTRUN_P2P=off is set, else what UCX offers; whether peers really can is not tried here, as "
      "the "
      "nccl backend does. off beside a list of transports that names cuda_ipc or cuda is an error, and on "
      "beside one that leaves it out.";
  option.choices = kP2p;
  option.choice_count = std::size(kP2p);
  return option;
}

constexpr dtrun_option kTable[] = {MakeTransports(), MakeDevices(), MakeRequired(), MakeRails(), MakeP2p()};

}  // namespace

const dtrun_option* OptionTable() { return kTable; }
std::uint64_t OptionCount() { return std::size(kTable); }

}  // namespace dtrun::ucx_plugin
