#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>
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

}  // namespace

std::string Splitter::InPlaceOf(const OtherLauncher& launcher) const {
  const Words rest(out_.command.begin() + static_cast<std::ptrdiff_t>(launcher.words), out_.command.end());
  std::string text =
      fmt::format("{} is a launcher too, and every rank would start a job of its own; ", launcher.name);
  if (!launcher.torchrun) return text + InOurWords(launcher, rest);
  return text + "type: " + AsTorchrun(launcher.old, rest) + Itself(launcher);
}

std::string Splitter::Itself(const OtherLauncher& launcher) const {
  return fmt::format("\n  to run {} itself: {} -- {}", launcher.name, Quoted(Typed()), Quoted(out_.command));
}

std::string Splitter::InOurWords(const OtherLauncher& launcher, const Words& rest) const {
  const Words own = Typed();
  Words typed(own.begin() + 1, own.end());
  typed.insert(typed.end(), rest.begin(), rest.end());
  Splitter both(grammar_, typed);
  both.Read(launcher, own.size() - 1);
  const auto read = both.Run();
  if (!read) return "type dtrun in its place\n  " + read.error().text;
  if (read->command.empty()) return "type dtrun in its place, and a program";
  Words ours{"dtrun"};
  std::ranges::replace_copy(read->words, std::back_inserter(ours), std::string("--ranks"), std::string("-n"));
  if (launcher.mpi) CountSlots(&ours);
  const bool names_hosts = NamesHosts(ours);
  std::string notes;
  if (!launcher.setting.empty() && !(names_hosts && launcher.setting.starts_with("cluster."))) {
    if (!HasAny(ours, {launcher.setting})) ours.insert(ours.end(), {"--set", launcher.setting});
    notes += "\n  " + launcher.otherwise;
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
  for (const std::string& line : read->warned) notes += "\n  " + line;
  std::string text = fmt::format("type: {} {}", Quoted(ours), Quoted(read->command)) + notes;
  if (!launcher.mpi) return text + Itself(launcher);
  text += fmt::format("\n  to have {} start the ranks, add --set launcher.name=mpirun", launcher.name);
  if (launcher.name != "mpirun") text += " --set launcher.options.program=" + launcher.name;
  return text;
}

std::string Splitter::WithoutWord(const std::string& otherwise) const {
  const Words own = Typed();
  Words typed(own.begin() + 1, own.end());
  typed.insert(typed.end(), words_.begin() + static_cast<std::ptrdiff_t>(next_), words_.end());
  const auto read = Splitter(grammar_, typed).Run();
  if (!read) return fmt::format("leave it out; then: {}", read.error().text);
  if (read->command.empty()) return otherwise;
  typed.insert(typed.begin(), "dtrun");
  return "leave it out: " + Quoted(typed);
}

}  // namespace dtrun::cli
