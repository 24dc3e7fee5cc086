#include "resources.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

namespace dtrun::ucx_plugin {
namespace {

using sdk::Failure;

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

// UCX's aliases, ucp_tl_aliases of ucp_context.c, and the beginnings of the transports that they mean.
constexpr std::pair<const char*, const char*> kAliases[] = {
    {"mm", "posix,sysv,xpmem"},
    {"sm", "posix,sysv,xpmem,knem,cma"},
    {"shm", "posix,sysv,xpmem,knem,cma"},
    {"ib", "rc_,ud_,dc_,srd"},
    {"rc", "rc_"},
    {"rc_v", "rc_verbs"},
    {"rc_x", "rc_mlx5"},
    {"ud", "ud_"},
    {"ud_v", "ud_verbs"},
    {"ud_x", "ud_mlx5"},
    {"dc", "dc_mlx5"},
    {"dc_x", "dc_mlx5"},
    {"ugni", "ugni_"},
    {"cuda", "cuda_,gdr_copy"},
    {"rocm", "rocm_"},
    {"ze", "ze_"},
};

template <class Range, class Text>
std::string Join(const Range& range, Text&& text) {
  std::string joined;
  for (const auto& one : range) {
    const std::string next = text(one);
    if (("," + joined + ",").find("," + next + ",") != std::string::npos) continue;
    joined.append(joined.empty() ? "" : ",").append(next);
  }
  return joined;
}
std::string Transports(const std::vector<Resource>& resources) {
  return Join(resources, [](const Resource& one) { return one.transport; });
}
std::string Texts(const std::vector<Resource>& resources) {
  return Join(resources, [](const Resource& one) { return one.Text(); });
}
template <class Which>
std::vector<Resource> Only(const std::vector<Resource>& resources, Which&& which) {
  std::vector<Resource> some;
  std::copy_if(resources.begin(), resources.end(), std::back_inserter(some), which);
  return some;
}
std::string Devices(const std::vector<Resource>& resources) {
  const auto network = Only(resources, [](const Resource& one) { return one.network; });
  return network.empty() ? "none" : Join(network, [](const Resource& one) { return one.device; });
}

// "\\tcp" is the transport and no alias; "ud:aux" is for connection set-up only.
std::string Bare(std::string name) {
  if (name.starts_with("\\")) name.erase(0, 1);
  return name.substr(0, name.find(':'));
}

// Whether UCX takes `name` for `transport`. `known` is set when the name means anything at all.
bool Means(const std::string& name, const std::string& transport, bool* known) {
  const bool strict = name.starts_with("\\");
  if (!strict && Bare(name) == "all") return *known = true;
  for (const auto& [alias, prefixes] : kAliases) {
    if (strict || Bare(name) != alias) continue;
    *known = true;
    for (const std::string& prefix : Split(prefixes)) {
      if (transport.starts_with(prefix)) return true;
    }
  }
  if (Bare(name) != transport) return false;
  *known = true;
  return true;
}

// Transports that UCX has but this host may lack.
bool ExistsElsewhere(const std::string& name) {
  for (const char* known :
       {"tcp",      "self",     "posix",     "sysv",     "xpmem",    "knem",      "cma",
        "rc_verbs", "rc_mlx5",  "ud_verbs",  "ud_mlx5",  "dc_mlx5",  "srd",       "cuda_copy",
        "cuda_ipc", "gdr_copy", "rocm_copy", "rocm_ipc", "rocm_gdr", "ugni_rdma", "ugni_smsg",
        "ugni_udt", "ze_copy",  "ze_ipc",    "ze_gdr"}) {
    if (Bare(name) == known) return true;
  }
  return false;
}

// Resources that `list` (the grammar of UCX_TLS) leaves.
std::vector<Resource> WithTransports(const std::vector<Resource>& all, const std::string& list) {
  const bool deny = list.starts_with("^");
  const std::vector<std::string> names = Split(deny ? list.substr(1) : list);
  std::vector<bool> meant(all.size());
  for (const std::string& name : names) {
    bool known = ExistsElsewhere(name);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (Means(name, all[i].transport, &known)) meant[i] = true;
    }
    if (known) continue;
    throw Failure(DTRUN_INVALID_ARGUMENT, "transports: UCX has no transport '" + name + "'; this host has " +
                                              Transports(all) +
                                              " (and aliases such as 'sm', 'ib', 'rc', 'all')");
  }
  std::vector<Resource> left;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (meant[i] != deny) left.push_back(all[i]);
  }
  if (names.empty() || left.empty()) {
    throw Failure(DTRUN_INVALID_ARGUMENT,
                  "transports: '" + list + "' leaves nothing on this host, which has " + Transports(all));
  }
  return left;
}

