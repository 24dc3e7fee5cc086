#include "core/plan/hosts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <set>
#include <utility>

#include "core/binding/machine.h"

namespace dtrun::plan {
namespace {

constexpr char kHosts[] = "cluster.hosts";
constexpr char kPerHost[] = "job.processes_per_host";
constexpr int kMostSlots = 4096;

struct Listed {
  std::string name;
  int slots = 0;  // 0: not said
};

Error At(const config::Settings& settings, const char* key, const std::string& text) {
  const std::string& place = settings.Get(key).origin.place;
  return Error{DTRUN_INVALID_ARGUMENT,
               fmt::format("{}{}{}: {}", place, place.empty() ? "" : ": ", key, text)};
}

// "node0", "node1:4", "[fe80::1]:4", "fe80::1".
Result<Listed> ParseHost(const config::Settings& settings, const std::string& text) {
  Listed out{text, 0};
  std::size_t colon = text.rfind(':');
  const bool bracketed = text.starts_with('[');
  if (bracketed) {
    const auto end = text.find(']');
    if (end == std::string::npos) return At(settings, kHosts, fmt::format("'{}' has no closing ']'", text));
    out.name = text.substr(1, end - 1);
    if (colon < end) colon = std::string::npos;
  } else if (colon != std::string::npos && text.find(':') != colon) {
    colon = std::string::npos;  // an IPv6 address
  } else {
    out.name = text.substr(0, colon);
  }
  if (out.name.empty()) return At(settings, kHosts, fmt::format("'{}' names no host", text));
  if (out.name.starts_with('-')) {
    return At(settings, kHosts, fmt::format("'{}' would be taken for an option of the remote shell", text));
  }
  if (colon == std::string::npos) return out;
  const char* const end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data() + colon + 1, end, out.slots);
  if (error == std::errc{} && next == end && out.slots >= 1 && out.slots <= kMostSlots) return out;
  return At(settings, kHosts,
            fmt::format("'{}': expected NAME or NAME:SLOTS with 1 to {} slots", text, kMostSlots));
}

Result<std::vector<Listed>> ReadList(const config::Settings& settings) {
  std::vector<Listed> hosts;
  std::set<std::string> seen;
  for (const std::string& text : settings.List(kHosts)) {
    Result<Listed> host = ParseHost(settings, text);
    if (!host) return host.error();
    if (!seen.insert(host->name).second) {
      return At(settings, kHosts,
                fmt::format("'{}' is listed twice; give it more slots instead: \"{}:{}\"", host->name,
                            host->name, std::max(2, 2 * host->slots)));
    }
    hosts.push_back(*std::move(host));
  }
  if (hosts.empty())
    return At(settings, kHosts, "the list is empty; leave it out to run on this machine alone");
  return hosts;
}

// job.processes_per_host on a host that offers this.
Result<int> CountOn(const config::Settings& settings, const HostOffer& offer, const std::string& host) {
  const option::Value& value = settings.Get(kPerHost);
  if (const auto* number = std::get_if<std::int64_t>(&value.data)) return static_cast<int>(*number);
  const std::string& word = settings.Text(kPerHost);
  if (word != "cpu" && offer.gpus > 0) return offer.gpus;
  if (word != "gpu") return offer.cores;
  return At(settings, kPerHost,
            fmt::format("\"gpu\", but host {} shows no /dev/nvidia<N>; write a number or \"cpu\"", host));
}

}  // namespace

HostOffer OfferOf(const Hardware& hardware) {
  return {static_cast<int>(hardware.topology.cores.size()), static_cast<int>(hardware.gpus.size())};
}

std::string HostName() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

Result<HostOffer> OfferHere() {
  auto topology = binding::ReadMachine();
  if (!topology) return topology.error();
  const binding::Gpus gpus = binding::ReadGpus("/");
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  return OfferOf({std::move(*topology), binding::VisibleGpus(gpus, variable), gpus.vendor});
}

Result<std::vector<Host>> PlaceRanks(const config::Settings& settings, const Hardware& here,
                                     const std::vector<HostOffer>& offers) {
  std::vector<Listed> listed{{HostName(), 0}};
  if (settings.Has(kHosts)) {
    Result<std::vector<Listed>> read = ReadList(settings);
    if (!read) return read.error();
    listed = *std::move(read);
  }
  const bool counted = settings.Get(kPerHost).origin.kind != DTRUN_ORIGIN_DEFAULT;
  std::vector<Host> hosts;
  int next = 0;
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const bool reported = i < offers.size();
    const HostOffer offer = reported ? offers[i] : OfferOf(here);
    int ranks = listed[i].slots;
    if (ranks == 0 || counted) {
      Result<int> count =
          reported ? CountOn(settings, offer, listed[i].name) : ProcessesPerHost(settings, here);
      if (!count) return count.error();
      ranks = *count;
    }
    if (listed[i].slots != 0 && ranks > listed[i].slots && !settings.Bool("cluster.oversubscribe")) {
      return At(
          settings, kPerHost,
          fmt::format("{} ranks on host {}, which has {} slot{} in cluster.hosts; ask for fewer, or set "
                      "cluster.oversubscribe = true",
                      ranks, listed[i].name, listed[i].slots, listed[i].slots == 1 ? "" : "s"));
    }
    hosts.push_back({listed[i].name, next, ranks, offer.cores});
    if (listed.size() > 1) hosts.back().address = i == 0 ? kTokenAddress : HostAddressToken(i);
    next += ranks;
  }
  return hosts;
}

}  // namespace dtrun::plan
