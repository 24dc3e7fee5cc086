#include "tools/dtrun/foreign_variable.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/base/text.h"
#include "core/environments/outer.h"

namespace dtrun::cli {
namespace {

struct ForeignVariable {
  std::string_view variable, option;
  std::string_view note = {};  // an additional clause
};

constexpr std::string_view kDtrunSets = "dtrun sets it for every rank";
constexpr ForeignVariable kForeignVariables[] = {
    {"NCCL_SOCKET_IFNAME", "network.interface", "ranks see it with that interface"},
    {"GLOO_SOCKET_IFNAME", "network.interface", "ranks see it with that interface"},
    {"TP_SOCKET_IFNAME", "network.interface", "ranks see it with that interface"},
    {"HOROVOD_GLOO_IFACE", "network.interface"},
    {"OMPI_MCA_btl_tcp_if_include", "network.interface"},
    {"OMPI_MCA_oob_tcp_if_include", "network.interface"},
    {"PRTE_MCA_prte_if_include", "network.interface"},
    {"FI_TCP_IFACE", "network.interface"},
    {"MASTER_ADDR", "cluster.hosts", "dtrun sets it for every rank: the first host"},
    {"MASTER_PORT", "job.master_port", kDtrunSets},
    {"WORLD_SIZE", "job.ranks", kDtrunSets},
    {"RANK", "job.ranks", kDtrunSets},
    {"LOCAL_RANK", "job.processes_per_host", kDtrunSets},
    {"LOCAL_WORLD_SIZE", "job.processes_per_host", kDtrunSets},
    {"NPROC_PER_NODE", "job.processes_per_host"},
    {"PET_NPROC_PER_NODE", "job.processes_per_host"},
    {"NNODES", "cluster.host_count"},
    {"PET_NNODES", "cluster.host_count"},
    {"NODE_RANK", "cluster.host_index"},
    {"PET_NODE_RANK", "cluster.host_index"},
    {"PET_MASTER_ADDR", "cluster.root"},
    {"PET_MAX_RESTARTS", "restart.max"},
    {"CUDA_VISIBLE_DEVICES", "job.gpu_visibility", "\"own\" makes a list for each rank"},
    {"HIP_VISIBLE_DEVICES", "job.gpu_visibility", "\"own\" makes a list for each rank"},
    {"ROCR_VISIBLE_DEVICES", "job.gpu_visibility", "\"own\" makes a list for each rank"},
    {"OMP_NUM_THREADS", "", "if it is unset, ranks see the cores of a host divided by its ranks"},
    {"PYTHONUNBUFFERED", "", "dtrun sets it to 1 for ranks, if it is unset"},
    {"PYTHONFAULTHANDLER", "", "dtrun sets it to 1 for ranks, if it is unset"},
};

const ForeignVariable* FindForeign(std::string_view variable) {
  const auto found = std::ranges::find(kForeignVariables, variable, &ForeignVariable::variable);
  return found == std::end(kForeignVariables) ? nullptr : &*found;
}

// "backend.nccl.interface" for "backend.options.interface" in the table "backend nccl".
std::string WholeKey(const std::string& title, const std::string& key) {
  constexpr std::string_view kKind = "backend ", kOptions = "backend.options.";
  if (!title.starts_with(kKind) || !key.starts_with(kOptions)) return key;
  return fmt::format("backend.{}.{}", title.substr(kKind.size()), key.substr(kOptions.size()));
}

}  // namespace

bool NamesVariable(std::string_view word) {
  if (FindForeign(word) != nullptr) return true;
  return word.find('_') != word.npos && !word.empty() && word[0] >= 'A' && word[0] <= 'Z' &&
         std::ranges::all_of(word, [](char c) { return IsLetterOrDigit(c) || c == '_'; });
}

std::string OptionInPlaceOf(std::string_view variable) {
  const ForeignVariable* const known = FindForeign(variable);
  return known == nullptr ? "" : std::string(known->option);
}

std::string VariableText(const std::string& variable, const std::vector<OptionTable>& plugins) {
  const ForeignVariable* const known = FindForeign(variable);
  std::string out = variable + ": an environment variable, not an option";
  if (known != nullptr && !known->note.empty()) out += fmt::format("; {}", known->note);
  out += '\n';
  const auto append = std::back_inserter(out);
  if (known != nullptr && !known->option.empty())
    fmt::format_to(append, "  {:<13} {}, explained below\n", "option", known->option);
  for (const OptionTable& table : plugins) {
    for (const options::Spec& spec : table.options) {
      if (spec.env_alias == variable)
        fmt::format_to(append, "  {:<13} {}: {}\n", table.title, WholeKey(table.title, spec.key), spec.doc);
    }
  }
  const bool withheld = environments::MatchesAny(variable, environments::Withheld());
  if (withheld || (known != nullptr && known->note.starts_with(kDtrunSets))) {
    fmt::format_to(append, "  {:<13} ranks do not get your value: dtrun {} it\n", "as it is",
                   withheld && known == nullptr ? "withholds" : "sets");
  } else {
    fmt::format_to(append, "  {:<13} --set job.env.{}=VALUE, or export it before dtrun\n", "as it is",
                   variable);
  }
  return out;
}

}  // namespace dtrun::cli
