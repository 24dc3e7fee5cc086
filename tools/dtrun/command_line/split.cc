#include "tools/dtrun/command_line/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "core/base/secrets.h"
#include "core/base/suggest.h"
#include "core/base/text.h"
#include "tools/dtrun/command_line/advice.h"
#include "tools/dtrun/command_line/first_word.h"
#include "tools/dtrun/command_line/flags.h"
#include "tools/dtrun/command_line/refusal.h"

namespace dtrun::cli {
namespace {

using Words = std::vector<std::string>;

Error Wrong(std::string text) { return Error{DTRUN_INVALID_ARGUMENT, std::move(text)}; }

CLI::App* VerbNamed(CLI::App& app, const std::string& name) {
  const auto found = app.get_subcommands([&](CLI::App* verb) { return verb->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

bool HasPositionals(const CLI::App& app) {
  return !app.get_options([](const CLI::Option* option) { return option->get_positional(); }).empty();
}

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// What a message shows for its value: KEY=VALUE would be masked, as a secret's name and value are.
std::string FormOf(const CLI::Option& option) {
  return option.check_name("--set") ? "job.grace=5s" : option.get_type_name();
}

class Splitter {
 public:
  Splitter(const Grammar& grammar, const Words& words)
      : grammar_(grammar), words_(words), at_(grammar.root) {}

  Result<SplitWords> Run() {
    if (!words_.empty() && words_[0] == "help") return Help();
    while (next_ < words_.size()) {
      const std::string& word = words_[next_++];
      if (word == "--" && at_->get_option_no_throw("--set") != nullptr) {
        out_.command.assign(words_.begin() + static_cast<std::ptrdiff_t>(next_), words_.end());
        break;
      }
      const bool option = word.size() > 1 && word[0] == '-' && word != "--";
      Result<bool> taken = option ? TakeOption(word) : TakeWord(word);
      if (!taken) return taken.error();
      if (!*taken) break;
    }
    return std::move(out_);
  }

 private:
  // The root, and the verbs with the flags of a job.
  bool TakesJobs() const { return at_->get_option_no_throw("--hosts") != nullptr; }
  std::string Self() const { return out_.verb.empty() ? "dtrun" : "dtrun " + out_.verb; }

  // dtrun, and what stands before the word that was read last.
  Words Typed() const {
    Words own{"dtrun"};
    own.insert(own.end(), words_.begin(), words_.begin() + static_cast<std::ptrdiff_t>(next_) - 1);
    return own;
  }
  // The word that was read last, and all behind it.
  Words Rest() const { return {words_.begin() + static_cast<std::ptrdiff_t>(next_) - 1, words_.end()}; }

  // dtrun help [VERB]: what stands behind it are verbs, and nothing is run.
  Result<SplitWords> Help() {
    for (next_ = 1; next_ < words_.size(); ++next_) {
      CLI::App* verb = VerbNamed(*at_, words_[next_]);
      if (verb == nullptr && grammar_.option && grammar_.option(words_[next_]))
        return Wrong(
            fmt::format("'{0}' is an option of a job; write dtrun config explain {0}", words_[next_]));
      if (verb == nullptr) return Wrong(NoVerb(words_[next_]));
      Enter(verb);
    }
    out_.words.emplace_back("--help");
    return std::move(out_);
  }

  Position Here() const {
    const bool takes_program = at_ == grammar_.root || std::ranges::count(grammar_.runs, at_) > 0;
    return {*grammar_.root, *at_, Self(), takes_program, config_};
  }
  std::string NoVerb(const std::string& word) const { return cli::NoVerb(Here(), word); }
  std::string Unknown(const std::string& option) const { return UnknownOption(Here(), option); }

  std::string UnknownLong(const std::string& name, const std::string& value) const {  // "": it has none
    const std::string key = TakesJobs() && grammar_.key ? grammar_.key(name.substr(2)) : "";
    if (key.empty()) return Unknown(name);
    const std::string set = key + '=' + (value.empty() ? "VALUE" : value);
    return fmt::format("unknown option '{}'; write --set {}; options of the program go after it", name,
                       Quoted({set}));
  }

  void Enter(CLI::App* verb) {
    at_ = verb;
    out_.verb += (out_.verb.empty() ? "" : " ") + verb->get_name();
    out_.words.push_back(verb->get_name());
    seen_.clear();
  }

  // False: the rest has been taken too.
  Result<bool> TakeWord(const std::string& word) {
    if (CLI::App* verb = VerbNamed(*at_, word)) {
      if (word == "torchrun") {
        return Wrong(
            "torchrun comes first: dtrun torchrun ...; dtrun's own options are set by DTRUN_CONFIG_<KEY> "
            "there");
      }
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

  Result<bool> TakeConfig(const std::string& file) {
    if (!config_.empty()) {
      return Wrong(fmt::format("two configs, '{}' and '{}'; a job has one, and --set changes options of it",
                               config_, file));
    }
    config_ = file;
    out_.words.insert(out_.words.end(), {"--config", file});
    return true;
  }

  Result<bool> TakeProgram(const std::string& word) {
    if (Trim(word).empty()) return Wrong("the program's name is empty");
    if (word.find(' ') != std::string::npos && !grammar_.known(word)) {
      return Wrong(fmt::format(
          "there is no program '{}'; write the program and its arguments as separate words: {} {}", word,
          Quoted(Typed()), AsWords(word)));
    }
    if (IsAssignment(word) && !grammar_.known(word)) {
      if (const auto meant = WithVariables(Typed(), Rest())) {
        return Wrong(fmt::format("'{}' is no program; to set a variable of the ranks: {}", word, *meant));
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
          Self(), Quoted(out_.command)));
    }
    return false;
  }

  // A word that is no program, or none that anybody means, and reads like a verb.
  Status NotAVerb(const std::string& word) const {
    if (at_ != grammar_.root || word.find('/') != std::string::npos) return {};
    const bool known = grammar_.known(word);
    if (const auto advice = AdviceFor(word)) {
      if (!known) return Wrong(fmt::format("'{}' is neither a verb nor a program; {}", word, advice->text));
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
    return Wrong(
        fmt::format("'{}' is neither a verb nor a program; did you mean 'dtrun {}'?", word, *nearest));
  }

  // What to type for a command that is another launcher's.
  std::string InPlaceOf(const OtherLauncher& launcher) const {
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

  std::string Itself(const OtherLauncher& launcher) const {
    return fmt::format("\n  to run {} itself: {} -- {}", launcher.name, Quoted(Typed()),
                       Quoted(out_.command));
  }

  std::string InOurWords(const OtherLauncher& launcher, const Words& rest) const {
    const Words own = Typed();
    Words typed(own.begin() + 1, own.end());
    typed.insert(typed.end(), rest.begin(), rest.end());
    Splitter both(grammar_, typed);
    both.last_wins_ = true;
    const auto read = both.Run();
    if (!read) return "type dtrun in its place\n  " + read.error().text;
    if (read->command.empty()) return "type dtrun in its place, and a program";
    Words ours{"dtrun"};
    std::ranges::replace_copy(read->words, std::back_inserter(ours), std::string("--ranks"),
                              std::string("-n"));
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

  Result<bool> TakeOption(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const bool is_long = name.starts_with("--");
    if (is_long || name.size() > 2) {
      if (const CLI::Option* own = at_->get_option_no_throw(name)) return TakeOwn(*own, name, word, equals);
      if (const ForeignFlag* foreign = FindForeignFlag(name))
        return TakeForeign(*foreign, name, word, equals);
      if (is_long) return Wrong(UnknownLong(name, equals == word.npos ? "" : word.substr(equals + 1)));
      const std::size_t digit = std::min(name.find_first_of("0123456789"), name.size());
      const ForeignFlag* foreign = digit > 2 ? FindForeignFlag(name.substr(0, digit)) : nullptr;  // -np2
      if (foreign != nullptr && equals == std::string::npos) {
        return TakeForeign(*foreign, name.substr(0, digit), word, digit - 1);
      }
    }
    // "-n4", "-qv", "-c=x": short ones, of which one that takes a value ends the word.
    for (std::size_t i = 1; i < word.size(); ++i) {
      const std::string one = {'-', word[i]};
      const CLI::Option* own = at_->get_option_no_throw(one);
      if (own == nullptr) {
        const ForeignFlag* foreign = FindForeignFlag(one);
        if (foreign != nullptr && i == 1) {
          return TakeForeign(*foreign, one, word,
                             word.size() == 2 ? std::string::npos
                             : word[2] == '=' ? 2
                                              : 1);
        }
        return Wrong(Unknown(word.size() > 2 ? word : one));
      }
      if (TakesValue(*own)) {
        std::string value = word.substr(i + 1);
        if (value.starts_with('=')) value.erase(0, 1);
        if (i + 1 < word.size()) return Add(*own, one, std::move(value));
        return TakeOwn(*own, one, one, std::string::npos);
      }
      out_.words.push_back(one);
    }
    return true;
  }

  // `word` is `name`, perhaps with "=VALUE" behind it, from `equals` on.
  Result<bool> TakeOwn(const CLI::Option& option, const std::string& name, const std::string& word,
                       std::size_t equals) {
    if (!TakesValue(option)) {
      if (equals != std::string::npos)
        return Wrong(fmt::format("{} takes no value; write {} alone", name, name));
      out_.words.push_back(word);
      return true;
    }
    if (equals != std::string::npos) return Add(option, name, word.substr(equals + 1));
    if (next_ == words_.size()) {
      return Wrong(fmt::format("{} needs a value: {} {}", name, name, FormOf(option)));
    }
    const std::string& value = words_[next_++];
    if (next_ == words_.size() && (value.ends_with(".py") || grammar_.known(value)))
      out_.swallowed = fmt::format("'{}' was taken as the value of {}", value, name);
    return Add(option, name, value);
  }

  Result<bool> Add(const CLI::Option& option, const std::string& name, std::string value) {
    const bool once = option.get_multi_option_policy() == CLI::MultiOptionPolicy::Throw;
    if (const auto [first, fresh] = seen_.try_emplace(&option, name); once && !fresh) {
      if (!last_wins_) {
        return Wrong(
            first->second == name
                ? fmt::format("{} is given twice; leave one of them out", name)
                : fmt::format("{} and {} are the same option; leave one of them out", first->second, name));
      }
      const auto earlier =
          std::ranges::find_if(out_.words, [&](const std::string& word) { return option.check_name(word); });
      out_.words.erase(earlier, earlier + 2);
    }
    if (value.empty() && !option.check_name("--ranks"))
      return Wrong(fmt::format("{} is empty; write {} {}", name, name, FormOf(option)));
    if (option.check_name("--config")) {
      if (const auto other = NotAConfig(name, value, grammar_.known("./" + value))) return Wrong(*other);
    }
    if (const std::string own = option.get_lnames().empty() ? name : "--" + option.get_lnames().back();
        own != name)
      out_.spelled[own + " " + value] = name;
    if (option.check_name("--config")) config_ = value;
    if (option.check_name("--set") && value.find('=') == std::string::npos && next_ < words_.size() &&
        !words_[next_].starts_with('-') && value.find('.') != std::string::npos) {
      const std::string& next = words_[next_];
      const bool other = next.ends_with(".py") || next.ends_with(".toml") || grammar_.known(next);
      return Wrong(fmt::format("{} takes a key and its value in one word; write {} {}={}", name, name, value,
                               other ? "VALUE" : next));
    }
    const bool digits = value.find_first_not_of("0123456789") == std::string::npos;
    if (option.check_name("--ranks") && TakesJobs() &&
        (value.empty() || (!digits && value != "gpu" && value != "cpu" && value != "auto"))) {
      return Wrong(
          fmt::format("{} '{}': expected a number of ranks, or gpu, cpu or auto for one for each GPU or core",
                      name, value));
    }
    out_.words.insert(out_.words.end(), {name, std::move(value)});
    return true;
  }

  // The value of `name` stands behind `equals`, or is the next word.
  Result<bool> TakeForeign(const ForeignFlag& flag, const std::string& name, const std::string& word,
                           std::size_t equals) {
    if (flag.reading == Reading::kOption) {
      const CLI::Option* own = at_->get_option_no_throw(std::string(flag.text));
      if (own == nullptr) return Wrong(Unknown(name));
      out_.assumed.push_back(fmt::format("{} is read as {}", name, flag.text));
      Result<bool> taken = TakeOwn(*own, name, word, equals);
      if (taken) out_.words.end()[-2] = std::string(flag.text);
      return taken;
    }
    if (!TakesJobs()) return Wrong(Unknown(name));  // another launcher has no such verb
    if (flag.reading == Reading::kModule) {
      Words rest(words_.begin() + static_cast<std::ptrdiff_t>(next_), words_.end());
      if (equals != std::string::npos) rest.insert(rest.begin(), word.substr(equals + 1));
      return Wrong(fmt::format("{} is a flag of {}; write the interpreter: {} python3 -m {}", name,
                               flag.launcher, Quoted(Typed()), rest.empty() ? "MODULE" : Quoted(rest)));
    }
    Result<ForeignWords> read = ReadForeign(flag, name, [&]() -> Result<std::string> {
      if (equals != std::string::npos) return word.substr(std::exchange(equals, std::string::npos) + 1);
      if (next_ == words_.size()) return Wrong(fmt::format("{} needs a value", name));
      return words_[next_++];
    });
    if (!read) return read.error();
    if (equals != std::string::npos)
      return Wrong(fmt::format("{} takes no value; write {} alone", name, name));
    out_.words.insert(out_.words.end(), read->words.begin(), read->words.end());
    if (!read->words.empty()) out_.spelled["--set " + read->words.back()] = name;
    (read->unset ? out_.unset : out_.assumed).push_back(std::move(read->assumed));
    return true;
  }

  const Grammar& grammar_;
  const Words& words_;
  CLI::App* at_;
  std::size_t next_ = 0;
  std::string config_;
  bool last_wins_ = false;                          // of an option that is given twice; else that is an error
  std::map<const CLI::Option*, std::string> seen_;  // and how it was typed first
  SplitWords out_;
};

}  // namespace

// Whatever a message repeats is masked here, and only here.
Result<SplitWords> SplitCommandLine(const Grammar& grammar, const Words& words) {
  Result<SplitWords> split = Splitter(grammar, words).Run();
  if (!split) return Wrong(MaskText(split.error().text));
  for (Words* lines : {&split->assumed, &split->unset}) {
    for (std::string& line : *lines) line = MaskText(line);
  }
  split->swallowed = MaskText(split->swallowed);
  return split;
}

}  // namespace dtrun::cli
