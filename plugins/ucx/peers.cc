#include "peers.h"

#include <algorithm>

#include "ucx_options.h"

namespace dtrun::ucx_plugin {
namespace {

using sdk::Failure;

constexpr const char* kCudaIpc = "cuda_ipc";

Failure Contradiction(const std::string& p2p, const std::string& list, const std::string& fix) {
  return Failure(DTRUN_INVALID_ARGUMENT,
                 "p2p: \"" + p2p + "\" contradicts transports = \"" + list + "\" (or UCX_TLS); " + fix);
}

// The list without cuda_ipc. One that names it on purpose stays: the caller knows what that means.
std::string Without(const std::optional<std::string>& list) {
  std::string exclusion = std::string("^") + kCudaIpc;
  if (!list || *list == "all") return exclusion;
  if (list->front() != '^' || NamesTransport(*list, kCudaIpc)) return *list;
  return *list + "," + kCudaIpc;
}

bool Leaves(const std::optional<std::string>& list) {
  return !list || NamesTransport(*list, kCudaIpc) != (list->front() == '^');
}

}  // namespace

PeerChoice ChoosePeers(int p2p, const std::optional<std::string>& given,
                       const std::optional<std::string>& inherited, const std::vector<Resource>& all) {
  // An empty list is for Select to refuse.
  const std::optional<std::string> transports = given && given->empty() ? std::nullopt : given;
  if (p2p == kP2pOff) {
    const std::string list = Without(transports);
    if (Leaves(list)) {
      throw Contradiction("off", *transports,
                          "name cuda_copy and gdr_copy in place of cuda, or leave one of the two out");
    }
    return {list, "off, as backend.options.p2p says", "off"};
  }
  const bool offered =
      std::any_of(all.begin(), all.end(), [](const Resource& one) { return one.transport == kCudaIpc; });
  if (p2p == kP2pOn) {
    if (!Leaves(transports)) {
      throw Contradiction("on", *transports, "let it have cuda_ipc, or leave one of the two out");
    }
    if (!offered) {
      throw Failure(
          DTRUN_FAILED_PRECONDITION,
          "p2p is \"on\", but UCX offers no cuda_ipc on this host: it needs a GPU, and a UCX that was "
          "built with CUDA; \"auto\" does without");
    }
    return {transports.value_or("all"), "on: UCX offers cuda_ipc; not tried", "on"};
  }
  if (inherited == "off" && transports.value_or("all") == "all") {
    return {Without(transports), "off, as DTRUN_P2P=off of your environment says", ""};
  }
  return {given, offered && Leaves(transports) ? "on: UCX offers cuda_ipc; not tried" : "", ""};
}

}  // namespace dtrun::ucx_plugin