// Network resources that `list` (the grammar of UCX_NET_DEVICES) leaves, and all others.
std::vector<Resource> WithDevices(const std::vector<Resource>& all, const std::string& list) {
  if (list == "all") return all;
  if (list.starts_with("^")) {
    throw Failure(DTRUN_INVALID_ARGUMENT,
                  "devices: '" + list +
                      "' excludes, which UCX before 1.21 ignores; name the devices to use, of " +
                      Devices(all));
  }
  std::vector<std::string> names = Split(list);
  for (const std::string& name : names) {
    const bool known = std::any_of(all.begin(), all.end(),
                                   [&](const Resource& one) { return one.network && one.device == name; });
    if (known) continue;
    throw Failure(DTRUN_INVALID_ARGUMENT,
                  "devices: no device '" + name + "' that these transports can use on this host; there are " +
                      Devices(all) + " (an RDMA device is written with its port, 'mlx5_0:1')");
  }
  return Only(all, [&](const Resource& one) {
    return !one.network || std::find(names.begin(), names.end(), one.device) != names.end();
  });
}

bool HasRdma(const std::vector<Resource>& resources) {
  return std::any_of(resources.begin(), resources.end(), [](const Resource& one) { return one.rdma(); });
}

// What stands for UCX_NET_DEVICES when the user did not choose.
std::string ChooseDevices(const std::vector<Resource>& usable, const std::vector<std::string>& preferred,
                          bool one_host) {
  const auto rdma = Only(usable, [](const Resource& one) { return one.rdma(); });
  if (!rdma.empty()) return Devices(rdma);
  const auto tcp =
      Only(usable, [&](const Resource& one) { return one.network && (one.device == "lo") == one_host; });
  if (tcp.empty()) return "all";
  for (const std::string& name : preferred) {
    for (const Resource& one : tcp) {
      if (one.device != name) continue;
      if (name.find(',') != std::string::npos || name.front() == '^')
        throw Failure(DTRUN_INVALID_ARGUMENT,
                      "UCX cannot be told the interface '" + name +
                          "': its lists separate by ',' and exclude by '^'; rename it, "
                          "or use the gloo backend");
      return name;
    }
  }
  return tcp.front().device;
}

// With those that UCX needs for the memory of devices.
std::string RdmaTransports(const std::vector<Resource>& all) {
  std::string list = "ib,sm,self";
  for (const char* device : {"cuda", "rocm"}) {
    if (std::any_of(all.begin(), all.end(),
                    [&](const Resource& one) { return NamesTransport(device, one.transport); }))
      list.append(",").append(device);
  }
  return list;
}

std::string WhyNotRdma(const std::vector<Resource>& all, const std::vector<Resource>& usable) {
  if (HasRdma(usable)) return "";
  if (HasRdma(all)) return "the options leave no RDMA transport or device of this host";
  std::ifstream devices("/sys/class/infiniband");
  return devices.good()
             ? "UCX offers none of the devices in /sys/class/infiniband: no active port, or no libuct_ib"
             : "this host has no InfiniBand or RoCE device: /sys/class/infiniband does not exist";
}

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

bool Resource::rdma() const {
  return network && (transport.starts_with("rc_") || transport.starts_with("ud_") ||
                     transport.starts_with("dc_") || transport == "srd");
}

bool NamesTransport(const std::string& list, const std::string& transport) {
  const std::vector<std::string> names = Split(list.starts_with("^") ? list.substr(1) : list);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    bool known = false;
    return Means(name, transport, &known);
  });
}

