// The dialects of a plan: its rank table, and the variables that job.dialects adds to each rank.
//
// Pure; any thread.
#pragma once

#include "core/environments/dialect.h"
#include "core/plan/plan.h"
#include "core/spec/job_spec.h"

namespace dtrun::plan {

// Tokens: the address of the root's rendezvous store for Horovod.
inline constexpr char kTokenRendezvousAddress[] = "⟦rendezvous_addr⟧";
inline constexpr char kTokenRendezvousPort[] = "⟦rendezvous_port⟧";
// Whether a run must serve that store.
bool NeedsRendezvous(const Plan& plan);

// Ports and paths are the plan's tokens.
environments::RankTable TableOf(const Plan& plan);

// Checks that the dialects in job.dialects exist. Errors carry the place.
Status CheckDialects(const spec::JobSpec& spec);

// Checks job.dialects and job.roles, and fills Plan::dialects and Plan::roles. If the programs of a
// dialect have a built-in port and the user has chosen none, the plan uses that port. REQUIRES:
// hosts and master_port of the plan are final.
Status ChooseDialects(const spec::JobSpec& spec, Plan* plan);

// The variables that the plan's dialects add for `process`, on top of `contract`, which has those
// of the launcher and dtrun. Two values for a variable are an error that names both and their
// sources. If the process holds several ranks that need different values, the error names the
// dialect. `table`: TableOf(plan).
Result<environments::Contract> DialectVariables(const Plan& plan, const environments::RankTable& table,
                                                const Process& process, const ProcessVariables& contract);

}  // namespace dtrun::plan
