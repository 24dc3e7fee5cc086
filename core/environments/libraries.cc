#include "core/environments/libraries.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/network_v4.hpp>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "core/base/text.h"

namespace dtrun::environments {
namespace {

using network::Candidate;
using network::Decision;
using network::LeftOut;
using network::Network;
using network::Offer;

// The syntax of a variable that names interfaces.
enum class Grammar {
  kNames,     // whole names
  kPrefixes,  // NCCL: "^" excludes, "=" makes prefixes whole names
  kDevices,   // UCX: whole names; "^" excludes, from 1.21 on
  kNetworks,  // Open MPI: whole names, or addresses with a prefix length
  kExcluded   // like kNetworks, but excluded
};

struct Row {
  std::string_view variable;
  Grammar grammar;
  Library library;
};
constexpr Library kNccl{"NCCL", "libnccl libtorch"}, kGloo{"Gloo in torch", "libtorch libgloo"},
    kPipe{"TensorPipe in torch", "libtorch"}, kHorovod{"Horovod", ""}, kUcx{"UCX", "libucp"},
    kOpenMpi{"Open MPI", "libmpi.so"};
constexpr auto kRows = std::to_array<Row>({{"NCCL_SOCKET_IFNAME", Grammar::kPrefixes, kNccl},
                                           {"GLOO_SOCKET_IFNAME", Grammar::kNames, kGloo},
                                           {"TP_SOCKET_IFNAME", Grammar::kNames, kPipe},
                                           {"HOROVOD_GLOO_IFACE", Grammar::kNames, kHorovod},
                                           {"UCX_NET_DEVICES", Grammar::kDevices, kUcx},
                                           {"OMPI_MCA_btl_tcp_if_include", Grammar::kNetworks, kOpenMpi},
                                           {"OMPI_MCA_oob_tcp_if_include", Grammar::kNetworks, kOpenMpi},
                                           {"PRTE_MCA_prte_if_include", Grammar::kNetworks, kOpenMpi},
                                           {"OMPI_MCA_btl_tcp_if_exclude", Grammar::kExcluded, kOpenMpi},
                                           {"OMPI_MCA_oob_tcp_if_exclude", Grammar::kExcluded, kOpenMpi},
                                           {"PRTE_MCA_prte_if_exclude", Grammar::kExcluded, kOpenMpi}});

const Row* RowOf(std::string_view variable) {
  const auto found = std::ranges::find(kRows, variable, &Row::variable);
  return found == kRows.end() ? nullptr : &*found;
}

std::optional<Grammar> GrammarOf(const std::string& variable) {
  const Row* const row = RowOf(variable);
  return row == nullptr ? std::nullopt : std::make_optional(row->grammar);
}

// RDMA devices, which cannot be checked against interfaces.
bool NamesDevices(Grammar grammar, const std::string& value) {
  return grammar == Grammar::kDevices && (value == "all" || value.find(':') != std::string::npos);
}

bool InNetworkText(const Ip& ip, const std::string& text) {
  const auto slash = text.find('/');
  error_code problem;
  const Ip around = asio::ip::make_address(text.substr(0, slash), problem);
  if (problem || slash == std::string::npos) return false;
  const int bits = std::atoi(text.c_str() + slash + 1);
  return network::InNetwork(ip, around, std::clamp(bits, 0, around.is_v6() ? 128 : 32));
}

bool Means(Grammar grammar, std::string_view value, const std::string& name, const std::optional<Ip>& ip) {
  bool excludes = grammar == Grammar::kExcluded, exact = grammar != Grammar::kPrefixes;
  if (grammar == Grammar::kPrefixes || grammar == Grammar::kDevices) {
    if ((excludes = value.starts_with('^'))) value.remove_prefix(1);
  }
  if (grammar == Grammar::kPrefixes) {
    if ((exact = value.starts_with('='))) value.remove_prefix(1);
  }
  for (const std::string_view part : Split(value, ',')) {
    if (part.empty()) continue;
    const bool named = exact ? name == part : name.starts_with(part);
    const bool networks = grammar == Grammar::kNetworks || grammar == Grammar::kExcluded;
    const bool in = networks && ip && InNetworkText(*ip, std::string(part));
    if (named || in) return !excludes;
  }
  return excludes;
}

// Whether all hosts could reach each other through this candidate.
bool Joins(const Decision& decision, std::size_t host, std::size_t candidate) {
  return std::ranges::any_of(decision.measured, [&](const network::Assignment& one) {
    return one.candidates[host] == static_cast<int>(candidate);
  });
}

// The first problem of the value on `host`, for the first interface that it matches; nullopt: none.
std::optional<std::string> ProblemOn(const Decision& decision, std::size_t host, Grammar grammar,
                                     const std::string& value) {
  const Offer& offer = decision.evidence.hosts()[host].offer;
  std::optional<std::string> first;
  for (std::size_t i = 0; i < offer.candidates.size(); ++i) {
    const Candidate& one = offer.candidates[i];
    if (!Means(grammar, value, one.interface, one.address.ip)) continue;
    if (Joins(decision, host, i)) return std::nullopt;
    if (!first) first = fmt::format("means {} there, which is not known to reach all hosts", one.interface);
  }
  if (first) return first;
  for (const LeftOut& one : offer.left_out) {
    if (!Means(grammar, value, one.interface, std::nullopt)) continue;
    return fmt::format("means {} there, which {}", one.interface, one.why);
  }
  return "means no interface there";
}

// Whether the lists of Gloo, UCX, NCCL and Open MPI can express this name: ',' separates names there, and a
// leading '^' or '=' has a special meaning.
bool Sayable(const std::string& interface) {
  return interface.find(',') == std::string::npos && !interface.starts_with('^') &&
         !interface.starts_with('=');
}

bool Named(const Network& network) { return network.named && Sayable(network.interface); }

// One value for all hosts: mpirun gives its own host's value to every rank, and ranks of Open MPI 4.1 with
// per-host addresses never connect. Empty: there is none.
std::string ForOpenMpi(const std::vector<Network>& networks) {
  const auto same = [&](const Network& one) { return Named(one) && one.interface == networks[0].interface; };
  if (std::ranges::all_of(networks, same)) return networks[0].interface;
  if (std::ranges::any_of(networks, &Network::ipv6)) return {};  // it accepts only IPv4 addresses
  std::set<std::string> texts;
  for (const Network& one : networks) {
    const auto address = asio::ip::make_address_v4(one.address);
    const auto prefix = static_cast<unsigned short>(one.prefix);
    texts.insert(asio::ip::make_network_v4(address, prefix).canonical().to_string());
  }
  return fmt::format("{}", fmt::join(texts, ","));
}

}  // namespace

std::map<std::string, std::string> InterfaceVariables(const std::vector<Network>& networks,
                                                      std::size_t host) {
  const Network& network = networks[host];
  std::map<std::string, std::string> out;
  const bool named = Named(network);
  if (named) {
    for (const char* name : {"GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "HOROVOD_GLOO_IFACE"}) {
      out[name] = network.interface;
    }
    out["NCCL_SOCKET_IFNAME"] = "=" + network.interface;
    out["NCCL_SOCKET_FAMILY"] = network.ipv6() ? "AF_INET6" : "AF_INET";
  }
  if (const std::string mca = ForOpenMpi(networks); !mca.empty()) {
    for (const char* name :
         {"OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include", "PRTE_MCA_prte_if_include"}) {
      out[name] = mca;
    }
  }
  // A host with RDMA has more network cards than the one used for TCP, and libraries find them all. Restrict
  // them only if the user has named interfaces.
  if (!network.host_has_rdma) {
    if (named) out["UCX_NET_DEVICES"] = network.interface;
  } else if (network.asked_for && !network.rdma.empty()) {
    out["UCX_NET_DEVICES"] = network.rdma;
    out["NCCL_IB_HCA"] = "=" + network.rdma;
  }
  return out;
}

bool NamesInterfaces(const std::string& variable) { return GrammarOf(variable).has_value(); }

bool ChoosesGpuPaths(const std::string& variable) {
  constexpr std::string_view kNames[] = {"NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE",
                                         "UCX_TLS"};
  return std::ranges::find(kNames, variable) != std::end(kNames);
}

bool MattersToRanks(std::string_view variable) {
  constexpr std::string_view kNames[] = {"CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "PYTHONPATH",
                                         "LD_LIBRARY_PATH",      "VIRTUAL_ENV",     "CONDA_PREFIX"};
  constexpr std::string_view kPrefixes[] = {"NCCL_", "GLOO_", "UCX_", "TORCH_", "OMPI_MCA_", "FI_"};
  return std::ranges::find(kNames, variable) != std::end(kNames) ||
         std::ranges::any_of(kPrefixes,
                             [&](std::string_view prefix) { return variable.starts_with(prefix); });
}

std::map<std::string, std::string> PortVariables(const PortRange& range) {
  const std::string first = std::to_string(range.first), last = std::to_string(range.last);
  const std::string count = std::to_string(range.last - range.first + 1);
  return {{"UCX_TCP_PORT_RANGE", first + "-" + last},
          {"OMPI_MCA_btl_tcp_port_min_v4", first},
          {"OMPI_MCA_btl_tcp_port_range_v4", count},
          {"OMPI_MCA_btl_tcp_port_min_v6", first},
          {"OMPI_MCA_btl_tcp_port_range_v6", count},
          {"OMPI_MCA_oob_tcp_dynamic_ipv4_ports", first + "-" + last},
          {"OMPI_MCA_oob_tcp_dynamic_ipv6_ports", first + "-" + last},
          {"MPIR_CVAR_CH3_PORT_RANGE", first + ":" + last},
          {"FI_TCP_PORT_LOW_RANGE", first},
          {"FI_TCP_PORT_HIGH_RANGE", last}};
}

std::string Opposite(const std::string& variable) {
  constexpr std::string_view kInclude = "_if_include";
  if (!variable.ends_with(kInclude)) return {};
  return variable.substr(0, variable.size() - kInclude.size()) + "_if_exclude";
}

const Library* LibraryOf(const std::string& variable) {
  const Row* const row = RowOf(variable);
  return row == nullptr ? nullptr : &row->library;
}

bool MeansNoInterface(const std::string& variable, const std::string& value,
                      const std::vector<network::Interface>& interfaces) {
  const auto grammar = GrammarOf(variable);
  const bool excludes = grammar == Grammar::kExcluded || value.starts_with('^');
  if (!grammar || value.empty() || excludes || NamesDevices(*grammar, value)) return false;
  return std::ranges::none_of(interfaces, [&](const network::Interface& one) {
    return Means(*grammar, value, one.name, std::nullopt) ||
           std::ranges::any_of(one.addresses, [&](const network::Address& address) {
             return Means(*grammar, value, one.name, address.ip);
           });
  });
}

std::string CheckInterfaces(const std::string& variable, const std::vector<std::string>& values,
                            const Decision& decision) {
  const auto grammar = GrammarOf(variable);
  if (!grammar) return {};
  std::map<std::string, std::string> hosts_of;  // by problem
  for (std::size_t host = 0; host < decision.evidence.hosts().size(); ++host) {
    const std::string& value = values[host];
    if (value.empty() || NamesDevices(*grammar, value)) continue;
    const auto problem = ProblemOn(decision, host, *grammar, value);
    if (!problem) continue;
    std::string& names = hosts_of[*problem];
    names += (names.empty() ? "" : ", ") + decision.evidence.hosts()[host].name;
  }
  std::string text;
  for (const auto& [problem, names] : hosts_of) {
    text += fmt::format("{}on {} it {}", text.empty() ? "" : "; ", names, problem);
  }
  return text;
}

}  // namespace dtrun::environments