void VisitDomains(const Library& library, const std::function<bool(uct_md_h)>& visit) {
  uct_component_h* components = nullptr;
  unsigned component_count = 0;
  library.Check(library.query_components(&components, &component_count), "ask UCX for its components");
  for (unsigned i = 0; i < component_count; ++i) {
    uct_component_attr_t attributes{};
    attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
    if (library.component_query(components[i], &attributes) != UCS_OK) continue;  // it lists none
    std::vector<uct_md_resource_desc_t> domains(attributes.md_resource_count);
    attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attributes.md_resources = domains.data();
    if (library.component_query(components[i], &attributes) != UCS_OK) continue;
    for (const uct_md_resource_desc_t& domain : domains) {
      uct_md_config_t* config = nullptr;
      if (library.md_config_read(components[i], nullptr, nullptr, &config) != UCS_OK) continue;
      uct_md_h opened = nullptr;
      const ucs_status_t status = library.md_open(components[i], domain.md_name, config, &opened);
      library.uct_config_release(config);
      if (status != UCS_OK) continue;  // what cannot be opened cannot be used
      if (!visit(opened)) library.md_close(opened);
    }
  }
  library.release_component_list(components);
}

std::vector<Resource> ListResources(const Library& library) {
  std::vector<Resource> resources;
  VisitDomains(library, [&](uct_md_h domain) {
    uct_tl_resource_desc_t* offered = nullptr;
    unsigned count = 0;
    if (library.md_query_tl_resources(domain, &offered, &count) != UCS_OK) return false;
    for (unsigned t = 0; t < count; ++t) {
      resources.push_back(
          {offered[t].tl_name, offered[t].dev_name, offered[t].dev_type == UCT_DEVICE_TYPE_NET});
    }
    library.release_tl_resource_list(offered);
    return false;
  });
  return resources;
}

std::string Selection::Text(bool one_host) const {
  auto shown =
      Only(usable, [&](const Resource& one) { return one.network || (one_host && one.transport != "self"); });
  // Shared memory first: on one host UCX prefers it.
  std::stable_partition(shown.begin(), shown.end(), [](const Resource& one) { return !one.network; });
  if (shown.empty()) return "none";
  return Texts(shown);
}

Selection Select(const std::vector<Resource>& all, const std::vector<std::string>& preferred,
                 const Wanted& wanted, bool one_host) {
  Selection selection;
  selection.transports = wanted.transports.value_or(wanted.rdma ? RdmaTransports(all) : "all");
  const bool no_rdma = wanted.rdma && !HasRdma(all);
  const std::vector<Resource> carried =
      no_rdma ? std::vector<Resource>() : WithTransports(all, selection.transports);
  if (!no_rdma) {
    selection.devices = wanted.devices.value_or(ChooseDevices(carried, preferred, one_host));
    selection.usable = WithDevices(carried, selection.devices);
  }
  selection.why_not_rdma = WhyNotRdma(all, selection.usable);
  if (wanted.rdma) {
    if (!selection.why_not_rdma.empty()) {
      throw Failure(DTRUN_FAILED_PRECONDITION, "required = \"rdma\", but " + selection.why_not_rdma +
                                                   "; UCX has " + Texts(all) +
                                                   " here; fix the device or set required = \"any\"");
    }
    // Without TCP in the list UCX cannot fall back to it.
    const auto kept = Only(selection.usable, [](const Resource& one) { return !one.network || one.rdma(); });
    if (kept.size() < selection.usable.size()) {
      selection.usable = kept;
      selection.transports = Transports(kept);
    }
  }
  const bool network = std::any_of(selection.usable.begin(), selection.usable.end(),
                                   [](const Resource& one) { return one.network; });
  if (!network && !one_host) {
    throw Failure(DTRUN_FAILED_PRECONDITION,
                  "transports '" + selection.transports + "' over devices '" + selection.devices +
                      "' leave no network on this host, and the job has several; UCX has " + Texts(all) +
                      " here");
  }
  return selection;
}

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
