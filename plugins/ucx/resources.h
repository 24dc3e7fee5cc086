// What UCX could use on this host, and what the user's options leave of it.
//
// UCX up to 1.20 only warns of a transport or a device that it does not know and goes on with
// what is left, down to nothing at all; so the options are checked here. Pure functions over a
// list of resources, and the function that asks UCX for that list. Any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "library.h"

namespace dtrun::ucx_plugin {

// One transport over one device.
struct Resource {
  std::string transport;  // "tcp", "rc_mlx5", "posix"
  std::string device;     // "eth0", "mlx5_0:1", "memory"
  bool network = false;

  bool rdma() const;
  std::string Text() const { return transport + "/" + device; }
};

// Whether `list` (the grammar of UCX_TLS) names `transport`, by itself, by an alias or by "all"; a "^"
// before the list does not matter.
bool NamesTransport(const std::string& list, const std::string& transport);

std::vector<Resource> ListResources(const Library& library);

// Opens each memory domain that can be opened; `visit` says whether it stays open.
void VisitDomains(const Library& library, const std::function<bool(uct_md_h)>& visit);

// The options, as the user wrote them.
struct Wanted {
  std::optional<std::string> transports;  // grammar of UCX_TLS
  std::optional<std::string> devices;     // grammar of UCX_NET_DEVICES
  bool rdma = false;                      // nothing else may carry what leaves a host
};

// What UCX is told, and what follows from it.
struct Selection {
  std::string transports;        // value for UCX_TLS
  std::string devices;           // value for UCX_NET_DEVICES
  std::vector<Resource> usable;  // what both leave
  std::string why_not_rdma;      // empty when RDMA is among them

  // "tcp/eth0", "rc_mlx5/mlx5_0:1"; with the shared memory of a host where that is used.
  std::string Text(bool one_host) const;
};

// Without a choice of the user's: on one host, loopback for TCP; on several, RDMA devices and,
// when there are none, the first of `preferred` (what dtrun has proven, or the interfaces of default
// routes), else the first that is not loopback (UCX takes a bridge for 100 times faster than a card
// of unknown speed, openucx/ucx#9383).
// Throws sdk::Failure that lists what exists when a name is unknown, when nothing is left, or
// when RDMA is wanted and missing.
Selection Select(const std::vector<Resource>& all, const std::vector<std::string>& preferred,
                 const Wanted& wanted, bool one_host);

inline constexpr const char* kP2pChoices[] = {"auto", "on", "off"};
inline constexpr int kP2pAuto = 0, kP2pOn = 1, kP2pOff = 2;

// Whether UCX may let GPUs of a host read each other's memory: its transport cuda_ipc, as an option.
//
// For memory of GPUs that UCX moves itself, and for programs that use UCX, which may ask peers that cannot
// (error 217). Pure; any thread.
struct PeerChoice {
  std::optional<std::string> transports;  // UCX_TLS with it; unset: nothing to say
  std::string fact;                       // for the run header; empty: nothing is known
  std::string for_programs;               // DTRUN_P2P: "on", "off", or empty
};

// `p2p` is one of these, the choices of the option; `transports` the user's list, `inherited` the value of
// DTRUN_P2P. Throws sdk::Failure when p2p and transports contradict each other, and when it is to be
// on where UCX has no cuda_ipc.
PeerChoice ChoosePeers(int p2p, const std::optional<std::string>& transports,
                       const std::optional<std::string>& inherited, const std::vector<Resource>& all);

}  // namespace dtrun::ucx_plugin
