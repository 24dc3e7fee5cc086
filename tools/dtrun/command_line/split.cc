#include "tools/dtrun/command_line/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/secrets.h"
#include "core/base/suggest.h"
#include "core/base/text.h"
#include "tools/dtrun/command_line/advice.h"
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
    const std::string& word = words_[next_++];
    if (word == "--" && at_->get_option_no_throw("--set") != nullptr) {
      out_.command.assign(words_.begin() + static_cast<std::ptrdiff_t>(next_), words_.end());
      break;
    }
    // What `explain` is given may be lines of a log, which begin with rules of dashes.
    const bool text = at_->get_name() == "explain" && word.find_first_of(" \t\n") != word.npos;
    const bool option = word.size() > 1 && word[0] == '-' && word != "--" && !text;
    Result<bool> taken = option ? TakeOption(word) : TakeWord(word);
    if (!taken) return taken.error();
    if (!*taken) break;
  }
  return std::move(out_);
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
    Words rest = Rest();
    rest.erase(rest.begin());
    return Wrong(fmt::format("{} comes first, and variables set dtrun's own options; type: {}", word,
                             AsTorchrun(old, rest)));
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

Status Splitter::NotAVerb(const std::string& word) const {
  if (at_ != grammar_.root || word.find('/') != std::string::npos) return {};
  const bool known = grammar_.known(word);
  if (const auto advice = AdviceFor(word)) {
    if (!known) {
      return Wrong(fmt::format("'{}' is neither a verb nor a program; {}", word,
                               advice->superfluous ? WithoutWord(advice->text) : advice->text));
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
