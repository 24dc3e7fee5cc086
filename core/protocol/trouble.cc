#include <fmt/format.h>

#include <algorithm>

#include "core/protocol/dialer.h"

namespace dtrun::protocol {
namespace {

constexpr std::size_t kMostNamed = 4;  // addresses named per reason
constexpr std::size_t kMostTold = 64;  // lines in total

}  // namespace

void Trouble::Keep(std::vector<std::pair<std::string, std::string>>* where, const std::string& what,
                   const std::string& why) {
  const auto known = std::ranges::find_if(*where, [&](const auto& entry) { return entry.first == what; });
  if (known == where->end()) {
    where->emplace_back(what, why);
  } else {
    known->second = why;
  }
}

void Trouble::Note(const std::string& address, const std::string& why) { Keep(&addresses_, address, why); }
void Trouble::NoteName(const std::string& name, const std::string& sentence) {
  Keep(&names_, name, sentence);
}

std::string Trouble::Line() const {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_reason;
  for (const auto& [address, why] : addresses_) {
    auto group = std::ranges::find(by_reason, why, &decltype(by_reason)::value_type::first);
    if (group == by_reason.end()) group = by_reason.insert(by_reason.end(), {why, {}});
    group->second.push_back(address);
  }
  std::string line;
  for (const auto& [why, addresses] : by_reason) {
    line += line.empty() ? "cannot reach " : "; ";
    for (std::size_t i = 0; i < addresses.size() && i < kMostNamed; ++i) {
      line += (i == 0 ? "" : ", ") + addresses[i];
    }
    if (addresses.size() > kMostNamed) line += fmt::format(" and {} more", addresses.size() - kMostNamed);
    line += ": " + why;
  }
  for (const auto& entry : names_) line += (line.empty() ? "" : "; ") + entry.second;
  return line;
}

bool Trouble::TakeNews() {
  std::string line = Line();
  if (line.empty() || told_.size() >= kMostTold || !told_.insert(line).second) return false;
  latest_ = std::move(line);
  return true;
}

}  // namespace dtrun::protocol
