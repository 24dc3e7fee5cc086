#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/environments/libraries.h"
#include "core/options/snapshot.h"
#include "core/verdict/verdict.h"
#include "tools/dtrun/explain_run.h"

namespace dtrun::cli {
namespace {

// "backend.name = \"gloo\" (train.toml:4:1)": an option's value and origin.
std::string OptionText(const Json& config, const std::string& key) {
  if (!config.contains(key)) return {};
  const Json& option = config.at(key);
  return fmt::format("{} = {} ({})", key, TextAt(option, "/value"), TextAt(option, "/origin"));
}

// The option keys and variables that decide `topic`, according to the backend.
std::vector<std::string> DecidersOf(const Json& plan, const std::string& topic,
                                    const std::string& facts = "/facts") {
  for (const Json& host : plan.value("hosts", Json::array())) {
    const std::string words = TextAt(host, (facts + "/by " + topic).c_str());
    if (words.empty()) continue;
    std::vector<std::string> out;
    for (const std::string_view word : Split(words, ' ')) out.emplace_back(word);
    return out;
  }
  return {};
}

// Its options that are set. With two backends, each has its own table; of one on others, the lowest says what
// decides.
std::string OptionsText(const Records& files, const std::string& topic, bool of_device = false) {
  std::string text;
  const std::string device = TextAt(files.plan, "/device_backend/name");
  const std::string name = of_device ? device : TextAt(files.plan, "/backend/name");
  std::string table(options::LowestOf(name));
  if (device.empty() && table == name) table = "options";
  for (const std::string& word : DecidersOf(files.plan, topic, of_device ? "/device_facts" : "/facts")) {
    const std::string option = OptionText(files.config, fmt::format("backend.{}.{}", table, word));
    if (!option.empty()) text += (text.empty() ? "" : "; ") + option;
  }
  return text;
}

// "node0 2, node1 2"
std::string HostsText(const Json& plan) {
  std::string text;
  for (const Json& host : plan.value("hosts", Json::array())) {
    fmt::format_to(std::back_inserter(text), "{}{} {}", text.empty() ? "" : ", ", TextAt(host, "/name"),
                   TextAt(host, "/local_size"));
  }
  return text;
}

// The ranks' values of the variables selected by `wanted`, by host if they differ.
template <typename Wanted>
std::string VariablesText(const Json& plan, const Wanted& wanted) {
  std::map<std::string, std::set<std::string>> hosts_of;  // "NAME=value" to hosts
  std::set<std::string> hosts;
  for (const Json& process : plan.value("processes", Json::array())) {
    const std::string host = TextAt(process, "/host");
    hosts.insert(host);
    const Json variables = process.value("env", Json::object());
    for (const auto& [name, value] : variables.items()) {
      if (wanted(name)) hosts_of[name + "=" + TextAt(variables, ("/" + name).c_str())].insert(host);
    }
  }
  std::string text;
  for (const auto& [setting, on] : hosts_of) {
    text += (text.empty() ? "" : ", ") + setting;
    if (on.size() < hosts.size()) {
      std::string list;
      for (const std::string& host : on) list += (list.empty() ? "" : " ") + host;
      text += " on " + list;
    }
  }
  return text;
}

// "eth0 10.5.0.1", for a host of network.json.
std::string CardText(const Json& host) { return TextAt(host, "/interface") + " " + TextAt(host, "/address"); }

// Why this interface was chosen.
std::string ChosenText(const Json& host) {
  for (const Json& candidate : host.value("candidates", Json::array())) {
    if (TextAt(candidate, "/verdict") == "chosen")
      return fmt::format("{} chosen, {}", TextAt(candidate, "/interface"), TextAt(candidate, "/reason"));
  }
  return "chosen by the connectivity check";
}

Choice Interface(const Records& files) {
  const std::string fact = TextAt(files.plan, "/backend/facts/interface");
  const std::string set = VariablesText(files.plan, environments::NamesInterfaces);
  std::string reason = OptionsText(files, "interface");
  const bool one_host = files.plan.value("hosts", Json::array()).size() == 1;
  if (fact.empty() && reason.empty() && one_host)
    return {"interface", "not used on one host", set.empty() ? "" : "ranks see " + set};
  std::string proven;
  for (const Json& host : files.network ? files.network->value("hosts", Json::array()) : Json::array()) {
    proven += fmt::format("{}{} {}", proven.empty() ? "" : ", ", TextAt(host, "/name"), CardText(host));
  }
  if (reason.empty())
    reason = one_host ? "all ranks share one host" : OptionText(files.config, "network.interface");
  if (reason.empty()) reason = "no option chooses one";
  if (!set.empty()) reason += "; ranks see " + set;
  if (!proven.empty() && fact.empty()) reason = "tested between all hosts before ranks started; " + reason;
  return {"interface", fact.empty() ? proven : fact, reason};
}

bool LocalIsNone(const Records& files) { return TextAt(files.config, "/comm.local/value") == "\"none\""; }

// The transport of a backend between hosts, as far as reported.
std::string WireText(const Records& files) {
  const std::string wire = TextAt(files.plan, "/backend/facts/wire");
  return TextAt(files.plan, "/backend/name") + (wire.empty() ? "" : " over " + wire);
}

// No rank joined it, so the program used other means of communication, or none.
bool BackendWasNotUsed(const Records& files) {
  if (!files.verdict) return files.none_joined;
  const Json ranks = files.verdict->value("ranks", Json::array());
  return !ranks.empty() &&
         std::ranges::none_of(ranks, [](const Json& rank) { return rank.value("joined", true); });
}

// For the ranks of each host: how they reach each other and the ranks of other hosts.
void AddPeers(const Records& files, std::vector<Choice>* choices) {
  std::map<std::string, std::vector<int>> ranks_of;  // by host
  for (const Json& process : files.plan.value("processes", Json::array())) {
    for (int i = 0; i < process.value("rank_count", 1); ++i)
      ranks_of[TextAt(process, "/host")].push_back(process.value("rank", 0) + i);
  }
  const bool device = TextAt(files.plan, "/backend/facts/memory") == "device";
  const bool shared = !LocalIsNone(files) && !device;
  const std::string rdma = TextAt(files.plan, "/backend/facts/rdma");
  const Json hosts = files.network ? files.network->value("hosts", Json::array()) : Json::array();
  for (const Json& host : files.plan.value("hosts", Json::array())) {
    const std::string name = TextAt(host, "/name");
    const std::vector<int>& ranks = ranks_of[name];
    if (ranks.empty()) continue;
    Choice choice{"peers", fmt::format("{} of {}", verdict::FoldRanks(ranks), name), ""};
    if (ranks.size() > 1) {
      choice.value += fmt::format(": {} among themselves",
                                  shared ? "shared memory" : TextAt(files.plan, "/backend/name"));
      choice.reason = OptionText(files.config, "comm.local");
    }
    const auto card =
        std::ranges::find_if(hosts, [&](const Json& one) { return TextAt(one, "/name") == name; });
    if (card != hosts.end()) {
      choice.value += fmt::format("{} other hosts by {}, at {}", ranks.size() > 1 ? ";" : ":",
                                  WireText(files), CardText(*card));
      choice.reason += (choice.reason.empty() ? "" : "; ") + ChosenText(*card);
      if (rdma.starts_with("no")) choice.reason += "; no RDMA" + rdma.substr(2);
    }
    choices->push_back(std::move(choice));
  }
}

Choice Transport(const Records& files) {
  const std::string local = TextAt(files.plan, "/backend/facts/local");
  std::string reason = OptionText(files.config, "comm.local");
  const std::string transports = OptionsText(files, "wire");
  if (!transports.empty()) reason += (reason.empty() ? "" : "; ") + transports;
  return {"transport", local, reason};
}

// What the backend reported about itself and about dtrun's layers around it.
Choice Algorithm(const Records& files) {
  const std::string fact = TextAt(files.plan, "/backend/facts/algorithm");
  const bool device = TextAt(files.plan, "/backend/facts/memory") == "device";
  if (LocalIsNone(files) || device) return {"algorithm", fact, ""};
  if (files.plan.value("hosts", Json::array()).size() == 1)
    return {"algorithm", "dtrun's, in shared memory", OptionText(files.config, "comm.local")};
  return {"algorithm", "a step inside each host, a step between one rank per host, and a step back",
          fact.empty() ? "" : "between hosts: " + fact};
}

Choice PeerAccess(const Records& files) {
  const bool two = files.plan.contains("device_backend");
  const std::string facts = two ? "/device_backend/facts" : "/backend/facts";
  const std::string fact = TextAt(files.plan, (facts + "/p2p").c_str());
  const std::string memory = TextAt(files.plan, (facts + "/memory").c_str());
  std::string reason = OptionsText(files, "p2p", two);
  const auto add = [&](const std::string& text) { reason += (reason.empty() ? "" : "; ") + text; };
  const std::vector<std::string> deciders = DecidersOf(files.plan, "p2p", two ? "/device_facts" : "/facts");
  const std::string set = VariablesText(files.plan, [&](const std::string& name) {
    return environments::ChoosesGpuPaths(name) || std::ranges::find(deciders, name) != deciders.end();
  });
  if (BackendWasNotUsed(files)) {
    if (!set.empty()) add("ranks see " + set);
    return {"p2p", fact, reason};
  }
  if (memory == "host") reason = "this backend moves host memory" + (reason.empty() ? "" : "; " + reason);
  if (!set.empty()) add((memory == "host" ? "programs see " : "ranks see ") + set);
  return {"p2p", fact.empty() && memory == "host" ? "not used" : fact, reason};
}

// job.ranks counts the ranks of all hosts; slots and job.processes_per_host count those of each host.
Choice Ranks(const Records& files) {
  const std::string hosts = OptionText(files.config, "cluster.hosts");
  std::string reason = OptionText(files.config, "job.ranks");
  if (reason.empty()) reason = OptionText(files.config, "job.processes_per_host");
  return {"ranks", fmt::format("{} ({})", TextAt(files.plan, "/world_size"), HostsText(files.plan)),
          reason + (hosts.empty() ? "" : "; " + hosts)};
}

// "because nccl cannot be used" of the plan, where that word stands in front of every reason.
std::string Reason(std::string why) {
  constexpr std::string_view kBecause = "because ";
  return why.starts_with(kBecause) ? why.substr(kBecause.size()) : why;
}

Choice Backend(const Records& files) {
  std::string reason = OptionText(files.config, "backend.name");
  const std::string chosen = Reason(TextAt(files.plan, "/backend/facts/chosen"));
  if (!chosen.empty()) reason += "; " + chosen;
  if (TextAt(files.plan, "/backend/name") != "none") {
    if (BackendWasNotUsed(files)) {
      reason += files.verdict ? "; not used: no rank called dtrun_init"
                              : "; not used so far: no rank has called dtrun_init";
      reason += "; a program's own communication is not recorded";
    } else if (!files.verdict) {
      reason += "; for ranks that call dtrun_init";
    }
  }
  return {"backend", TextAt(files.plan, "/backend/name"), reason};
}

}  // namespace

std::string TextAt(const Json& json, const char* path) {
  const Json::json_pointer pointer(path);
  if (!json.contains(pointer)) return {};
  const Json& found = json.at(pointer);
  return found.is_string() ? found.get<std::string>() : found.is_null() ? "" : JsonLine(found);
}

std::vector<Choice> ChoicesOf(const Records& files) {
  std::vector<Choice> choices;
  choices.push_back(Ranks(files));
  choices.push_back(Backend(files));
  for (const Json& route : files.plan.value("routes", Json::array()))
    choices.push_back({"route", TextAt(route, "/memory") + " memory: " + TextAt(route, "/by"),
                       Reason(TextAt(route, "/why"))});
  choices.push_back({"library", TextAt(files.plan, "/backend/facts/library"),
                     TextAt(files.plan, "/backend/facts/library_path")});
  if (files.plan.contains("device_backend"))
    choices.push_back({"library", TextAt(files.plan, "/device_backend/facts/library"),
                       TextAt(files.plan, "/device_backend/facts/library_path")});
  const bool used = !BackendWasNotUsed(files);
  if (used) choices.push_back(Transport(files));
  if (used) AddPeers(files, &choices);
  choices.push_back(Interface(files));
  if (used) choices.push_back(Algorithm(files));
  choices.push_back(PeerAccess(files));
  for (const auto& [topic, list] : {std::pair("warning", "warnings"), std::pair("note", "notes")}) {
    for (const Json& line : files.plan.value(list, Json::array())) {
      if (line.is_string()) choices.push_back({topic, line.get<std::string>(), ""});
    }
  }
  return choices;
}

}  // namespace dtrun::cli
