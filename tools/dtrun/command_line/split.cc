#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/secrets.h"
#include "core/base/text.h"
#include "tools/dtrun/command_line/splitter.h"

namespace dtrun::cli {
namespace {

CLI::App* VerbNamed(CLI::App& app, const std::string& name) {
  const auto found = app.get_subcommands([&](CLI::App* verb) { return verb->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

bool HasPositionals(const CLI::App& app) {
  return !app.get_options([](const CLI::Option* option) { return option->get_positional(); }).empty();
}

}  // namespace

Result<SplitWords> Splitter::Run() {
  if (!words_.empty() && words_[0] == "help") return Help();
  while (next_ < words_.size()) {
    const auto from = words_.begin() + static_cast<std::ptrdiff_t>(next_);
    const std::string& word = words_[next_++];
    if (word == "--" && at_->get_option_no_throw("--set") != nullptr) {
      out_.command = After();
      dashes_ = true;
      break;
    }
    // What `explain` is given may be lines of a log, which begin with rules of dashes.
    const bool text = at_->get_name() == "explain" && word.find_first_of(" \t\n") != word.npos;
    const bool option = word.size() > 1 && word[0] == '-' && word != "--" && !text;
    const std::size_t refused = refused_.size();
    const Result<bool> taken = option ? TakeOption(word) : TakeWord(word);
    if (!taken) return Wrong(Refusals(taken.error().text));
    if (!*taken) break;
    if (refused_.size() == refused)
      kept_.insert(kept_.end(), from, words_.begin() + static_cast<std::ptrdiff_t>(next_));
  }
  if (!refused_.empty() && launcher_ == nullptr) {
    std::string rest;
    if (!for_mpirun_.empty())
      rest = fmt::format("for mpirun's own mapping, add --set launcher.name=mpirun {}",
                         MpirunArguments(for_mpirun_));
    if (const std::string type = ToType(); !type.empty())
      rest += (rest.empty() ? "type: " : "\n  type: ") + type;
    return Wrong(Refusals(rest));
  }
  return std::move(out_);
}

Words Splitter::WithNear(Words own) const {
  constexpr std::string_view kShell = "cluster.remote_shell=[\"ssh\",";
  for (const Words& near : near_) {
    const CLI::Option* option = at_->get_option_no_throw(near.front());
    const auto shell =
        std::ranges::find_if(own, [&](const std::string& word) { return word.starts_with(kShell); });
    if (near.front() == "dtrun") {
      if (at_ == grammar_.root) own.insert(std::ranges::find(own, "dtrun") + 1, near.begin() + 1, near.end());
    } else if (option == nullptr) {
      if (near.front().starts_with('-')) continue;
      own.insert(std::ranges::find(own, "dtrun"), near.begin(), near.end());
    } else if (shell != own.end() && near.back().starts_with(kShell)) {
      shell->replace(shell->size() - 1, 1,
                     "," + near.back().substr(kShell.size()));  // arguments of one command
    } else if (option->get_multi_option_policy() != CLI::MultiOptionPolicy::Throw ||
               !seen_.contains(option)) {
      own.insert(own.end(), near.begin(), near.end());
    }
  }
  return own;
}

std::string Splitter::Refusals(const std::string& text) const {
  if (refused_.empty() || text.empty()) return fmt::format("{}{}", fmt::join(refused_, "\n  "), text);
  return fmt::format("{}\n  {}", fmt::join(refused_, "\n  "), text);
}

std::string Splitter::ToType() const {
  if (each_host_ || (out_.command.empty() && config_.empty())) return {};
  Words all = WithNear(Typed());
  if (dashes_) all.emplace_back("--");
  std::ranges::copy(out_.command, std::back_inserter(all));
  return Quoted(all);
}

Result<SplitWords> Splitter::Help() {
  for (next_ = 1; next_ < words_.size(); ++next_) {
    CLI::App* verb = VerbNamed(*at_, words_[next_]);
    if (verb == nullptr && grammar_.option && grammar_.option(words_[next_]))
      return Wrong(fmt::format("'{0}' is an option of a job; write dtrun config explain {0}", words_[next_]));
    if (verb == nullptr) return Wrong(NoVerb(words_[next_]));
    Enter(verb);
  }
  out_.words.emplace_back("--help");
  return std::move(out_);
}

std::string Splitter::UnknownLong(const std::string& name,
                                  const std::string& value) const {  // "": none
  const std::string key = TakesJobs() && grammar_.key ? grammar_.key(name.substr(2)) : "";
  if (key.empty()) return Unknown(name);
  const std::string set = key + '=' + (value.empty() ? "VALUE" : value);
  return fmt::format("unknown option '{}'; write --set {}; options of the program go after it", name,
                     Quoted({set}));
}

void Splitter::Enter(CLI::App* verb) {
  at_ = verb;
  out_.verb += (out_.verb.empty() ? "" : " ") + verb->get_name();
  out_.words.push_back(verb->get_name());
  seen_.clear();
}

Result<bool> Splitter::TakeWord(const std::string& word) {
  if (module_) {
    out_.command = Rest();
    out_.command.insert(out_.command.begin(), {"python3", "-m"});
    return false;
  }
  const bool old = word == "torch.distributed.launch";
  if (old || word == "torch.distributed.run" || (word == "torchrun" && at_ == grammar_.root)) {
    return Wrong(fmt::format("{} comes first, and variables set dtrun's own options; type: {}", word,
                             InPlaceOfTorchrun(old, After())));
  }
  if (CLI::App* verb = VerbNamed(*at_, word)) {
    Enter(verb);
    return true;
  }
  if (word.ends_with(".toml") && at_->get_option_no_throw("--config") != nullptr) return TakeConfig(word);
  if (Here().takes_program) return TakeProgram(word);
  if (HasPositionals(*at_)) {
    out_.words.push_back(word);
    return true;
  }
  if (out_.verb == "env") {
    Words own = Typed();
    if (own.back() == "env") own.pop_back();
    if (const auto meant = WithVariables(std::move(own), Rest())) {
      return Wrong(fmt::format("'dtrun env' prints variables; to set one of the ranks: {}", *meant));
    }
    const bool alone = next_ == words_.size() && word.find_first_of("./=") == word.npos;
    return Wrong(
        fmt::format("'dtrun env' prints variables and takes no '{0}'; {1}to run the program env, type: "
                    "dtrun -- env {0} ...",
                    word, alone ? fmt::format("a dialect is named by --as {}; ", word) : ""));
  }
  return Wrong(NoVerb(word));
}

Result<bool> Splitter::TakeConfig(const std::string& file) {
  if (!config_.empty()) {
    return Wrong(fmt::format("two configs, '{}' and '{}'; a job has one, and --set changes options of it",
                             config_, file));
  }
  config_ = file;
  out_.words.insert(out_.words.end(), {"--config", file});
  return true;
}

Result<bool> Splitter::TakeProgram(const std::string& word) {
  if (Trim(word).empty()) return Wrong("the program's name is empty");
  if (word.find(' ') != std::string::npos && !grammar_.known(word)) {
    return Wrong(
        fmt::format("there is no program '{}'; write the program and its arguments as separate words: {} {}",
                    word, Quoted(Typed()), AsWords(word)));
  }
  if (IsAssignment(word) && !grammar_.known(word)) {
    if (const auto meant = WithVariables(Typed(), Rest())) {
      return Wrong(fmt::format("'{}' is not a program; to set a variable of the ranks: {}", word, *meant));
    }
  }
  if (word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json")) {
    return Wrong(
        fmt::format("'{}' is not a program, and dtrun's configs are TOML: {} JOB.toml", word, Self()));
  }
  out_.command = Rest();
  if (const auto launcher = LauncherOf(out_.command)) return Wrong(InPlaceOf(*launcher));
  if (Status meant = NotAVerb(word); !meant) return meant.error();
  for (std::size_t i = 1; i + 1 < out_.command.size(); ++i) {
    if (out_.command[i] != ":" || !out_.command[i + 1].starts_with('-')) continue;
    return Wrong(fmt::format(
        "after ':' mpirun takes another program for other ranks, but a dtrun job has one program: let it "
        "branch on the variable RANK, or write sh -c 'case $RANK in ...'; to pass ':' on: {} -- {}",
        Quoted(Typed()), Quoted(out_.command)));
  }
  return false;
}

std::string Splitter::InPlaceOfTorchrun(bool old, const Words& rest) const {
  const auto option = [this](const std::string& word) -> const CLI::Option* {
    const CLI::Option* own = at_->get_option_no_throw(word);
    return own != nullptr ? own : grammar_.root->get_option_no_throw(word);
  };
  return AsTorchrun(out_.words, option, old, rest);
}

std::string Splitter::InPlaceOf(const OtherLauncher& launcher) const {
  const Words rest(out_.command.begin() + static_cast<std::ptrdiff_t>(launcher.words), out_.command.end());
  const std::string text =
      fmt::format("{} is a launcher too, and every rank would start a job of its own; type", launcher.name);
  const std::string itself =
      fmt::format("\n  to run {} itself: {} -- {}", launcher.name, Quoted(Typed()), Quoted(out_.command));
  if (launcher.torchrun) return text + ": " + InPlaceOfTorchrun(launcher.old, rest) + itself;
  Words typed = kept_;
  typed.insert(typed.end(), rest.begin(), rest.end());
  Splitter both(grammar_, typed);
  both.launcher_ = &launcher;
  both.launcher_from_ = kept_.size();
  both.near_ = near_;
  const auto read = both.Run();
  if (!read) return text + " dtrun in its place\n  " + read.error().text;
  const std::string refused = both.refused_.empty() ? "" : "\n  " + both.Refusals("");
  if (read->command.empty()) return text + " dtrun in its place, and a program" + refused;
  Words ours{"dtrun"};
  std::ranges::replace_copy(read->words, std::back_inserter(ours), std::string("--ranks"), std::string("-n"));
  const std::string translated = InOurWords(launcher, both.WithNear(std::move(ours)), *read);
  if (!launcher.mpi) return text + translated + refused + itself;
  return fmt::format("{}{}{}\n  to have {} start the ranks, add --set launcher.name=mpirun{}{}", text,
                     translated, refused, launcher.name,
                     launcher.name == "mpirun" ? "" : " --set launcher.options.program=" + launcher.name,
                     both.for_mpirun_.empty() ? "" : " " + MpirunArguments(both.for_mpirun_));
}

std::string Splitter::WithoutWord(const std::string& otherwise) const {
  Words typed = kept_;
  std::ranges::copy(After(), std::back_inserter(typed));
  const auto read = Splitter(grammar_, typed).Run();
  if (!read) return fmt::format("leave it out; then: {}", read.error().text);
  if (read->command.empty()) return otherwise;
  typed.insert(typed.begin(), "dtrun");
  return "leave it out: " + Quoted(typed);
}

Status Splitter::NotAVerb(const std::string& word) const {
  if (at_ != grammar_.root || word.find('/') != std::string::npos) return {};
  const bool known = grammar_.known(word);
  if (const VerbAdvice* advice = AdviceFor(word)) {
    if (!known) {
      return Wrong(fmt::format(
          "'{}' is neither a verb nor a program; {}", word,
          advice->superfluous ? WithoutWord(std::string(advice->text)) : std::string(advice->text)));
    }
    if (advice->beats_programs && !grammar_.known("./" + word)) {
      return Wrong(
          fmt::format("'{}' is not a verb of dtrun; {}; to run this system's program {}: dtrun -- {}", word,
                      advice->text, word, Quoted(out_.command)));
    }
  }
  Words verbs = VerbsOf(*at_);
  verbs.emplace_back("help");
  const auto nearest = Nearest(word, verbs);
  const bool file = word.find('.') != std::string::npos;  // verbs have no extension
  if (known || file || !nearest) return {};
  return Wrong(fmt::format("'{}' is neither a verb nor a program; did you mean 'dtrun {}'?", word, *nearest));
}

// The only place that masks secrets in messages.
Result<SplitWords> SplitCommandLine(const Grammar& grammar, const Words& words) {
  Result<SplitWords> split = Splitter(grammar, words).Run();
  if (!split) return Wrong(MaskText(split.error().text));
  for (Words* lines : {&split->assumed, &split->warned}) {
    for (std::string& line : *lines) line = MaskText(line);
  }
  split->swallowed = MaskText(split->swallowed);
  return split;
}

}  // namespace dtrun::cli
