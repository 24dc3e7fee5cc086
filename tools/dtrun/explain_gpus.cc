#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <map>

#include "core/base/json.h"
#include "core/base/text.h"
#include "tools/dtrun/explain_run.h"

namespace dtrun::cli {
namespace {

constexpr char kIndent[] = "             ";

// Lines below a heading.
std::string Paragraph(const std::string& text) { return kIndent + Indented(text, kIndent) + "\n"; }

// Key for grouping hosts with the same text. Rates differ between hosts and are ignored.
std::string Shape(const GpuHost& host) {
  std::string shape = std::to_string(host.gpus.devices.size());
  for (const preflight::GpuPair& pair : host.gpus.pairs) {
    const std::string reason = pair.verdict == "proven" ? "" : pair.reason;
    shape += fmt::format("; {}>{} {} {}", pair.from, pair.to, pair.verdict, reason);
  }
  return shape;
}

// "0000:01:00.0, rank 4" for a device of one host.
std::string DeviceText(const GpuHost& host, std::size_t device) {
  const std::string rank = host.ranks.empty() ? "" : fmt::format(", rank {}", host.ranks[device]);
  return fmt::format("GPU {} is {}{}", device, host.gpus.devices[device], rank);
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
    Json said = one.value("facts", Json::object());
    said.update(one.value("device_facts", Json::object()));
    std::vector<std::pair<std::string, std::string>> facts;
    for (const auto& [key, value] : said.items()) {
      if (value.is_string()) facts.emplace_back(key, value.get<std::string>());
    }
    GpuHost host{one.value("name", ""), preflight::ReadGpuPairs(facts), {}};
    const int count = static_cast<int>(host.gpus.devices.size());
    if (count < 2) continue;
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
    if (AllProven(first.gpus)) {
      const std::string rate =
          group.size() == 1 && first.gpus.pairs.size() == 2
              ? fmt::format(" ({}, {})", first.gpus.pairs[0].reason, first.gpus.pairs[1].reason)
              : "";
      fmt::format_to(append, "each of {} GPUs reads every other, tested by a copy{}\n",
                     first.gpus.devices.size(), rate);
      continue;
    }
    std::vector<std::string> devices;
    for (std::size_t i = 0; i < first.gpus.devices.size(); ++i) devices.push_back(DeviceText(first, i));
    out += group.size() == 1 ? fmt::format("{}\n", fmt::join(devices, "; ")) : "the same on each\n";
    out += Paragraph(Table(first.gpus));
  }
  if (hosts.size() > 1) out += kIndent + std::string("GPUs of different hosts use the network; not tested\n");
  return out;
}

Json ToJson(const std::vector<GpuHost>& hosts) {
  Json out = Json::array();
  for (const GpuHost& host : hosts) {
    Json pairs = Json::array();
    for (const preflight::GpuPair& pair : host.gpus.pairs) {
      pairs.push_back(
          {{"from", pair.from}, {"to", pair.to}, {"verdict", pair.verdict}, {"reason", pair.reason}});
    }
    out.push_back(
        {{"host", host.name}, {"devices", host.gpus.devices}, {"ranks", host.ranks}, {"pairs", pairs}});
  }
  return out;
}

}  // namespace dtrun::cli
