#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "tools/dtrun/command_line/splitter.h"

namespace dtrun::cli {

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
  both.last_wins_ = true;
  const auto read = both.Run();
  if (!read) return "type dtrun in its place\n  " + read.error().text;
  if (read->command.empty()) return "type dtrun in its place, and a program";
  Words ours{"dtrun"};
  std::ranges::replace_copy(read->words, std::back_inserter(ours), std::string("--ranks"), std::string("-n"));
  const bool hosts = std::ranges::count(ours, "--hosts") + std::ranges::count(ours, "-N") > 0;
  if (!launcher.setting.empty() && (hosts || !launcher.setting.starts_with("cluster."))) {
    ours.insert(ours.end(), {"--set", launcher.setting});
  }
  std::string text = fmt::format("type: {} {}", Quoted(ours), Quoted(read->command));
  if (!launcher.otherwise.empty()) text += "\n  " + launcher.otherwise;
  if (!launcher.mpi) return text + Itself(launcher);
  text += fmt::format("\n  to have {} start the ranks, add --set launcher.name=mpirun", launcher.name);
  if (launcher.name != "mpirun") text += " --set launcher.options.program=" + launcher.name;
  return text;
}

}  // namespace dtrun::cli
