// Fallback for peer access between GPUs. If start-up checks found nothing but the job fails in the way that
// broken peer access causes, the world restarts with one path less. The known failures
// (core/failures/failures.toml) define which paths a failure rules out and how to disable them. So this
// applies to any program and backend: most programs use their library without dtrun's communicators.
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

// The next lower fallback level, if the first cause of `facts` is such a failure. `inherited`: whether ranks
// inherit a variable from dtrun's environment. A path that the user has configured stays as it is.
std::optional<Fallback> NextFallback(const verdict::Facts& facts, const plan::Plan& plan,
                                     const std::function<bool(std::string_view variable)>& inherited);

}  // namespace dtrun::job
