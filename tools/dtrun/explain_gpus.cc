#include "tools/dtrun/explain_gpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "core/plan/plan.h"

namespace dtrun::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kProven[] = "proven";
constexpr char kIndent[] = "             ";

std::string Text(const Json& json, const std::string& key) {
  return json.contains(key) && json.at(key).is_string() ? json.at(key).get<std::string>() : "";
}

GpuPair PairOf(const Json& facts, int from, int to) {
  const std::string said = Text(facts, fmt::format("{}{}>{}", plan::kPeerFact, from, to));
  if (said.empty()) return {from, to, "not tried", "the trial ended before"};
  const std::size_t colon = said.find(": ");
  return {from, to, said.substr(0, colon), colon == said.npos ? "" : said.substr(colon + 2)};
}

bool AllProven(const GpuHost& host) {
  return std::ranges::all_of(host.pairs, [](const GpuPair& pair) { return pair.verdict == kProven; });
}

// Hosts of equal text are said together. Rates differ from host to host and say nothing there.
std::string Shape(const GpuHost& host) {
  std::string shape = std::to_string(host.devices.size());
  for (const GpuPair& pair : host.pairs) {
    const std::string reason = pair.verdict == kProven ? "" : pair.reason;
    shape += fmt::format("; {}>{} {} {}", pair.from, pair.to, pair.verdict, reason);
  }
  return shape;
}

// "0000:01:00.0, rank 4" of the device of one host.
std::string DeviceText(const GpuHost& host, std::size_t device) {
  const std::string rank = host.ranks.empty() ? "" : fmt::format(", rank {}", host.ranks[device]);
  return fmt::format("GPU {} is {}{}", device, host.devices[device], rank);
}

// Readers in rows, whose memory in columns.
std::string Table(const GpuHost& host) {
  std::string out = kIndent + std::string("reads    ");
  const auto append = std::back_inserter(out);
  for (std::size_t from = 0; from < host.devices.size(); ++from)
    fmt::format_to(append, "{:<10}", fmt::format("GPU {}", from));
  for (std::size_t to = 0; to < host.devices.size(); ++to) {
    fmt::format_to(append, "\n{}{:<9}", kIndent, fmt::format("GPU {}", to));
    for (std::size_t from = 0; from < host.devices.size(); ++from) {
      const auto pair = std::ranges::find_if(host.pairs, [&](const GpuPair& one) {
        return one.from == static_cast<int>(from) && one.to == static_cast<int>(to);
      });
      fmt::format_to(append, "{:<10}", pair == host.pairs.end() ? "." : pair->verdict);
    }
  }
  std::map<std::string, std::vector<std::string>> pairs_of;  // by reason
  for (const GpuPair& pair : host.pairs) {
    if (pair.verdict != kProven)
      pairs_of[pair.verdict + ", " + pair.reason].push_back(
          fmt::format("GPU {} of GPU {}", pair.to, pair.from));
  }
  for (const auto& [reason, pairs] : pairs_of)
    fmt::format_to(append, "\n{}{}: {}", kIndent, fmt::join(pairs, ", "), reason);
  // No blanks at line ends.
  for (std::size_t at = out.find(" \n"); at != out.npos; at = out.find(" \n")) out.erase(at, 1);
  while (out.ends_with(' ')) out.pop_back();
  return out + "\n";
}

std::string NamesText(const std::vector<const GpuHost*>& hosts) {
  std::vector<std::string> names;
  for (const GpuHost* host : hosts) names.push_back(host->name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::vector<GpuHost> ReadGpus(const Json& plan) {
  std::vector<GpuHost> hosts;
  for (const Json& one : plan.value("hosts", Json::array())) {
    const Json facts = one.value("facts", Json::object());
    GpuHost host{Text(one, "name"), {}, {}, {}};
    for (;;) {
      const std::string bus = Text(facts, fmt::format("{}{}", plan::kPeerFact, host.devices.size()));
      if (bus.empty()) break;
      host.devices.push_back(bus);
    }
    const int count = static_cast<int>(host.devices.size());
    if (count < 2) continue;
    for (int from = 0; from < count; ++from) {
      for (int to = 0; to < count; ++to) {
        if (to != from) host.pairs.push_back(PairOf(facts, from, to));
      }
    }
    if (one.value("local_size", 0) == count) {
      for (int i = 0; i < count; ++i) host.ranks.push_back(one.value("first_rank", 0) + i);
    }
    hosts.push_back(std::move(host));
  }
  return hosts;
}

std::string ToText(const std::vector<GpuHost>& hosts) {
  std::map<std::string, std::vector<const GpuHost*>> alike;  // by shape
  std::vector<std::string> order;
  for (const GpuHost& host : hosts) {
    auto& group = alike[Shape(host)];
    if (group.empty()) order.push_back(Shape(host));
    group.push_back(&host);
  }
  std::string out;
  const auto append = std::back_inserter(out);
  for (const std::string& shape : order) {
    const std::vector<const GpuHost*>& group = alike.at(shape);
    const GpuHost& first = *group.front();
    fmt::format_to(append, "  {:<10} {}: ", "gpu peers", NamesText(group));
    if (AllProven(first)) {
      const std::string rate = group.size() == 1 && first.pairs.size() == 2
                                   ? fmt::format(" ({}, {})", first.pairs[0].reason, first.pairs[1].reason)
                                   : "";
      fmt::format_to(append, "each of {} GPUs reads every other, proven by a copy{}\n", first.devices.size(),
                     rate);
      continue;
    }
    std::vector<std::string> devices;
    for (std::size_t i = 0; i < first.devices.size(); ++i) devices.push_back(DeviceText(first, i));
    out += group.size() == 1 ? fmt::format("{}\n", fmt::join(devices, "; ")) : "alike\n";
    out += Table(first);
  }
  if (hosts.size() > 1)
    out += kIndent + std::string("GPUs of different hosts meet over the network; not asked\n");
  return out;
}

Json ToJson(const std::vector<GpuHost>& hosts) {
  Json out = Json::array();
  for (const GpuHost& host : hosts) {
    Json pairs = Json::array();
    for (const GpuPair& pair : host.pairs) {
      pairs.push_back(
          {{"from", pair.from}, {"to", pair.to}, {"verdict", pair.verdict}, {"reason", pair.reason}});
    }
    out.push_back({{"host", host.name}, {"devices", host.devices}, {"ranks", host.ranks}, {"pairs", pairs}});
  }
  return out;
}

}  // namespace dtrun::cli
