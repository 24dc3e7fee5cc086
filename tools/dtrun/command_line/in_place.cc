#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <string_view>

#include "tools/dtrun/command_line/splitter.h"

namespace dtrun::cli {
namespace {

constexpr std::string_view kOnProcessors = "job.env.ACCELERATE_USE_CPU=true";

bool HasAny(const Words& words, std::initializer_list<std::string_view> of) {
  return std::ranges::any_of(of, [&](std::string_view one) { return std::ranges::count(words, one) > 0; });
}

bool NamesHosts(const Words& words) {
  return HasAny(words, {"--hosts", "--host", "-H", "--hostfile", "--config", "-c"});
}

}  // namespace

std::string Splitter::InPlaceOf(const OtherLauncher& launcher) const {
  const Words rest(out_.command.begin() + static_cast<std::ptrdiff_t>(launcher.words), out_.command.end());
  std::string text =
      fmt::format("{} is a launcher too, and every rank would start a job of its own; ", launcher.name);
  if (!launcher.torchrun) return text + InOurWords(launcher, rest);
  Words ours{"dtrun"};
  if (out_.verb == "plan") ours.emplace_back("plan");
  ours.emplace_back(launcher.old ? "torch.distributed.launch" : "torchrun");
  ours.insert(ours.end(), rest.begin(), rest.end());
  return text + "type: " + Quoted(ours) + Itself(launcher);
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
  std::string notes = launcher.otherwise.empty() ? "" : "\n  " + launcher.otherwise;
  const bool hosts = HasAny(ours, {"--hosts", "-H", "-N"});
  if (!launcher.setting.empty() && (hosts || !launcher.setting.starts_with("cluster."))) {
    ours.insert(ours.end(), {"--set", launcher.setting});
  } else if (const auto count = std::ranges::find(ours, "-N"); count != ours.end() && !NamesHosts(ours)) {
    if (count[1] == "1") {
      ours.erase(count, count + 2);
    } else {
      notes += "\n  and name the hosts: --hosts node0,node1";
    }
  }
  if (launcher.each_gpu && !HasAny(ours, {"-n", "--processes-per-host", "--hostfile", kOnProcessors})) {
    ours.insert(ours.end(), {"-n", "gpu"});
    notes +=
        fmt::format("\n  -n gpu is a rank for each GPU, as {} starts them; without GPUs write a number: -n 4",
                    launcher.name);
  }
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
