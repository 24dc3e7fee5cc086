// What to type in place of another launcher's command line.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "core/base/number.h"
#include "core/base/text.h"
#include "tools/dtrun/command_line/splitter.h"

namespace dtrun::cli {
namespace {

constexpr std::string_view kOnProcessors = "job.env.ACCELERATE_USE_CPU=true";

bool HasAny(const Words& words, std::initializer_list<std::string_view> of) {
  return std::ranges::any_of(of, [&](std::string_view one) { return std::ranges::count(words, one) > 0; });
}

bool IsHostOption(const std::string& word) {
  return word == "--hosts" || word == "--host" || word == "-H" || word == "-N";
}

// The indices in `words` of host lists; leaves out values that are a number of hosts.
std::vector<std::size_t> HostLists(const Words& words) {
  std::vector<std::size_t> places;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (IsHostOption(words[i - 1]) && !IsDigits(words[i])) places.push_back(i);
  }
  return places;
}

bool NamesHosts(const Words& words) {
  const auto sets = [](const std::string& word) {
    return word.starts_with("cluster.hosts=") || word.starts_with("cluster.hostfile=") ||
           word.starts_with("cluster.from=");
  };
  return !HostLists(words).empty() || HasAny(words, {"--hostfile", "--config", "-c"}) ||
         std::ranges::any_of(words, sets);
}

// mpirun counts one slot per mention of a host; dtrun expects each name once, with its slots.
void CountSlots(Words* words) {
  const std::vector<std::size_t> places = HostLists(*words);
  std::vector<std::pair<std::string, std::int64_t>> hosts;
  bool repeated = false;
  for (const std::size_t place : places) {
    for (const std::string_view one : Split((*words)[place], ',')) {
      const std::size_t colon = one.find(':');
      const auto slots = colon == one.npos ? 1 : NumberOf<int>(one.substr(colon + 1));
      if (!slots) return;  // an IPv6 address or a typo
      const std::string name(one.substr(0, colon));
      const auto known = std::ranges::find(hosts, name, &std::pair<std::string, std::int64_t>::first);
      if (known == hosts.end()) {
        hosts.emplace_back(name, *slots);
      } else {
        known->second += *slots;
        repeated = true;
      }
    }
  }
  if (!repeated) return;
  std::string list;
  for (const auto& [name, slots] : hosts)
    list += fmt::format("{}{}:{}", list.empty() ? "" : ",", name, slots);
  (*words)[places.front()] = list;
  for (std::size_t i = places.size() - 1; i > 0; --i) {
    const auto value = words->begin() + static_cast<std::ptrdiff_t>(places[i]);
    words->erase(value - 1, value + 1);
  }
}

// Slots of deepspeed's --include are ranks.
bool SelectsSlots(const Words& words) {
  return std::ranges::any_of(words, [](const std::string& word) {
    return word.starts_with("cluster.include=") && word.find(':') != word.npos;
  });
}

constexpr std::string_view kVariables = "job.env.";

// NAME=VALUE before a command, quoted for a shell.
std::string Assigned(const std::string& name, const std::string& value) {
  return fmt::format("{}={} ", name, Quoted({value}));
}

// --set KEY=VALUE.
std::string VariableOf(const std::string& set) {
  const std::size_t equals = std::min(set.find('='), set.size());
  std::string key = set.substr(0, equals);
  const std::string value = equals < set.size() ? set.substr(equals + 1) : "";
  if (key.starts_with(kVariables)) return Assigned(key.substr(kVariables.size()), value);
  for (char& c : key) c = c == '.' ? '_' : ToUpper(c);
  return Assigned("DTRUN_CONFIG_" + key, value);
}

bool CountsRanks(std::string word) {
  std::ranges::replace(word, '_', '-');
  return word.starts_with("--nproc-per-node");
}

}  // namespace

std::string MpirunArguments(const Words& arguments) {
  return "--set " +
         Quoted({fmt::format("launcher.options.arguments=[\"{}\"]", fmt::join(arguments, "\",\""))});
}

std::string InOurWords(const OtherLauncher& launcher, Words ours, const SplitWords& read) {
  if (launcher.mpi) CountSlots(&ours);
  const bool names_hosts = NamesHosts(ours);
  std::string notes;
  if (!launcher.setting.empty() && !(names_hosts && launcher.setting.starts_with("cluster."))) {
    if (!HasAny(ours, {launcher.setting})) ours.insert(ours.end(), {"--set", std::string(launcher.setting)});
    notes += fmt::format("\n  {}", launcher.otherwise);
  } else if (const auto count = std::ranges::find(ours, "-N");
             launcher.setting.empty() && count != ours.end() && !names_hosts) {
    if (count[1] == "1") {
      ours.erase(count, count + 2);
    } else {
      notes += "\n  and name the hosts: --hosts node0,node1";
    }
  }
  if (launcher.each_gpu && !SelectsSlots(ours) &&
      !HasAny(ours, {"-n", "--processes-per-host", "--hostfile", kOnProcessors})) {
    ours.insert(ours.end(), {"-n", "gpu"});
    notes +=
        fmt::format("\n  -n gpu is a rank for each GPU, as {} starts them; without GPUs write a number: -n 4",
                    launcher.name);
  }
  for (const std::string& line : read.warned) notes += "\n  " + line;
  return fmt::format(": {} {}", Quoted(ours), Quoted(read.command)) + notes;
}

std::string AsTorchrun(const Words& words, const std::function<const CLI::Option*(const std::string&)>& find,
                       bool old, const Words& rest) {
  const bool counted = std::ranges::any_of(rest, CountsRanks);
  std::string variables, plugins;
  Words ours{"dtrun"}, ranks, left_out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "plan" || word == "--json") {
      ours.push_back(word);
      continue;
    }
    const CLI::Option* option = find(word);
    if (option == nullptr || option->get_items_expected_max() == 0) {
      left_out.push_back(word);
      continue;
    }
    const std::string& value = words[++i];
    if (option->check_name("--set")) {
      variables += VariableOf(value);
    } else if (option->check_name("--torch-backend")) {
      variables += Assigned("DTRUN_CONFIG_BACKEND_TORCH", value);
    } else if (option->check_name("--plugin-dir")) {
      plugins += (plugins.empty() ? "" : ":") + value;
    } else if (option->check_name("--color")) {
      variables += Assigned("DTRUN_CONFIG_OUTPUT_COLOR", value);
    } else if (option->check_name("--ranks") || option->check_name("--processes-per-host")) {
      if (!counted) ranks = {"--nproc_per_node=" + value};
    } else if (!option->check_name("--hosts") || value != "1") {
      left_out.insert(left_out.end(), {word, value});
    }
  }
  if (!plugins.empty()) variables += Assigned("DTRUN_PLUGIN_PATH", plugins);
  ours.emplace_back(old ? "torch.distributed.launch" : "torchrun");
  ours.insert(ours.end(), ranks.begin(), ranks.end());
  ours.insert(ours.end(), rest.begin(), rest.end());
  std::string text = variables + Quoted(ours);
  if (!left_out.empty()) {
    text += fmt::format("\n  without {}, which torchrun's command line has no word for", Quoted(left_out));
  }
  return text;
}

}  // namespace dtrun::cli
