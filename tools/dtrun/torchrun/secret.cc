#include "tools/dtrun/torchrun/secret.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/text.h"
#include "tools/dtrun/torchrun/grammar.h"

namespace dtrun::torchrun {
namespace {

constexpr std::size_t kFewestCharacters = 16;
constexpr std::ptrdiff_t kFewestDigits = 4;
constexpr std::size_t kFewestDifferent = 8;

}  // namespace

bool IsHardToGuess(std::string_view run_id) {
  const auto digits = std::ranges::count_if(run_id, IsDigit);
  return run_id.size() >= kFewestCharacters && digits >= kFewestDigits &&
         std::set<char>(run_id.begin(), run_id.end()).size() >= kFewestDifferent;
}

Secret SecretOf(const Arguments& arguments, const Rendezvous& rendezvous) {
  Secret secret;
  if (rendezvous.most_nodes == 1) return secret;
  const auto place = arguments.origins.find("rdzv_id");
  const bool given = place != arguments.origins.end();
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
    if (place->second.kind == DTRUN_ORIGIN_COMMAND_LINE) {
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
      given ? fmt::format("{}={} can be guessed", place->second.place, rendezvous.run_id) : "no --rdzv-id",
      rendezvous.host, rendezvous.port.value_or(0));
  return secret;
}

}  // namespace dtrun::torchrun
