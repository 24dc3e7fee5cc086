#include "core/network/weakness.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

namespace dtrun::network {
namespace {

constexpr double kSlowBitsPerS = 50e6;
constexpr double kFarSlower = 6;  // for example a card at 1 Gbit/s among those of 10
// Above this rate, so short a bandwidth probe depends as much on the CPU as on the network.
constexpr double kFastBitsPerS = 2e9;
constexpr std::size_t kMostLinksNamed = 4;

using Links = std::vector<const MeasuredLink*>;

// For exactly two links: the host that one leads to and the other leaves from; otherwise nullopt.
std::optional<int> CommonHost(const Links& links) {
  if (links.size() != 2) return std::nullopt;
  if (links[0]->to == links[1]->from && links[0]->from != links[1]->to) return links[0]->to;
  if (links[1]->to == links[0]->from && links[1]->from != links[0]->to) return links[1]->to;
  return std::nullopt;
}

// "9.8 % from eth1 of node0 to eth1 of node1, ..."
std::string ListOf(const Links& links, const Evidence& evidence, const Assignment& measured,
                   const std::function<std::string(const Throughput&)>& text) {
  std::string out;
  for (std::size_t i = 0; i < links.size() && i < kMostLinksNamed; ++i) {
    const MeasuredLink& link = *links[i];
    out += fmt::format("{}{} from {} of {} to {} of {}", i == 0 ? "" : ", ", text(link.seen),
                       evidence.CandidateOf(link.from, measured).interface, evidence.NameOf(link.from),
                       evidence.CandidateOf(link.to, measured).interface, evidence.NameOf(link.to));
  }
  if (links.size() > kMostLinksNamed) out += fmt::format(" and {} more", links.size() - kMostLinksNamed);
  return out;
}

std::optional<Weakness> Loss(const Evidence& evidence, const Assignment& measured) {
  Links lossy;
  for (const MeasuredLink& link : measured.links) {
    if (link.seen.loss > 0) lossy.push_back(&link);
  }
  if (lossy.empty()) return std::nullopt;
  return Weakness{"packets get lost: " + ListOf(lossy, evidence, measured,
                                                [](const Throughput& seen) { return LossText(seen.loss); }),
                  "look at the cables, ports and switches between them (ethtool -S, ip -s link): every lost "
                  "packet makes all ranks wait"};
}

std::optional<Weakness> Slowness(const Evidence& evidence, const Assignment& measured) {
  const Links slow = SlowLinks(measured);
  if (slow.empty()) return std::nullopt;
  const std::string rates = ListOf(slow, evidence, measured, [](const Throughput& seen) {
    return seen.bits_per_s > 0 ? RateText(seen.bits_per_s) : "nothing";
  });
  const std::string fix =
      "look at its card and port (ethtool, ip -s link): a collective is as slow as its slowest host";
  if (const auto host = CommonHost(slow)) {
    double rate = 0;
    for (const MeasuredLink* link : slow) rate = std::max(rate, link->seen.bits_per_s);
    return Weakness{fmt::format("{} is the slow host: {} by its {}", evidence.NameOf(*host), RateText(rate),
                                evidence.CandidateOf(*host, measured).interface),
                    fix};
  }
  return Weakness{
      slow.size() == measured.links.size() ? "the network is slow: " + rates : "slow links: " + rates, fix};
}

// Libraries bind to an address and leave the choice of interface to the kernel.
std::optional<Weakness> Detoured(const Evidence& evidence, const Assignment& measured) {
  const auto detours = evidence.DetoursOf(measured);
  if (detours.empty()) return std::nullopt;
  const auto& first = detours.front();
  const Candidate& from = evidence.CandidateOf(first.host, measured);
  const std::string more =
      detours.size() > 1 ? fmt::format(" (and {} more connections)", detours.size() - 1) : "";
  return Weakness{
      fmt::format("packets from {} of {} to {} leave by {}{}", from.Text(), evidence.NameOf(first.host),
                  evidence.NameOf(first.peer), first.leaves_by, more),
      fmt::format("give {0} a network that overlaps no other, or a routing rule (ip rule add from {1} table "
                  "100, and a route by {0} in that table), or choose {2} in network.interface",
                  from.interface, from.address.ip.to_string(), first.leaves_by)};
}

}  // namespace

std::vector<const MeasuredLink*> SlowLinks(const Assignment& measured) {
  std::vector<double> rates;
  for (const MeasuredLink& link : measured.links) rates.push_back(link.seen.bits_per_s);
  std::ranges::sort(rates, std::greater<>());
  Links slow;
  for (const MeasuredLink& link : measured.links) {
    // One slow host among three makes two of three links slow.
    const double usual = rates[rates.size() / 4];
    if (link.seen.bits_per_s < std::clamp(usual / kFarSlower, kSlowBitsPerS, kFastBitsPerS))
      slow.push_back(&link);
  }
  return slow;
}

std::vector<Weakness> WeaknessesOf(const Decision& decision, const Assignment& measured) {
  const Evidence& evidence = decision.evidence;
  std::vector<Weakness> out;
  for (auto& one : {Loss(evidence, measured), Slowness(evidence, measured), Detoured(evidence, measured)}) {
    if (one) out.push_back(*one);
  }
  return out;
}

}  // namespace dtrun::network
