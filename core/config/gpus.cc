// The loader's part for the GPUs of each host. cluster.include and cluster.exclude become a shorter list of
// hosts with their slots, and cluster.gpus; behind the loader that table has hosts of the list alone, by
// the names that they have there.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/config/loader.h"
#include "core/hosts/selection.h"
#include "core/hosts/this_machine.h"
#include "core/options/text.h"

namespace dtrun::config {
namespace {

constexpr char kList[] = "cluster.hosts";
constexpr char kInclude[] = "cluster.include";
constexpr char kExclude[] = "cluster.exclude";
constexpr char kGpus[] = "cluster.gpus";
constexpr char kVariables[] = "job.env";
constexpr char kNoList[] = "the list of hosts, which is this machine alone without --hosts or --hostfile";

}  // namespace

// The hosts that a text may name; without a list this machine, by the name that `text` begins with.
std::optional<std::vector<hosts::HostSlots>> Loader::HostsToName(std::string_view text) const {
  if (settings_.Has(kList)) {
    auto listed = hosts::ParseHosts(settings_.List(kList));
    if (!listed) return std::nullopt;  // has been reported
    return *std::move(listed);
  }
  if (settings_.Text("cluster.connect") == "manual") return std::vector<hosts::HostSlots>();
  const std::string name(text.substr(0, text.find_first_of(":@")));
  return std::vector<hosts::HostSlots>{{hosts::IsThisMachine(name) ? name : "localhost", {}}};
}

std::string Loader::ListText() const {
  const std::string& place = settings_.Get(kList).origin.place;
  return settings_.Has(kList) ? fmt::format("the hosts of {}", place.empty() ? kList : place) : kNoList;
}

void Loader::SelectHosts() {
  if (failed_.contains(kInclude) || failed_.contains(kExclude)) return;
  const bool includes = settings_.Has(kInclude);
  if (!includes && !settings_.Has(kExclude)) return;
  const char* const key = includes ? kInclude : kExclude;
  const options::Spec& spec = *settings_.Find(key);
  const Place place = places_[key];
  if (includes && settings_.Has(kExclude)) {
    return Fail(*settings_.Find(kExclude), places_[kExclude], "",
                fmt::format("{} ({}) chooses the hosts already; leave one of them out", kInclude,
                            settings_.Get(kInclude).origin.place));
  }
  const std::string& text = settings_.Text(key);
  const auto listed = HostsToName(text);
  if (!listed) return;
  if (listed->empty())
    return Fail(spec, place, "", "it names hosts, and nothing lists them; add --hosts or --hostfile");
  auto selected =
      includes ? hosts::Include(*listed, text, ListText()) : hosts::Exclude(*listed, text, ListText());
  if (!selected) return Fail(spec, place, "", selected.error().text);
  if (!selected->gpus.empty() && settings_.Has(kGpus)) {
    return Fail(spec, place, "",
                fmt::format("it selects GPUs, and so does {} ({}); leave one of them out", kGpus,
                            settings_.Get(kGpus).origin.place));
  }
  std::vector<std::string> texts;
  std::ranges::transform(selected->hosts, std::back_inserter(texts), hosts::ToText);
  const std::string& source = place.source.empty() ? place.text : place.source;
  if (settings_.Has(kList)) {
    options::Value& list = settings_.values_[kList];
    list.data = std::move(texts);
    list.origin.place += " with " + source;
  } else {
    StandIn(kList, std::move(texts), place);
  }
  if (!selected->gpus.empty()) StandIn(kGpus, std::move(selected->gpus), place);
}

void Loader::CheckGpus() {
  if (!settings_.Has(kGpus) || failed_.contains(kGpus)) return;
  const options::Spec& spec = *settings_.Find(kGpus);
  if (settings_.Has(kVariables)) {
    for (const char* name : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"}) {
      const auto& variables = settings_.Map(kVariables);
      const auto own = variables.find(name);
      if (own == variables.end()) continue;
      return Fail(
          spec, places_[kGpus], "",
          fmt::format(
              "it sets {} of the ranks on the hosts that it names, and {} sets it to '{}' on all; leave "
              "one of them out",
              name, kVariables, own->second));
    }
  }
  std::map<std::string, std::string> lists;
  for (const auto& [name, list] : settings_.Map(kGpus)) {
    Place place = places_[kGpus];
    if (const std::string& own = settings_.PlaceOf(kGpus, name); !own.empty()) place.text = own;
    const auto listed = HostsToName(name);
    if (!listed) return;
    const hosts::HostSlots* host = hosts::FindHost(*listed, name);
    if (host == nullptr) {
      return Fail(spec, place, "." + name,
                  listed->empty() ? "it names a host, and nothing lists the hosts; add --hosts or --hostfile"
                                  : fmt::format("this host is not in {}{}", ListText(),
                                                hosts::HostsInstead(*listed, name)));
    }
    if (const Status usable = hosts::CheckGpuList(list); !usable)
      return Fail(spec, place, "." + name,
                  fmt::format("{}; found {}", usable.error().text, options::QuoteShort(list)));
    const bool again = !settings_.Has(kList) && !lists.empty();
    if (again || !lists.emplace(host->name, list).second)
      return Fail(spec, place, "." + name, "the table has this host twice; leave one of them out");
  }
  settings_.values_[kGpus].data = std::move(lists);
}

}  // namespace dtrun::config
