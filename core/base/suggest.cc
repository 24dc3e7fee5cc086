#include "core/base/suggest.h"

#include <algorithm>

#include "core/base/text.h"

namespace dtrun {
int EditDistance(std::string_view a, std::string_view b) {
  std::vector<int> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int change = ToLower(a[i - 1]) == ToLower(b[j - 1]) ? 0 : 1;
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && ToLower(a[i - 1]) == ToLower(b[j - 2]) &&
          ToLower(a[i - 2]) == ToLower(b[j - 1])) {
        now[j] = std::min(now[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

namespace {

// Whether `name` is `whole` with letters left out: "procs_per_host" of "processes_per_host".
bool Abbreviates(std::string_view name, std::string_view whole) {
  std::size_t at = 0;
  for (const char c : whole) at += at < name.size() && ToLower(name[at]) == ToLower(c) ? 1 : 0;
  return at == name.size() && ToLower(name[0]) == ToLower(whole[0]);
}

}  // namespace

std::optional<std::string> Nearest(std::string_view name, const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  int best_distance = 4;
  for (const std::string& candidate : candidates) {
    const int distance = EditDistance(name, candidate);
    const int longer = static_cast<int>(std::max(name.size(), candidate.size()));
    if (distance < best_distance && 2 * distance < longer) {
      best = candidate;
      best_distance = distance;
    }
  }
  constexpr std::size_t kShortest = 5;  // many names contain any two letters
  if (best || name.size() < kShortest) return best;
  const auto whole = [&](const std::string& one) { return Abbreviates(name, one); };
  const auto found = std::ranges::find_if(candidates, whole);
  return found != candidates.end() && std::ranges::count_if(candidates, whole) == 1 ? std::optional(*found)
                                                                                    : std::nullopt;
}

}  // namespace dtrun
