// A hostfile or a platform's variables fill in the options that they determine, with that file or platform as
// the origin, unless the user gave those options. After loading there is one list of hosts, whatever its
// source. cluster.include and cluster.exclude become a shorter list of hosts with their slots, and
// cluster.gpus; afterwards that table has hosts of the list alone, by the names that they have there.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/hosts/allocation.h"
#include "core/hosts/hostfile.h"
#include "core/hosts/launchers.h"
#include "core/hosts/selection.h"
#include "core/hosts/this_machine.h"
#include "core/options/text.h"
#include "core/spec/file.h"
#include "core/spec/job_hosts.h"

namespace dtrun::spec {
namespace {

std::vector<std::string> ToTexts(const std::vector<hosts::HostSlots>& hosts) {
  std::vector<std::string> texts;
  for (const hosts::HostSlots& host : hosts) texts.push_back(hosts::ToText(host));
  return texts;
}

// "ADDRESS:PORT", or only the address.
std::string RootText(const hosts::Allocation& allocation, std::optional<std::int64_t> port) {
  std::string text = hosts::ToText({allocation.root_address, {}});
  if (!port && allocation.rank_port) port = hosts::RendezvousPort(*allocation.rank_port);
  if (port) text += fmt::format(":{}", *port);
  return text;
}

constexpr char kNoList[] = "the list of hosts, which is this machine alone without --hosts or --hostfile";

// The work of TakeHosts.
class JobHosts {
 public:
  JobHosts(Builder& builder, OptionsReader options)
      : builder_(builder), spec_(builder.spec), options_(std::move(options)) {}

  void Take() {
    CheckPorts();
    const ClusterTable& cluster = spec_.cluster;
    if (const AnyField* source = HostSource()) {
      if (source == &cluster.hosts) {
        auto hosts = hosts::ParseHosts(*cluster.hosts);
        if (!hosts) return builder_.Fail(*source, hosts.error().text);
        spec_.listed = *std::move(hosts);
      } else if (source == &cluster.hostfile) {
        TakeHostfile(*source, *cluster.hostfile);
      } else {
        TakePlatform();
      }
      if (builder_.Failed(*source) || hosts_unknown_) return;
    }
    SelectHosts();
    CheckGpus();
    CheckConnect();
    LimitHosts();
    ShareRanks(builder_);
    CheckMinimum();
    CheckIndex();
  }

 private:
  // The effective one of the options that name hosts: as for every option, the one given last. Two in one
  // place are an error.
  const AnyField* HostSource() {
    AnyField* winner = nullptr;
    for (AnyField* one :
         {static_cast<AnyField*>(&spec_.cluster.hosts), static_cast<AnyField*>(&spec_.cluster.hostfile),
          static_cast<AnyField*>(&spec_.cluster.from)}) {
      if (!one->has() || builder_.Failed(*one)) continue;
      if (winner == nullptr) {
        winner = one;
        continue;
      }
      const int before = winner->value.origin.kind, now = one->value.origin.kind;
      if (before == now) {
        builder_.Fail(*one, fmt::format("{} ({}) names the hosts already; leave one of them out",
                                        winner->key(), winner->place()));
        return nullptr;
      }
      (now > before ? winner : one)->value = {};
      if (now > before) winner = one;
    }
    return winner;
  }

  // Makes this the list of hosts, unless the user gave one.
  void ListHosts(std::vector<hosts::HostSlots> hosts, const Place& place) {
    const AnyField& list = spec_.cluster.hosts;
    if (list.given()) return;
    StandIn(list, ToTexts(hosts), place);
    if (!builder_.Failed(list)) spec_.listed = std::move(hosts);
  }

  void TakeHostfile(const AnyField& source, const std::string& path) {
    const Result<std::string> text = ReadFile(path);
    if (!text) {
      return builder_.Fail(
          source,
          fmt::format("{}: {}{}", options::QuoteShort(path), text.error().text,
                      text.error().code == DTRUN_NOT_FOUND ? "; create it, or correct the path" : ""));
    }
    auto hosts = hosts::ParseHostfile(*text, options::ShownPath(path));
    if (!hosts) {  // the text starts with the place in that file
      builder_.failed.insert(source.key());
      const Place by = builder_.PlaceOf(source.key());
      return builder_.problems.Add(
          {by.origin, by.at, ""}, hosts.error().text,
          fmt::format("the file is set by {}", by.text.empty() ? source.key() : by.text));
    }
    ListHosts(*std::move(hosts), {DTRUN_ORIGIN_FILE, {}, path});
  }

