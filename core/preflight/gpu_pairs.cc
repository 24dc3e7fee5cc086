#include "core/preflight/gpu_pairs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "core/plan/plan.h"
#include "core/preflight/preflight.h"

namespace dtrun::preflight {
namespace {

constexpr char kProven[] = "proven";

std::string Find(const Facts& facts, const std::string& name) {
  return FactOf(facts, plan::kPeerFact + name);
}

GpuPair PairOf(const Facts& facts, int from, int to) {
  const std::string said = Find(facts, fmt::format("{}>{}", from, to));
  if (said.empty()) return {from, to, "not tried", "the test ended before it"};
  const std::size_t colon = said.find(": ");
  return {from, to, said.substr(0, colon), colon == said.npos ? "" : said.substr(colon + 2)};
}

}  // namespace

GpuPairs ReadGpuPairs(const Facts& facts) {
  GpuPairs gpus;
  for (std::string bus; !(bus = Find(facts, std::to_string(gpus.devices.size()))).empty();)
    gpus.devices.push_back(bus);
  const int count = static_cast<int>(gpus.devices.size());
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to) {
      if (to != from) gpus.pairs.push_back(PairOf(facts, from, to));
    }
  }
  return gpus;
}

bool AllProven(const GpuPairs& gpus) {
  return std::ranges::all_of(gpus.pairs, [](const GpuPair& pair) { return pair.verdict == kProven; });
}

std::string Table(const GpuPairs& gpus) {
  std::string out = "reads    ";
  const auto append = std::back_inserter(out);
  for (std::size_t from = 0; from < gpus.devices.size(); ++from)
    fmt::format_to(append, "{:<10}", fmt::format("GPU {}", from));
  for (std::size_t to = 0; to < gpus.devices.size(); ++to) {
    fmt::format_to(append, "\n{:<9}", fmt::format("GPU {}", to));
    for (std::size_t from = 0; from < gpus.devices.size(); ++from) {
      const auto pair = std::ranges::find_if(gpus.pairs, [&](const GpuPair& one) {
        return one.from == static_cast<int>(from) && one.to == static_cast<int>(to);
      });
      fmt::format_to(append, "{:<10}", pair == gpus.pairs.end() ? "." : pair->verdict);
    }
  }
  std::map<std::string, std::vector<std::string>> pairs_of;  // by reason
  for (const GpuPair& pair : gpus.pairs) {
    if (pair.verdict != kProven)
      pairs_of[pair.verdict + ", " + pair.reason].push_back(
          fmt::format("GPU {} of GPU {}", pair.to, pair.from));
  }
  for (const auto& [reason, pairs] : pairs_of)
    fmt::format_to(append, "\n{}: {}", fmt::join(pairs, ", "), reason);
  // Remove trailing blanks.
  for (std::size_t at = out.find(" \n"); at != out.npos; at = out.find(" \n")) out.erase(at, 1);
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

}  // namespace dtrun::preflight
