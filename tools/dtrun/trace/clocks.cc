#include "tools/dtrun/trace/clocks.h"

#include <algorithm>
#include <cmath>

namespace dtrun::trace {

void Clocks::Add(const std::string& host, std::int64_t at, std::int64_t ahead, std::int64_t uncertainty) {
  if (std::abs(ahead) <= uncertainty) ahead = 0;
  std::vector<Measured>& measured = hosts_[host];
  if (measured.empty() || at > measured.back().at) measured.push_back({at, ahead, uncertainty});
}

std::int64_t Clocks::AtRoot(const std::string& host, std::int64_t time) const {
  const auto found = hosts_.find(host);
  if (found == hosts_.end()) return time;
  const std::vector<Measured>& measured = found->second;
  const auto after =
      std::ranges::upper_bound(measured, time, {}, [](const Measured& one) { return one.at + one.ahead; });
  if (after == measured.begin()) return time - after->ahead;
  const Measured& before = *std::prev(after);
  if (after == measured.end()) return time - before.ahead;
  const auto part =
      static_cast<double>(time - before.ahead - before.at) / static_cast<double>(after->at - before.at);
  return time - before.ahead -
         static_cast<std::int64_t>(std::clamp(part, 0.0, 1.0) *
                                   static_cast<double>(after->ahead - before.ahead));
}

Json Clocks::About() const {
  Json about = Json::array();
  for (const auto& [host, measured] : hosts_) {
    std::int64_t uncertainty = 0;
    for (const Measured& one : measured) uncertainty = std::max(uncertainty, one.uncertainty);
    about.push_back({{"host", host},
                     {"ahead_of_root_us", static_cast<double>(measured.back().ahead) / 1000},
                     {"uncertainty_us", static_cast<double>(uncertainty) / 1000},
                     {"measurements", measured.size()}});
  }
  return about;
}

}  // namespace dtrun::trace
