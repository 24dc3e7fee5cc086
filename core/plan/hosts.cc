#include "core/plan/hosts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <set>
#include <utility>

#include "core/binding/machine.h"

namespace dtrun::plan {
namespace {

constexpr char kHosts[] = "cluster.hosts";
constexpr char kPerHost[] = "job.processes_per_host";
constexpr char kCount[] = "cluster.host_count";

Error At(const config::Settings& settings, const char* key, const std::string& text) {
  const std::string& place = settings.Get(key).origin.place;
  return Error{DTRUN_INVALID_ARGUMENT,
               fmt::format("{}{}{}: {}", place, place.empty() ? "" : ": ", key, text)};
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
  HostOffer offer = OfferOf({std::move(*topology), binding::VisibleGpus(gpus, variable), gpus.vendor});
  offer.name = HostName();
  return offer;
}

bool HasCluster(const config::Settings& settings) {
  return settings.Has(kHosts) || (settings.Has(kCount) && settings.Text("cluster.connect") == "manual");
}

Result<std::vector<cluster::HostSlots>> ListedHosts(const config::Settings& settings) {
  if (!HasCluster(settings)) return std::vector<cluster::HostSlots>{{HostName(), {}}};
  if (!settings.Has(kHosts)) {
    return std::vector<cluster::HostSlots>(static_cast<std::size_t>(settings.Int(kCount)));
  }
  auto hosts = cluster::ParseHosts(settings.List(kHosts));
  if (!hosts) return At(settings, kHosts, hosts.error().text);
  return hosts;
}

Result<std::vector<Host>> PlaceRanks(const config::Settings& settings, const Hardware& here,
                                     const std::vector<HostOffer>& offers) {
  const auto listed = ListedHosts(settings);
  if (!listed) return listed.error();
  const bool counted = settings.Get(kPerHost).origin.kind != DTRUN_ORIGIN_DEFAULT;
  std::vector<Host> hosts;
  std::set<std::string> seen;
  int next = 0;
  const bool reported = !offers.empty();
  const std::size_t count = reported ? offers.size() : listed->size();
  for (std::size_t i = 0; i < count; ++i) {
    const HostOffer offer = reported ? offers[i] : OfferOf(here);
    const auto& [given_name, slots] = (*listed)[reported ? static_cast<std::size_t>(offer.number) : i];
    std::string name = given_name;
    if (name.empty()) {
      name = offer.name.empty() ? fmt::format("host{}", i) : offer.name;
      if (!seen.insert(name).second) name += fmt::format("#{}", i);  // containers may all have one name
    }
    int ranks = slots.value_or(0);
    if (!slots || counted) {
      Result<int> asked = reported ? CountOn(settings, offer, name) : ProcessesPerHost(settings, here);
      if (!asked) return asked.error();
      ranks = *asked;
    }
    if (slots && ranks > *slots && !settings.Bool("cluster.oversubscribe")) {
      return At(settings, kPerHost,
                fmt::format("{} ranks on host {}, which has {} slot{} by {}; ask for fewer, or set "
                            "cluster.oversubscribe = true",
                            ranks, name, *slots, *slots == 1 ? "" : "s", settings.Get(kHosts).origin.place));
    }
    hosts.push_back({std::move(name), next, ranks, offer.cores});
    if (count > 1) hosts.back().address = i == 0 ? kTokenAddress : HostAddressToken(i);
    next += ranks;
  }
  return hosts;
}

}  // namespace dtrun::plan
