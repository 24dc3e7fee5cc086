#include "gloo_options.h"

namespace dtrun::gloo_plugin {
namespace {

constexpr dtrun_option MakeInterface() {
  dtrun_option option = sdk::Option("interface", DTRUN_TYPE_STRING, nullptr,
                                    "network interface that carries the traffic, by name, address or network",
                                    DTRUN_SCOPE_HOST);
  option.long_doc =
      "A name such as \"eth0\", an address of this host such as \"10.0.0.5\" or \"fd00::2\", or a network "
      "such as "
      "\"10.0.0.0/16\", which fits hosts whose names differ. A name stands for its first IPv4 address, else "
      "its "
      "first global IPv6 address.\n"
      "Unset: loopback when all ranks share one host; otherwise what network.interface has found "
      "(DTRUN_ADDRESS), "
      "without that the interface of the default route, else the first running one that is not loopback. "
      "When set, ranks also see GLOO_SOCKET_IFNAME, so that programs that "
      "use Gloo "
      "through torch take the same interface.";
  option.env_alias = "GLOO_SOCKET_IFNAME";
  return option;
}

constexpr dtrun_option kTable[] = {MakeInterface()};

}  // namespace

const dtrun_option* OptionTable() { return kTable; }
std::uint64_t OptionCount() { return std::size(kTable); }

}  // namespace dtrun::gloo_plugin
