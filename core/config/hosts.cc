// The loader's part for the hosts of the job. A hostfile or a platform's variables fill in the options that
// they determine, with that file or platform as the origin, unless the user gave those options. After loading
// there is one list of hosts, whatever its source.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>

#include "core/base/suggest.h"
#include "core/config/file.h"
#include "core/config/loader.h"
#include "core/hosts/allocation.h"
#include "core/hosts/hostfile.h"
#include "core/hosts/launchers.h"
#include "core/options/path_text.h"
#include "core/options/text.h"

namespace dtrun::config {
namespace {

constexpr char kHosts[] = "cluster.hosts";
constexpr char kHostfile[] = "cluster.hostfile";
constexpr char kFrom[] = "cluster.from";
constexpr char kCount[] = "cluster.host_count";
constexpr char kConnect[] = "cluster.connect";
constexpr char kRootPort[] = "cluster.root_port";

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

}  // namespace

// The effective one of the options that name hosts: as for every option, the one given last. Two in one place
// are an error.
const options::Spec* Loader::HostSource() {
  const char* winner = nullptr;
  for (const char* key : {kHosts, kHostfile, kFrom}) {
    if (!settings_.Has(key) || failed_.contains(key)) continue;
    if (winner == nullptr) {
      winner = key;
      continue;
    }
    const int before = settings_.Get(winner).origin.kind, now = settings_.Get(key).origin.kind;
    if (before == now) {
      Fail(*settings_.Find(key), places_[key], "",
           fmt::format("{} ({}) names the hosts already; leave one of them out", winner,
                       settings_.Get(winner).origin.place));
      return nullptr;
    }
    settings_.values_[now > before ? winner : key] = {};
    if (now > before) winner = key;
  }
  return winner == nullptr ? nullptr : settings_.Find(winner);
}

void Loader::TakeHosts() {
  if (const options::Spec* source = HostSource()) {
    if (source->key == kHosts) {
      auto hosts = hosts::ParseHosts(settings_.List(kHosts));
      if (!hosts) return Fail(*source, places_[kHosts], "", hosts.error().text);
    } else if (source->key == kHostfile) {
      TakeHostfile(*source, settings_.Text(kHostfile));
    } else {
      TakePlatform(*source);
    }
    if (failed_.contains(source->key) || hosts_unknown_) return;
  }
  SelectHosts();
  CheckGpus();
  CheckConnect();
  LimitHosts();
  ShareRanks();
  CheckSize();
  CheckMinimum();
  CheckIndex();
}

void Loader::TakeHostfile(const options::Spec& source, const std::string& path) {
  const Result<std::string> text = ReadFile(path);
  if (!text) {
    return Fail(source, places_[source.key], "",
                fmt::format("{}: {}{}", options::QuoteShort(path), text.error().text,
                            text.error().code == DTRUN_NOT_FOUND ? "; create it, or correct the path" : ""));
  }
  auto hosts = hosts::ParseHostfile(*text, options::ShownPath(path));
  if (!hosts) {  // the text starts with the place in that file
    failed_.insert(source.key);
    const Place& by = places_[source.key];
    return problems_.Add({by.origin, by.at, ""}, hosts.error().text,
                         fmt::format("the file is set by {}", by.text.empty() ? source.key : by.text));
  }
  StandIn(kHosts, ToTexts(*hosts), {DTRUN_ORIGIN_FILE, {}, path});
}

void Loader::FailPlatform(const options::Spec& source, const Error& error) {
  hosts_unknown_ = request_.elsewhere && error.code == DTRUN_NOT_FOUND;
  if (!hosts_unknown_) Fail(source, places_[kFrom], "", error.text);
}

void Loader::TakePlatform(const options::Spec& source) {
  auto allocation =
      hosts::FromEnvironment(request_.environment, settings_.Text(kFrom), OtherLaunchers().get());
  if (!allocation) return FailPlatform(source, allocation.error());
  settings_.hosts_from_ = {allocation->platform, allocation->sharing, {}};
  const bool named = allocation->own_index && !allocation->hosts.empty();
  if (named)
    settings_.hosts_from_.here = allocation->hosts[static_cast<std::size_t>(*allocation->own_index)].name;
  const Place place{DTRUN_ORIGIN_ENVIRONMENT, {}, fmt::format("variables of {}", allocation->platform)};
  if (!allocation->hosts.empty()) StandIn(kHosts, ToTexts(allocation->hosts), place);
  if (!allocation->hostfile.empty()) return TakeHostfile(source, allocation->hostfile);
  const bool counted = allocation->count.max > 0;
  if (allocation->hosts.empty() && counted) StandIn(kCount, std::int64_t{allocation->count.max}, place);
  if (allocation->hosts.empty() && !counted && !settings_.Has(kCount)) {
    return Fail(source, places_[kFrom], "",
                fmt::format("the variables of {} do not say how many hosts there are; set cluster.host_count",
                            allocation->platform));
  }
  if (allocation->count.min < allocation->count.max) {
    StandIn("cluster.min_hosts", std::int64_t{allocation->count.min}, place);
  }
  if (allocation->everywhere) {
    StandIn(kConnect, std::string("manual"), place);
    std::optional<std::int64_t> port;
    if (settings_.Has(kRootPort)) port = settings_.Int(kRootPort);
    if (!allocation->root_address.empty()) StandIn("cluster.root", RootText(*allocation, port), place);
    const bool taken =
        allocation->rank_port_taken ||
        (settings_.Has("cluster.root") &&
         settings_.Text("cluster.root").ends_with(fmt::format(":{}", allocation->rank_port.value_or(-1))));
    if (allocation->rank_port && !taken) {
      StandIn("job.master_port", std::int64_t{*allocation->rank_port}, place);
    }
  } else if (!allocation->connect.empty()) {
    StandIn(kConnect, allocation->connect, place);
  }
  if (allocation->own_index && allocation->everywhere)
    StandIn("cluster.host_index", std::int64_t{*allocation->own_index}, place);
  if (!allocation->processes_per_host.empty()) {
    const options::Spec& processes = *settings_.Find("job.processes_per_host");
    auto data = ParseText(processes, allocation->processes_per_host, start_folder_);
    if (!data) return Fail(processes, place, "", data.error().text);
    StandIn(processes.key.c_str(), *std::move(data), place);
  }
}

// Launcher plugins, loaded on first use; null: there are none.
std::shared_ptr<hosts::Launchers> Loader::OtherLaunchers() {
  return request_.launchers ? request_.launchers(settings_) : nullptr;
}

// Words that are not a launcher's name need no query to plugins.
void Loader::CheckConnect() {
  const std::string& connect = settings_.Text(kConnect);
  if (connect == "ssh" || connect == "manual" || failed_.contains(kConnect)) return;
  const options::Spec& spec = *settings_.Find(kConnect);
  const auto launchers = OtherLaunchers();
  std::vector<std::string> names = {"ssh", "manual"};
  if (launchers != nullptr) {
    const auto has = launchers->Has(connect, hosts::Launchers::Ability::kConnect);
    if (!has) return Fail(spec, places_[kConnect], "", has.error().text);
    if (*has) return;
    std::ranges::copy(launchers->With(hosts::Launchers::Ability::kConnect), std::back_inserter(names));
  }
  const auto nearest = Nearest(connect, names);
  Fail(spec, places_[kConnect], "",
       fmt::format("{} connects to no hosts; {}there are {}", options::QuoteShort(connect),
                   nearest ? fmt::format("did you mean \"{}\"? ", *nearest) : "", fmt::join(names, ", ")));
}

// cluster.host_count selects the first hosts of a list, and is used alone if their names are unknown.
void Loader::LimitHosts() {
  if (!settings_.Has(kCount) || failed_.contains(kCount)) return;
  const options::Spec& spec = *settings_.Find(kCount);
  const auto count = static_cast<std::size_t>(settings_.Int(kCount));
  if (!settings_.Has(kHosts)) {
    if (count == 1 || settings_.Text(kConnect) == "manual") return;
    return Fail(
        spec, places_[kCount], "",
        fmt::format(
            "{} hosts, and nothing names them; add --hosts a,b (cluster.hosts), --hostfile FILE or, under "
            "a scheduler, --set cluster.from=auto; where each host starts the command itself, type 'dtrun "
            "torchrun --nnodes ...', as for torchrun, or set cluster.connect = \"manual\"",
            count));
  }
  const options::Value& hosts = settings_.Get(kHosts);
  std::vector<std::string> list = settings_.List(kHosts);
  if (count > list.size()) {
    const bool mpiruns = settings_.Get(kCount).origin.place == "-N";
    return Fail(
        spec, places_[kCount], "",
        fmt::format("{} hosts are asked for, and there are {} by {}: {}; ask for fewer, or get more hosts{}",
                    count, list.size(), hosts.origin.place, fmt::join(list, ", "),
                    mpiruns ? fmt::format("; mpirun's -N {0} is --processes-per-host {0} here", count) : ""));
  }
  list.resize(count);
  settings_.values_[kHosts] = {std::move(list), hosts.origin};
}

void Loader::CheckMinimum() {
  constexpr char kMinimum[] = "cluster.min_hosts";
  if (!settings_.Has(kMinimum) || failed_.contains(kMinimum)) return;
  std::size_t count = 1;
  if (settings_.Has(kHosts)) {
    count = settings_.List(kHosts).size();
  } else if (settings_.Has(kCount)) {
    count = static_cast<std::size_t>(settings_.Int(kCount));
  }
  if (static_cast<std::size_t>(settings_.Int(kMinimum)) <= count) return;
  Fail(*settings_.Find(kMinimum), places_[kMinimum], "",
       fmt::format("{} hosts at least, and there are {} at most; ask for fewer", settings_.Int(kMinimum),
                   count));
}

// Otherwise the root assigns the numbers.
void Loader::CheckIndex() {
  constexpr char kIndex[] = "cluster.host_index";
  if (!settings_.Has(kIndex) || failed_.contains(kIndex) || settings_.Text(kConnect) == "manual") return;
  Fail(*settings_.Find(kIndex), places_[kIndex], "",
       fmt::format(
           "the number of a host is for cluster.connect = \"manual\", where every host runs dtrun itself; "
           "here it is \"{}\"",
           settings_.Text(kConnect)));
}

void Loader::StandIn(const char* key, options::Data data, const Place& place) {
  const options::Spec& spec = *settings_.Find(key);
  const bool given = settings_.Get(key).origin.kind != DTRUN_ORIGIN_DEFAULT;
  if (given || failed_.contains(key)) return;
  if (const Status checked = CheckBounds(spec, data); !checked) {
    return Fail(spec, place, "", checked.error().text);
  }
  Store(spec, std::move(data), place);
}

}  // namespace dtrun::config