  void FailPlatform(const Error& error) {
    hosts_unknown_ = builder_.request->elsewhere && error.code == DTRUN_NOT_FOUND;
    if (!hosts_unknown_) builder_.Fail(spec_.cluster.from, error.text);
  }

  void TakePlatform() {
    const ClusterTable& cluster = spec_.cluster;
    auto allocation =
        hosts::FromEnvironment(builder_.request->environment, *cluster.from, OtherLaunchers().get());
    if (!allocation) return FailPlatform(allocation.error());
    spec_.hosts_from = {allocation->platform, allocation->sharing, {}};
    const bool named = allocation->own_index && !allocation->hosts.empty();
    if (named)
      spec_.hosts_from.here = allocation->hosts[static_cast<std::size_t>(*allocation->own_index)].name;
    const Place place{DTRUN_ORIGIN_ENVIRONMENT, {}, fmt::format("variables of {}", allocation->platform)};
    if (!allocation->hosts.empty()) ListHosts(allocation->hosts, place);
    if (!allocation->hostfile.empty()) return TakeHostfile(cluster.from, allocation->hostfile);
    const bool counted = allocation->count.max > 0;
    if (allocation->hosts.empty() && counted)
      StandIn(cluster.host_count, std::int64_t{allocation->count.max}, place);
    if (allocation->hosts.empty() && !counted && !cluster.host_count.has()) {
      return builder_.Fail(
          cluster.from,
          fmt::format("the variables of {} do not say how many hosts there are; set cluster.host_count",
                      allocation->platform));
    }
    if (allocation->count.min < allocation->count.max)
      StandIn(cluster.min_hosts, std::int64_t{allocation->count.min}, place);
    if (allocation->everywhere) {
      StandIn(cluster.connect, std::string("manual"), place);
      std::optional<std::int64_t> port;
      if (cluster.root_port.has()) port = *cluster.root_port;
      if (!allocation->root_address.empty()) StandIn(cluster.root, RootText(*allocation, port), place);
      const bool taken = allocation->rank_port_taken ||
                         (cluster.root.has() &&
                          cluster.root->ends_with(fmt::format(":{}", allocation->rank_port.value_or(-1))));
      if (allocation->rank_port && !taken)
        StandIn(spec_.job.master_port, std::int64_t{*allocation->rank_port}, place);
    } else if (!allocation->connect.empty()) {
      StandIn(cluster.connect, allocation->connect, place);
    }
    if (allocation->own_index && allocation->everywhere)
      StandIn(cluster.host_index, std::int64_t{*allocation->own_index}, place);
    if (!allocation->processes_per_host.empty()) {
      const options::Spec& processes = spec_.job.processes_per_host.row();
      auto data = ParseText(processes, allocation->processes_per_host, builder_.start_folder);
      if (!data) return builder_.Fail(processes, place, "", data.error().text);
      StandIn(spec_.job.processes_per_host, *std::move(data), place);
    }
  }

  // Launcher plugins, loaded on first use; null: there are none.
  std::shared_ptr<hosts::Launchers> OtherLaunchers() {
    return builder_.request->launchers ? builder_.request->launchers(spec_, options_) : nullptr;
  }

  // Words that are not a launcher's name need no query to plugins.
  void CheckConnect() {
    const TextField& connect = spec_.cluster.connect;
    if (connect.is("ssh") || connect.is("manual") || builder_.Failed(connect)) return;
    const auto launchers = OtherLaunchers();
    std::vector<std::string> names = {"ssh", "manual"};
    if (launchers != nullptr) {
      const auto has = launchers->Has(*connect, hosts::Launchers::Ability::kConnect);
      if (!has) return builder_.Fail(connect, has.error().text);
      if (*has) return;
      std::ranges::copy(launchers->With(hosts::Launchers::Ability::kConnect), std::back_inserter(names));
    }
    const auto nearest = Nearest(*connect, names);
    builder_.Fail(
        connect,
        fmt::format("{} connects to no hosts; {}there are {}", options::QuoteShort(*connect),
                    nearest ? fmt::format("did you mean \"{}\"? ", *nearest) : "", fmt::join(names, ", ")));
  }

