#include "core/plugin/probe_messages.h"

#include <memory>
#include <utility>

#include "core/wire/coder.h"

namespace dtrun::plugin {

PlanPart PartOf(const LaunchPlan& plan, bool more) {
  PlanPart part{{}, {}, plan.notes, more};
  if (plan.processes.empty()) return part;
  const PlannedProcess& first = plan.processes.front();
  part.shared = *first.env.shared();
  if (part.shared.empty()) part.shared = {first.env.begin(), first.env.end()};
  const auto kept = std::make_shared<const ProcessVariables::Map>(part.shared);
  for (const PlannedProcess& process : plan.processes) {
    const bool is_first = &process == &first;
    ProcessVariables env = process.env;
    if (env.shared() != first.env.shared() || env.shared()->empty()) {
      env = ProcessVariables::Map(env.begin(), env.end());
      env.ShareWith(kept);
    }
    PlanPart::Process& out = part.processes.emplace_back(PlanPart::Process{process.host,
                                                                           process.rank,
                                                                           process.local_rank,
                                                                           process.rank_count,
                                                                           {},
                                                                           {},
                                                                           {},
                                                                           !env.shared()->empty(),
                                                                           env.own()});
    if (is_first || process.argv != first.argv) out.argv = process.argv;
    if (is_first || process.unset != first.unset) out.unset = process.unset;
    if (is_first || process.cwd != first.cwd) out.cwd = process.cwd;
  }
  return part;
}

void AddTo(LaunchPlan* plan, PlanPart part) {
  const auto shared = std::make_shared<const ProcessVariables::Map>(std::move(part.shared));
  const std::size_t first = plan->processes.size();
  for (PlanPart::Process& process : part.processes) {
    PlannedProcess out{process.host, process.rank, process.local_rank, process.rank_count, {}, {}, {}, {}};
    const PlannedProcess& like = plan->processes.size() == first ? out : plan->processes[first];
    out.argv = process.argv ? *std::move(process.argv) : like.argv;
    out.unset = process.unset ? *std::move(process.unset) : like.unset;
    out.cwd = process.cwd ? *std::move(process.cwd) : like.cwd;
    out.env = std::move(process.own);
    if (process.shares) out.env.ShareAll(shared);
    plan->processes.push_back(std::move(out));
  }
  for (std::string& note : part.notes) plan->notes.push_back(std::move(note));
}

std::string Encode(const ToProbe& message) { return wire::EncodeFrame(message); }
std::string Encode(const FromProbe& message) { return wire::EncodeFrame(message); }

Result<ToProbe> DecodeRequest(std::string_view payload) {
  return wire::Decode<ToProbe>(payload, "request to a plugin probe");
}
Result<FromProbe> DecodeAnswer(std::string_view payload) {
  return wire::Decode<FromProbe>(payload, "answer of a plugin probe");
}

}  // namespace dtrun::plugin
