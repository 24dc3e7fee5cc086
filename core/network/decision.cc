#include "core/network/decision.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/base/json.h"

namespace dtrun::network {
namespace {

constexpr std::size_t kMostHostsNamed = 4;

std::string TimeText(std::chrono::nanoseconds time) {
  const double us = static_cast<double>(time.count()) / 1e3;
  return us < 1000 ? fmt::format("{:.0f} us", us) : fmt::format("{:.1f} ms", us / 1e3);
}

// "9.4 Gbit/s, 45 us round trip, 9.8 % of packets lost"
std::string MeasuredText(const Assignment& one) {
  const std::string text =
      fmt::format("{}, {} round trip", RateText(one.bits_per_s), TimeText(one.round_trip));
  return one.loss > 0 ? text + fmt::format(", {} of packets lost", LossText(one.loss)) : text;
}

// Results of one candidate's attempts, and its bandwidth if measured.
struct Row {
  std::string verdict, reason;
};

Row Judge(const Decision& decision, std::size_t host, int candidate) {
  const Evidence& evidence = decision.evidence;
  std::set<std::string> detours;
  std::string measured;
  for (const Assignment& one : decision.measured) {
    if (one.candidates[host] != candidate) continue;
    measured = one.bits_per_s > 0 ? MeasuredText(one) : "the bandwidth probe did not pass";
  }
  std::map<int, std::string> failed;  // by peer
  std::map<int, bool> reached;
  for (const Attempt& attempt : evidence.AttemptsOf(static_cast<int>(host))) {
    if (attempt.from != candidate) continue;
    if (attempt.connected()) {
      reached[attempt.peer] = true;
      if (!attempt.leaves_by.empty()) detours.insert(attempt.leaves_by);
    } else {
      failed.emplace(attempt.peer, attempt.why);
    }
  }
  for (const auto& [peer, yes] : reached) failed.erase(peer);
  if (!detours.empty())
    measured += fmt::format("{}packets leave by {}", measured.empty() ? "" : ", ", fmt::join(detours, ", "));
  if (decision.chosen.candidates[host] == candidate) return {"chosen", measured};
  if (!measured.empty()) return {"connected", measured};
  if (failed.empty()) {
    return reached.empty()
               ? Row{"not tried", "other hosts have no address that it could reach, or the same one"}
               : Row{"connected", "not part of a choice for all hosts"};
  }
  std::string reason;
  std::size_t named = 0;
  for (const auto& [peer, why] : failed) {
    if (++named > kMostHostsNamed) break;
    reason += fmt::format("{}{}: {}", reason.empty() ? "" : "; ", evidence.NameOf(peer), why);
  }
  if (named > kMostHostsNamed) reason += "; …";
  return {"not connected", reason};
}

}  // namespace

std::string RateText(double bits_per_s) {
  if (bits_per_s >= 1e9) return fmt::format("{:.1f} Gbit/s", bits_per_s / 1e9);
  return fmt::format("{:.{}f} Mbit/s", bits_per_s / 1e6, bits_per_s < 10e6 ? 1 : 0);
}

std::string LossText(double loss) { return fmt::format("{:.1f} %", 100 * loss); }

const Candidate& Decision::CandidateOf(std::size_t host) const {
  return evidence.CandidateOf(static_cast<int>(host), chosen);
}

std::vector<Network> NetworksOf(const Decision& decision) {
  std::vector<Network> out;
  for (std::size_t host = 0; host < decision.evidence.hosts().size(); ++host) {
    const Candidate& one = decision.CandidateOf(host);
    out.push_back({one.interface, one.address.ip.to_string(), one.address.prefix, one.rdma, one.first_address,
                   decision.asked_for[host], decision.evidence.hosts()[host].offer.has_rdma});
  }
  return out;
}

std::string Summary(const Decision& decision) {
  const auto& hosts = decision.evidence.hosts();
  std::string names;
  bool same = true;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    const Candidate& one = decision.CandidateOf(host);
    same = same && one.interface == decision.CandidateOf(0).interface;
    if (host < kMostHostsNamed) {
      names += fmt::format("{}{} on {}", names.empty() ? "" : ", ", one.interface, hosts[host].name);
    }
  }
  if (hosts.size() > kMostHostsNamed) names += ", …";
  if (same) names = fmt::format("{} on all {} hosts", decision.CandidateOf(0).interface, hosts.size());
  const auto& chosen = decision.chosen;
  std::string speed = chosen.bits_per_s > 0 ? MeasuredText(chosen) : "not measured";
  if (const auto detours = decision.evidence.DetoursOf(chosen); !detours.empty())
    speed = fmt::format("packets leave by {}, {}", detours.front().leaves_by, speed);
  return fmt::format("{} ({}), {}; tested in {}", names, decision.CandidateOf(0).address.ip.to_string(),
                     speed, TimeText(decision.effort.total()));
}

