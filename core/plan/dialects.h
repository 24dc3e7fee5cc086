// The dialects of a plan: its rank table, and the variables that job.dialects adds to
// each rank.
//
// Pure; any thread.
#pragma once

#include "core/config/settings.h"
#include "core/environments/dialect.h"
#include "core/plan/plan.h"

namespace dtrun::plan {

// Tokens: where the root serves Horovod's rendezvous store.
inline constexpr char kTokenRendezvousAddress[] = "⟦rendezvous_addr⟧";
inline constexpr char kTokenRendezvousPort[] = "⟦rendezvous_port⟧";
// Whether a run has to.
bool NeedsRendezvous(const Plan& plan);

// Ports and paths as tokens of the plan.
environments::RankTable TableOf(const Plan& plan);

// That those of job.dialects exist. Errors carry the place.
Status CheckDialects(const config::Settings& settings);

// Checks job.dialects and job.roles, and fills Plan::dialects and Plan::roles; a port that
// a dialect's programs have built in becomes the plan's, when the user has not chosen one.
// REQUIRES: hosts and master_port of the plan are final.
Status ChooseDialects(const config::Settings& settings, Plan* plan);

// What the plan's dialects add for `process`, on top of `contract`, which holds what the
// launcher and dtrun set. A variable with two values is an error that names both and who set
// them, or the dialect, when the process holds several ranks and they need different ones.
// `table`: TableOf(plan).
Result<environments::Contract> DialectVariables(const Plan& plan, const environments::RankTable& table,
                                                const Process& process, const ProcessVariables& contract);

}  // namespace dtrun::plan
