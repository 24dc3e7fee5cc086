#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/text.h"
#include "tools/dtrun/torchrun/translate.h"

namespace dtrun::torchrun {
namespace {

constexpr int kStaticPort = 29500;
constexpr int kC10dPort = 29400;

std::optional<std::string> Configured(const Arguments& arguments, std::string_view key) {
  for (const auto& [name, value] : arguments.rdzv_conf) {
    if (name == key) return value;
  }
  return std::nullopt;
}

// A single node with its own port and name.
bool Standalone(const Arguments& arguments) {
  if (arguments.standalone) return true;
  return arguments.rdzv_backend == "static" && arguments.rdzv_endpoint.empty() && !arguments.master_port &&
         arguments.max_nodes == 1;
}

Result<Endpoint> EndpointOf(const Arguments& arguments) {
  if (arguments.rdzv_backend == "static" && arguments.rdzv_endpoint.empty()) {
    auto address = MeetingPlace(arguments.master_addr);
    if (!address) return Bad(arguments.PlaceOf("master_addr") + ": " + address.error().text);
    address->port = arguments.master_port.value_or(kStaticPort);
    return address;
  }
  auto endpoint = MeetingPlace(arguments.rdzv_endpoint);
  if (!endpoint) {
    return Bad(arguments.PlaceOf("rdzv_endpoint") + ": " + endpoint.error().text);
  }
  return endpoint;
}

// Parsed as in torch; unset: not given.
Result<std::optional<bool>> FlagOf(const Arguments& arguments, std::string_view key) {
  const auto given = Configured(arguments, key);
  if (!given) return {std::nullopt};
  const std::string text = Lowercase(*given);
  for (const char* word : {"1", "true", "t", "yes", "y"}) {
    if (text == word) return std::optional(true);
  }
  for (const char* word : {"0", "false", "f", "no", "n"}) {
    if (text == word) return std::optional(false);
  }
  return Bad(fmt::format("{}: {}={}: expected true or false", arguments.PlaceOf("rdzv_conf"), key, *given));
}

constexpr std::size_t kFewestCharacters = 16;
constexpr std::ptrdiff_t kFewestDigits = 4;
constexpr std::size_t kFewestDifferent = 8;

}  // namespace

Result<Rendezvous> RendezvousOf(const Arguments& arguments, const std::string& uuid,
                                const MeetHere& meet_here) {
  Rendezvous rendezvous;
  if (Standalone(arguments)) {
    if (arguments.min_nodes > 1) {
      return Bad(fmt::format("{}={}: --standalone is for one node; leave one of them out",
                             arguments.PlaceOf("nnodes"), arguments.min_nodes));
    }
    rendezvous.run_id = uuid;
    return rendezvous;
  }
  const std::string& backend = arguments.rdzv_backend;
  if (backend != "static" && backend != "c10d") {
    return Bad(
        fmt::format("{}={}: not supported; dtrun's nodes meet at an address, without another service: write "
                    "c10d or static",
                    arguments.PlaceOf("rdzv_backend"), backend));
  }
  const auto endpoint = EndpointOf(arguments);
  if (!endpoint) return endpoint.error();
  rendezvous.run_id = arguments.rdzv_id.empty() ? uuid : arguments.rdzv_id;
  rendezvous.join_timeout = Configured(arguments, "join_timeout").value_or("");
  if (backend == "static")  // a special name in torchrun
    rendezvous.join_timeout = Configured(arguments, "timeout").value_or(rendezvous.join_timeout);
  const auto insecure = FlagOf(arguments, "insecure");
  if (!insecure) return insecure.error();
  rendezvous.insecure = insecure->value_or(false);

  if (backend == "static") {
    if (!endpoint->port) {
      return Bad(fmt::format("{}={}: static needs a port; write {}:{}", arguments.PlaceOf("rdzv_endpoint"),
                             arguments.rdzv_endpoint, Bracketed(endpoint->host), kStaticPort));
    }
    if (arguments.max_nodes == 1 && arguments.node_rank > 0) {
      return Bad(fmt::format("{}={}: the job has one node, number 0; for more add --nnodes N",
                             arguments.PlaceOf("node_rank"), arguments.node_rank));
    }
    if (arguments.node_rank >= arguments.max_nodes) {
      return Bad(fmt::format("{}={}: there are {} nodes; expected 0 to {}", arguments.PlaceOf("node_rank"),
                             arguments.node_rank, arguments.max_nodes, arguments.max_nodes - 1));
    }
    rendezvous.nodes = rendezvous.most_nodes = arguments.max_nodes;
    rendezvous.host = endpoint->host;
    rendezvous.port = endpoint->port;
    rendezvous.node = arguments.node_rank;
    return rendezvous;
  }
  if (arguments.max_nodes == 1) return rendezvous;  // a single node, whatever the endpoint is
  if (const auto type = Configured(arguments, "store_type"); type && *type != "tcp") {
    return Bad(fmt::format("{}: store_type={} is not supported; nodes meet at a host and port",
                           arguments.PlaceOf("rdzv_conf"), *type));
  }
  rendezvous.nodes = arguments.min_nodes;
  rendezvous.most_nodes = arguments.max_nodes;
  rendezvous.host = endpoint->host;
  rendezvous.port = endpoint->port.value_or(kC10dPort);
  rendezvous.last_call = Configured(arguments, "last_call_timeout").value_or("");
  const auto is_host = FlagOf(arguments, "is_host");
  if (!is_host) return is_host.error();
  if (*is_host ? **is_host : meet_here(rendezvous.host, *rendezvous.port)) rendezvous.node = 0;
  return rendezvous;
}

std::vector<spec::Given> ClusterSettings(const Arguments& arguments, const Rendezvous& rendezvous) {
  std::vector<spec::Given> spec;
  const auto add = [&](const char* key, std::string value, std::string_view name) {
    spec.push_back({key, std::move(value), arguments.OriginOf(name)});
  };
  if (arguments.max_restarts > 0) {
    add("restart.max", std::to_string(arguments.max_restarts), "max_restarts");
  }
  if (rendezvous.most_nodes == 1) return spec;
  add("cluster.connect", "manual", "nnodes");
  add("cluster.root", EndpointText(rendezvous.host, std::to_string(rendezvous.port.value_or(kC10dPort))),
      !arguments.rdzv_endpoint.empty() ? "rdzv_endpoint"
      : arguments.master_port ? "master_port"  // which errors are about, as the address is checked above
                              : "master_addr");
  add("cluster.host_count", std::to_string(rendezvous.most_nodes), "nnodes");
  if (rendezvous.nodes < rendezvous.most_nodes)
    add("cluster.min_hosts", std::to_string(rendezvous.nodes), "nnodes");
  add("cluster.oversubscribe", "true", "nnodes");  // several nodes may share a machine
  if (rendezvous.node) add("cluster.host_index", std::to_string(*rendezvous.node), "node_rank");
  if (!rendezvous.join_timeout.empty())
    add("cluster.join_timeout", rendezvous.join_timeout + "s", "rdzv_conf");
  if (!rendezvous.last_call.empty()) add("cluster.last_call", rendezvous.last_call + "s", "rdzv_conf");
  return spec;
}

bool IsHardToGuess(std::string_view run_id) {
  const auto digits = std::ranges::count_if(run_id, IsDigit);
  return run_id.size() >= kFewestCharacters && digits >= kFewestDigits &&
         std::set<char>(run_id.begin(), run_id.end()).size() >= kFewestDifferent;
}

Secret SecretOf(const Arguments& arguments, const Rendezvous& rendezvous) {
  Secret secret;
  if (rendezvous.most_nodes == 1) return secret;
  const bool given = arguments.Given("rdzv_id");
  if (IsLoopback(rendezvous.host)) {
    secret.from = Secret::From::kThisHost;
    return secret;
  }
  if (rendezvous.insecure) {
    secret.from = Secret::From::kRunId;
    secret.note =
        "insecure=true: anyone who reaches the nodes' port and knows the run id can run programs here as you";
    return secret;
  }
  if (IsHardToGuess(rendezvous.run_id) && given) {
    secret.from = Secret::From::kRunId;
    if (arguments.OriginOf("rdzv_id").kind == DTRUN_ORIGIN_COMMAND_LINE) {
      secret.note =
          "the nodes' key is made from --rdzv-id, which other users of this host see in the process list; "
          "~/.dtrun/key or DTRUN_CLUSTER_KEY keep it from them";
    }
    return secret;
  }
  secret.refusal = fmt::format(
      "{}: anyone who reaches {} port {} could run programs on every node, so the nodes need a secret: write "
      "the "
      "output of `openssl rand -hex 32` to ~/.dtrun/key (mode 0600) or DTRUN_CLUSTER_KEY, the same on every "
      "node; or give a random --rdzv-id, as `uuidgen` prints it; or, where you trust the network, "
      "--rdzv-conf insecure=true",
      given ? fmt::format("{}={} can be guessed", arguments.PlaceOf("rdzv_id"), rendezvous.run_id)
            : "no --rdzv-id",
      rendezvous.host, rendezvous.port.value_or(0));
  return secret;
}

}  // namespace dtrun::torchrun