  // cluster.host_count selects the first hosts of a list, and is used alone if their names are unknown.
  void LimitHosts() {
    const UnsignedField& limit = spec_.cluster.host_count;
    if (!limit.has() || builder_.Failed(limit)) return;
    const auto count = static_cast<std::size_t>(*limit);
    ListField& hosts = spec_.cluster.hosts;
    if (!hosts.has()) {
      if (count == 1 || spec_.cluster.connect.is("manual")) return;
      return builder_.Fail(
          limit,
          fmt::format(
              "{} hosts, and nothing names them; add --hosts a,b (cluster.hosts), --hostfile FILE or, under "
              "a scheduler, --set cluster.from=auto; if you start the command on each host: use 'dtrun "
              "torchrun --nnodes ...' or set cluster.connect = \"manual\"",
              count));
    }
    std::vector<std::string> list = *hosts;
    if (count > list.size()) {
      const bool mpiruns = limit.place() == "-N";
      return builder_.Fail(
          limit,
          fmt::format(
              "{} hosts are requested, but there are only {} by {}: {}; request fewer, or get more "
              "hosts{}",
              count, list.size(), hosts.place(), fmt::join(list, ", "),
              mpiruns ? fmt::format("; mpirun's -N {0} is --processes-per-host {0} here", count) : ""));
    }
    list.resize(count);
    spec_.listed.resize(count);
    hosts.value.data = std::move(list);
  }

  void CheckMinimum() {
    const UnsignedField& minimum = spec_.cluster.min_hosts;
    if (!minimum.has() || builder_.Failed(minimum)) return;
    const std::int64_t count = spec_.cluster.hosts.has() ? static_cast<std::int64_t>(spec_.listed.size())
                                                         : spec_.cluster.host_count.value_or(1);
    if (*minimum <= count) return;
    builder_.Fail(minimum,
                  fmt::format("at least {} hosts are required, but there are at most {}; require fewer",
                              *minimum, count));
  }

  // Otherwise the root assigns the numbers.
  void CheckIndex() {
    const UnsignedField& index = spec_.cluster.host_index;
    if (!index.has() || builder_.Failed(index) || spec_.cluster.connect.is("manual")) return;
    builder_.Fail(
        index,
        fmt::format("the number of a host is for cluster.connect = \"manual\", where every host runs dtrun "
                    "itself; here it is \"{}\"",
                    *spec_.cluster.connect));
  }

  void CheckPorts() {
    const TextField& range = spec_.cluster.port_range;
    if (!range.has() || builder_.Failed(range)) return;
    auto ports = ParsePortRange(*range);
    if (!ports) return builder_.Fail(range, ports.error().text);
    spec_.ports = *ports;
  }

  void StandIn(const AnyField& field, options::Data data, const Place& place) {
    if (field.given() || builder_.Failed(field)) return;
    if (const Status checked = CheckBounds(field.row(), data); !checked)
      return builder_.Fail(field.row(), place, "", checked.error().text);
    builder_.Store(field.row(), std::move(data), place);
  }

  // The hosts that a text may name; without a list this machine, by the name that `text` begins with.
  std::vector<hosts::HostSlots> HostsToName(std::string_view text) const {
    if (spec_.cluster.hosts.has() || spec_.cluster.connect.is("manual")) return spec_.listed;
    const std::string name(text.substr(0, text.find_first_of(":@")));
    return {{hosts::IsThisMachine(name) ? name : "localhost", {}}};
  }

  std::string ListText() const {
    const ListField& list = spec_.cluster.hosts;
    return list.has() ? fmt::format("the hosts of {}", list.place().empty() ? list.key() : list.place())
                      : kNoList;
  }

  void SelectHosts() {
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
      list.data = ToTexts(selected->hosts);
      list.origin.place += " with " + (place.source.empty() ? place.text : place.source);
      spec_.listed = std::move(selected->hosts);
    } else {
      ListHosts(std::move(selected->hosts), place);
    }
    if (!selected->gpus.empty()) StandIn(gpus, std::move(selected->gpus), place);
  }

  void CheckGpus() {
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

  Builder& builder_;
  JobSpec& spec_;  // of builder_
  const OptionsReader options_;
  bool hosts_unknown_ = false;  // the platform is absent, so its hosts are unknown (Request::elsewhere)
};

}  // namespace

void TakeHosts(Builder& builder, OptionsReader options) { JobHosts(builder, std::move(options)).Take(); }

}  // namespace dtrun::spec
