#include "core/launch/launch.h"

#include <cstdlib>
#include <utility>

#include "core/launch/cluster.h"
#include "core/node/serve.h"
#include "core/plan/at.h"

namespace dtrun::launch {
namespace {

Result<job::RunRequest> RequestOf(Preparation& preparation, Front& front, const Manner& manner) {
  const spec::JobSpec& spec = preparation.spec();
  auto restart = RestartPolicyOf(spec);
  if (!restart) return restart.error();
  auto stall = StallPolicyOf(spec);
  if (!stall) return stall.error();
  auto metrics = MetricsWithToken(spec);
  if (!metrics) return metrics.error();
  auto plan = preparation.PlanOfRun();
  if (!plan) return plan.error();
  auto cluster = ClusterOf(spec, manner.key, preparation.launchers());
  if (!cluster) return cluster.error();
  return job::RunRequest{*std::move(plan),
                         *std::move(restart),
                         front,
                         *std::move(cluster),
                         &preparation,
                         observe::IsolationPolicyNamed(*spec.job.isolated_ranks),
                         *stall,
                         *spec.watch.stragglers,
                         spec.job.time_limit.value_or(std::chrono::nanoseconds(0)),
                         manner.quiet,
                         spec.logs.dir_file.value_or(""),
                         plan::PlacePrefix(spec.logs.dir_file),
                         *std::move(metrics)};
}

}  // namespace

Result<int> Launch(Preparation preparation, Front& front, const Manner& manner) {
  const auto lead = [&](Preparation& own) -> Result<Work> {
    auto request = RequestOf(own, front, manner);
    if (!request) return request.error();
    return Work([&front, request = *std::move(request)](process::Lifeline& lifeline) {
      return front.End(job::Run(request, lifeline));
    });
  };
  return LeadOrJoin(std::move(preparation), manner.key, lead, [&front] { return front.Join(); });
}

Result<int> LeadOrJoin(Preparation preparation, const KeyRule& key,
                       const std::function<Result<Work>(Preparation&)>& lead,
                       const std::function<std::optional<node::OwnStart>()>& join) {
  const auto request = JoinRequestOf(preparation.spec(), key);
  if (!request) return request.error();
  if (!*request) {
    const Result<Work> work = lead(preparation);
    if (!work) return work.error();
    preparation.AwaitProbes();
    ::unsetenv(kClusterKey);  // already read; ranks and remote shells inherit the rest
    return node::Guarded(*work);
  }
  const std::optional<node::OwnStart> own = join ? join() : std::nullopt;
  { const Preparation done = std::move(preparation); }  // ends the child that describes the backend
  ::unsetenv(kClusterKey);
  return node::Guarded([&](process::Lifeline& lifeline) { return node::Serve(**request, own, lifeline); });
}

}  // namespace dtrun::launch
