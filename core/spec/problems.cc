#include "core/spec/problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "core/base/text.h"

namespace dtrun::spec {
void Problems::Add(Place place, const std::string& message, const std::string& hint) {
  // Keys and values come from the user and may contain line feeds and terminal sequences.
  Problem problem{Printable(place.text), Printable(message), Printable(hint)};
  entries_.push_back({std::move(place), std::move(problem)});
}

void Problems::AddLines(Place place, std::string_view message) {
  Problem problem{Printable(place.text), {}, {}};
  for (const std::string_view line : Split(message, '\n')) {
    problem.message += (line.data() == message.data() ? "" : "\n") + Printable(line);
  }
  entries_.push_back({std::move(place), std::move(problem)});
}

void Problems::Append(Problems more) {
  for (Entry& entry : more.entries_) entries_.push_back(std::move(entry));
}

std::vector<Problem> Problems::Take() && {
  const auto key = [](const Entry& entry) {
    const Place& place = entry.place;
    return std::tie(place.origin, place.at.line, place.at.column, place.text);
  };
  std::stable_sort(entries_.begin(), entries_.end(),
                   [&](const Entry& a, const Entry& b) { return key(a) < key(b); });
  std::vector<Problem> problems;
  std::set<std::pair<std::string, std::string>> known;
  for (Entry& entry : entries_) {
    const Problem& one = entry.problem;  // two plugins may have the same problem
    if (known.emplace(one.place, one.message).second) problems.push_back(std::move(entry.problem));
  }
  return problems;
}

std::string Render(const std::vector<Problem>& problems) {
  constexpr std::size_t kMost = 20;
  const std::size_t shown = std::min(problems.size(), kMost);
  std::string out;
  for (const Problem& problem : std::span(problems).first(shown)) {
    out += "dtrun: " + problem.place + (problem.place.empty() ? "" : ": ") + problem.message;
    if (!problem.hint.empty()) out += (problem.message.ends_with('?') ? " " : "; ") + problem.hint;
    out += "\n";
  }
  if (shown < problems.size())
    out += fmt::format("dtrun: ... and {} more; correct these first\n", problems.size() - shown);
  return out;
}

}  // namespace dtrun::spec
