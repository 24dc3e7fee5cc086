#include "core/environments/roles.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/number.h"
#include "core/base/suggest.h"

namespace dtrun::environments {

Result<std::vector<std::string>> AssignRoles(const std::map<std::string, std::string>& counts, int ranks) {
  static const std::vector<std::string> kOrder = {"chief", "worker", "ps", "evaluator"};
  const auto bad = [](std::string text) { return Error{DTRUN_INVALID_ARGUMENT, std::move(text)}; };
  std::map<std::string, int> numbers;
  for (const auto& [role, text] : counts) {
    if (std::ranges::find(kOrder, role) == kOrder.end()) {
      const auto nearest = Nearest(role, kOrder);
      return bad(fmt::format("unknown role '{}'; {}", role,
                             nearest ? fmt::format("did you mean '{}'?", *nearest)
                                     : fmt::format("there are {}", fmt::join(kOrder, ", "))));
    }
    const int number = NumberOf<int>(text).value_or(-1);
    if (number < 0 || number > ranks) {
      return bad(
          fmt::format("'{}' ranks as {}: expected a number from 0 to the job's {}", text, role, ranks));
    }
    numbers[role] = number;
  }
  if (numbers["chief"] > 1) return bad(fmt::format("{} chiefs; a cluster has at most one", numbers["chief"]));
  std::vector<std::string> out;
  for (const std::string& role : kOrder) out.insert(out.end(), static_cast<std::size_t>(numbers[role]), role);
  if (!counts.empty() && out.size() != static_cast<std::size_t>(ranks)) {
    return bad(fmt::format("roles for {} ranks, and the job has {}; make them equal", out.size(), ranks));
  }
  return out;
}

}  // namespace dtrun::environments
