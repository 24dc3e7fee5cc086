// Fallback for peer access between GPUs: when a start-up check found nothing and the job
// failed all the same in the way that broken peer access makes it fail, the world starts again
// with one path less. Which paths a failure rules out, and how they are disabled, is part of the known
// failures (core/failures/failures.toml), so it applies to any program, whatever the job's backend: most of
// them use their library without dtrun's communicators.
//
// Any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/plan/plan.h"
#include "core/verdict/facts.h"

namespace dtrun::job {

struct Fallback {
  std::vector<std::pair<std::string, std::string>> variables;  // for every rank of the next generation
  std::string line;                                            // for the user
};

// The fallback level below, when the first cause of `facts` is of that kind. `inherited` tells whether ranks
// get a variable from dtrun's own environment: a way that the user has decided on stays as it is.
std::optional<Fallback> NextFallback(const verdict::Facts& facts, const plan::Plan& plan,
                                     const std::function<bool(std::string_view variable)>& inherited);

}  // namespace dtrun::job
