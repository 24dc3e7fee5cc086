#include "core/config/problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace dtrun::config {
namespace {

// Keys and values come from the user and may hold line ends and terminal sequences.
std::string OneLine(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

void Problems::Add(Place place, const std::string& message, const std::string& hint) {
  Problem problem{OneLine(place.text), OneLine(message), OneLine(hint)};
  entries_.push_back({std::move(place), std::move(problem)});
}

std::vector<Problem> Problems::Take() && {
  const auto key = [](const Entry& entry) {
    const Place& place = entry.place;
    return std::tie(place.origin, place.at.line, place.at.column, place.text);
  };
  std::stable_sort(entries_.begin(), entries_.end(),
                   [&](const Entry& a, const Entry& b) { return key(a) < key(b); });
  std::vector<Problem> problems;
  for (Entry& entry : entries_) problems.push_back(std::move(entry.problem));
  return problems;
}

std::string Render(const std::vector<Problem>& problems) {
  std::string out;
  for (const Problem& problem : problems) {
    if (!problem.place.empty()) out += problem.place + ": ";
    out += problem.message + "\n";
    if (!problem.hint.empty()) out += "  " + problem.hint + "\n";
  }
  return out;
}

}  // namespace dtrun::config