std::string OthersText(const Decision& decision) {
  constexpr std::size_t kMost = 6;
  const Offer& offer = decision.evidence.hosts()[0].offer;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < offer.candidates.size(); ++i) {
    const Row row = Judge(decision, 0, static_cast<int>(i));
    if (decision.chosen.candidates[0] == static_cast<int>(i)) continue;
    texts.push_back(fmt::format("{}: {}, {}", offer.candidates[i].Text(), row.verdict, row.reason));
  }
  for (const LeftOut& one : offer.left_out) {
    if (one.kind != Kind::kLoopback) texts.push_back(fmt::format("{} {}", one.interface, one.why));
  }
  std::string text;
  for (std::size_t i = 0; i < texts.size() && i < kMost; ++i) text += (i == 0 ? "" : "; ") + texts[i];
  return text + (texts.size() > kMost ? "; …" : "");
}

std::string Table(const Decision& decision) {
  using Cells = std::array<std::string, 6>;
  std::vector<Cells> rows{{"host", "interface", "kind", "address", "verdict", "reason"}};
  const auto& hosts = decision.evidence.hosts();
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    const Offer& offer = hosts[host].offer;
    for (std::size_t i = 0; i < offer.candidates.size(); ++i) {
      const Candidate& one = offer.candidates[i];
      Row row = Judge(decision, host, static_cast<int>(i));
      rows.push_back(
          {hosts[host].name, one.interface, KindText(one.kind), one.address.Text(), row.verdict, row.reason});
    }
    for (const LeftOut& one : offer.left_out) {
      rows.push_back({hosts[host].name, one.interface, KindText(one.kind),
                      one.address.empty() ? "-" : one.address, "left out", one.why});
    }
  }
  std::array<std::size_t, 6> widths{};
  for (const Cells& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Cells& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) text += fmt::format("{:<{}}  ", row[i], widths[i]);
    text += row.back() + "\n";
  }
  return text;
}

std::string ToJson(const Decision& decision) {
  Json out;
  const auto ms = [](std::chrono::nanoseconds time) {
    return std::chrono::duration<double, std::milli>(time).count();
  };
  const Effort& effort = decision.effort;
  out["time_ms"] = {{"survey", ms(effort.survey)},
                    {"connectivity", ms(effort.connectivity)},
                    {"proof", ms(effort.connectivity)},  // its old name, until the next minor version
                    {"measurement", ms(effort.measurement)},
                    {"total", ms(effort.total())}};
  out["held_to_the_interface"] = decision.by_device;
  out["hosts"] = Json::array();
  const auto& hosts = decision.evidence.hosts();
  const auto address = [&](std::size_t host, int candidate) {
    return decision.evidence.CandidateOf(static_cast<int>(host), candidate).address.ip.to_string();
  };
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    const Offer& offer = hosts[host].offer;
    const Candidate& chosen = decision.CandidateOf(host);
    Json entry{{"name", hosts[host].name},
               {"interface", chosen.interface},
               {"address", chosen.address.ip.to_string()},
               {"candidates", Json::array()},
               {"left_out", Json::array()},
               {"tries", Json::array()}};
    for (std::size_t i = 0; i < offer.candidates.size(); ++i) {
      const Candidate& one = offer.candidates[i];
      const Row row = Judge(decision, host, static_cast<int>(i));
      entry["candidates"].push_back({{"interface", one.interface},
                                     {"kind", KindText(one.kind)},
                                     {"address", one.address.Text()},
                                     {"mtu", one.mtu},
                                     {"speed_mbps", one.speed_mbps},
                                     {"rdma", one.rdma},
                                     {"default_route", one.default_route},
                                     {"verdict", row.verdict},
                                     {"reason", row.reason}});
    }
    for (const LeftOut& one : offer.left_out) {
      entry["left_out"].push_back({{"interface", one.interface},
                                   {"kind", KindText(one.kind)},
                                   {"address", one.address},
                                   {"reason", one.why}});
    }
    for (const Attempt& attempt : decision.evidence.AttemptsOf(static_cast<int>(host))) {
      const auto peer = static_cast<std::size_t>(attempt.peer);
      entry["tries"].push_back({{"from", address(host, attempt.from)},
                                {"host", hosts[peer].name},
                                {"to", address(peer, attempt.to)},
                                {"result", attempt.connected() ? "connected" : attempt.why},
                                {"leaves_by", attempt.leaves_by},
                                {"round_trip_us", static_cast<double>(attempt.round_trip.count()) / 1e3}});
    }
    out["hosts"].push_back(std::move(entry));
  }
  out["measured"] = Json::array();
  for (const Assignment& one : decision.measured) {
    Json entry{{"addresses", Json::array()},
               {"bits_per_s", one.bits_per_s},
               {"round_trip_us", static_cast<double>(one.round_trip.count()) / 1e3},
               {"loss", one.loss},
               {"links", Json::array()},
               {"chosen", one.candidates == decision.chosen.candidates}};
    for (std::size_t host = 0; host < hosts.size(); ++host) {
      entry["addresses"].push_back(address(host, one.candidates[host]));
    }
    for (const MeasuredLink& link : one.links) {
      entry["links"].push_back({{"from", decision.evidence.NameOf(link.from)},
                                {"to", decision.evidence.NameOf(link.to)},
                                {"bits_per_s", link.seen.bits_per_s},
                                {"loss", link.seen.loss}});
    }
    out["measured"].push_back(std::move(entry));
  }
  return JsonDocument(1, out);
}

}  // namespace dtrun::network
