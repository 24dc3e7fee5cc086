#include "core/verdict/isolated_ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dtrun::verdict {
namespace {

// How ranks join each other with this framework.
std::string WayToJoin(const std::string& framework, pmi::Kind pmi) {
  if (framework == "PyTorch") {
    return "call torch.distributed.init_process_group (Lightning: Trainer(devices=N, strategy=\"ddp\"))";
  }
  if (framework == "TensorFlow")
    return "set job.dialects = [\"tf-config\"] and use a strategy for several workers";
  if (framework == "JAX") return "call jax.distributed.initialize";
  if (framework == "NCCL") return "call ncclCommInitRank with the size of the world";
  const pmi::Kind wanted = framework == "MPICH" ? pmi::Kind::kPmi1 : pmi::Kind::kPmix;
  if (pmi == wanted) return "call MPI_Init";
  return fmt::format("set job.pmi = \"{}\", or launcher.name = \"mpirun\"", pmi::KindName(wanted));
}

}  // namespace

IsolationPolicy IsolationPolicyNamed(std::string_view word) {
  if (word == "fail") return IsolationPolicy::kFail;
  return word == "allow" ? IsolationPolicy::kAllow : IsolationPolicy::kWarn;
}

IsolatedRanks DescribeIsolatedRanks(const std::vector<std::string>& frameworks, pmi::Kind pmi, bool seen) {
  std::vector<std::string> ways;
  for (const std::string& framework : frameworks) ways.push_back(WayToJoin(framework, pmi));
  const std::string loaded = fmt::format("{}", fmt::join(frameworks, " and "));
  return {seen
              ? fmt::format(
                    "the ranks have not joined each other: each has {} loaded and works alone (world size 1)",
                    loaded)
              : fmt::format("the ranks were not seen to join each other: each has {} loaded", loaded),
          fmt::format("{}; job.isolated_ranks = \"allow\" if this is intended", fmt::join(ways, ", or "))};
}

}  // namespace dtrun::verdict
