// The GPUs of each host. cluster.include and cluster.exclude become a shorter list of
// hosts with their slots, and cluster.gpus; afterwards that table has hosts of the list alone, by
// the names that they have there.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/hosts/selection.h"
#include "core/hosts/this_machine.h"
#include "core/options/text.h"
#include "core/spec/job_hosts.h"

namespace dtrun::spec {
namespace {

constexpr char kNoList[] = "the list of hosts, which is this machine alone without --hosts or --hostfile";

}  // namespace

// The hosts that a text may name; without a list this machine, by the name that `text` begins with.
std::vector<hosts::HostSlots> JobHosts::HostsToName(std::string_view text) const {
  if (spec_.cluster.hosts.has() || spec_.cluster.connect.is("manual")) return spec_.listed;
  const std::string name(text.substr(0, text.find_first_of(":@")));
  return {{hosts::IsThisMachine(name) ? name : "localhost", {}}};
}

std::string JobHosts::ListText() const {
  const ListField& list = spec_.cluster.hosts;
  return list.has() ? fmt::format("the hosts of {}", list.place().empty() ? list.key() : list.place())
                    : kNoList;
}

void JobHosts::SelectHosts() {
  const TextField &include = spec_.cluster.include, &exclude = spec_.cluster.exclude;
  if (builder_.Failed(include) || builder_.Failed(exclude) || (!include.has() && !exclude.has())) return;
  if (include.has() && exclude.has()) {
    return builder_.Fail(exclude, fmt::format("{} ({}) chooses the hosts already; leave one of them out",
                                              include.key(), include.place()));
  }
  const TextField& chosen = include.has() ? include : exclude;
  const auto listed = HostsToName(*chosen);
  if (listed.empty())
    return builder_.Fail(chosen, "it names hosts, and nothing lists them; add --hosts or --hostfile");
  auto selected = include.has() ? hosts::Include(listed, *chosen, ListText())
                                : hosts::Exclude(listed, *chosen, ListText());
  if (!selected) return builder_.Fail(chosen, selected.error().text);
  MapField& gpus = spec_.cluster.gpus;
  if (!selected->gpus.empty() && gpus.has()) {
    return builder_.Fail(chosen, fmt::format("it selects GPUs, and so does {} ({}); leave one of them out",
                                             gpus.key(), gpus.place()));
  }
  const Place place = builder_.PlaceOf(chosen.key());
  options::Value& list = spec_.cluster.hosts.value;
  if (list.set()) {
    std::vector<std::string> texts;
    std::ranges::transform(selected->hosts, std::back_inserter(texts), hosts::ToText);
    list.data = std::move(texts);
    list.origin.place += " with " + (place.source.empty() ? place.text : place.source);
    spec_.listed = std::move(selected->hosts);
  } else {
    ListHosts(std::move(selected->hosts), place);
  }
  if (!selected->gpus.empty()) StandIn(gpus, std::move(selected->gpus), place);
}

void JobHosts::CheckGpus() {
  MapField& gpus = spec_.cluster.gpus;
  if (!gpus.has() || builder_.Failed(gpus)) return;
  const MapField& env = spec_.job.env;
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"}) {
    if (!env.has() || !env->contains(name)) continue;
    return builder_.Fail(
        gpus, fmt::format("it sets {} of the ranks on the hosts that it names, and {} sets it to '{}' on "
                          "all; leave one of them out",
                          name, env.key(), env->at(name)));
  }
  std::map<std::string, std::string> lists;
  for (const auto& [name, list] : *gpus) {
    Place place = builder_.PlaceOf(gpus.key());
    if (const std::string& own = spec_.PlaceOf(gpus, name); !own.empty()) place.text = own;
    const auto fail = [&, name = name](const std::string& message) {
      builder_.Fail(gpus.row(), place, "." + name, message);
    };
    const auto listed = HostsToName(name);
    const hosts::HostSlots* host = hosts::FindHost(listed, name);
    if (host == nullptr) {
      return fail(listed.empty() ? "it names a host, and nothing lists the hosts; add --hosts or --hostfile"
                                 : fmt::format("this host is not in {}{}", ListText(),
                                               hosts::HostsInstead(listed, name)));
    }
    if (const Status usable = hosts::CheckGpuList(list); !usable)
      return fail(fmt::format("{}; found {}", usable.error().text, options::QuoteShort(list)));
    const bool again = !spec_.cluster.hosts.has() && !lists.empty();
    if (again || !lists.emplace(host->name, list).second)
      return fail("the table has this host twice; leave one of them out");
  }
  gpus.value.data = std::move(lists);
}

}  // namespace dtrun::spec
