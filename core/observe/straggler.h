// The rank that made the others wait, judged at the end of a generation from what all hosts have seen of
// their ranks (core/node/wait_watch.h).
//
// Names a rank only if that is clear: Shares' sign test, in which only looks count between which the waiting
// ranks have gone on, so that one long step or save of a rank is one sample; and for a rank that computes,
// that its first thread was busy for as much more of the time than those of the others. Pure; any thread.
#pragma once

#include <optional>
#include <vector>

#include "core/protocol/rank_messages.h"
#include "core/verdict/facts.h"

namespace dtrun::observe {

// `looks`: of ranks of all hosts, as received; those of one rank may differ in length and interval from
// another's.
std::optional<verdict::Straggler> StragglerOf(std::vector<protocol::RankLooks> looks);

}  // namespace dtrun::observe
