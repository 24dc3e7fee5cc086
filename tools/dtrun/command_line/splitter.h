// The implementation of SplitCommandLine. split.cc handles words and split_options.cc options; in_place.cc
// has the replacements for other launchers' command lines, and refusal.cc the texts for words that dtrun does
// not know. One thread; single use.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "tools/dtrun/command_line/first_word.h"
#include "tools/dtrun/command_line/flags.h"
#include "tools/dtrun/command_line/split.h"

namespace dtrun::cli {

inline Error Wrong(std::string text) { return Error{DTRUN_INVALID_ARGUMENT, std::move(text)}; }

// The position of a rejected word.
struct Position {
  const CLI::App& root;
  const CLI::App& at;  // the root, or the last verb
  std::string self;    // "dtrun", "dtrun config"
  bool takes_program;  // `at` takes a program
  std::string config;  // the given config; empty: none
};

// The public verbs of `app`.
Words VerbsOf(const CLI::App& app);
std::string NoVerb(const Position& position, const std::string& word);
// `name`: without its value.
std::string UnknownOption(const Position& position, const std::string& name);
// Why `value`, given to `option`, is not a config; unset if it may be one.
std::optional<std::string> NotAConfig(const std::string& option, const std::string& value, bool exists);

// ": ", the command of dtrun that does what `launcher` does with these words, and notes. `read`: its command
// line as dtrun reads it; `ours`: dtrun's words of it.
std::string InOurWords(const OtherLauncher& launcher, Words ours, const SplitWords& read);
// --set of the arguments that only mpirun takes.
std::string MpirunArguments(const Words& arguments);
// `dtrun torchrun`, or with `old` torch.distributed.launch, with `rest` and variables for dtrun's own
// `words`.
std::string AsTorchrun(const Words& words, const std::function<const CLI::Option*(const std::string&)>& find,
                       bool old, const Words& rest);

class Splitter {
 public:
  // Both arguments must outlive it.
  Splitter(const Grammar& grammar, const Words& words)
      : grammar_(grammar), words_(words), at_(grammar.root) {}

  Result<SplitWords> Run();

 private:
  // The launcher of the last word; null: none.
  const OtherLauncher* Owner() const { return next_ > launcher_from_ ? launcher_ : nullptr; }
  const ForeignFlag* Foreign(const std::string& name) const {
    return FindForeignFlag(name, Owner() == nullptr ? "" : Owner()->family);
  }
  // Whether the flag has a different meaning in that launcher.
  bool IsOwners(const ForeignFlag* flag) const {
    return flag != nullptr && Owner() != nullptr && IsOf(*flag, Owner()->family);
  }

  // True at the root and at verbs with the flags of a job.
  bool TakesJobs() const { return at_->get_option_no_throw("--hosts") != nullptr; }
  std::string Self() const { return out_.verb.empty() ? "dtrun" : "dtrun " + out_.verb; }

  // dtrun and the words before the last one read, as typed, without refused flags.
  Words Typed() const {
    Words own{"dtrun"};
    own.insert(own.end(), kept_.begin(), kept_.end());
    return own;
  }
  // The words after the last one read.
  Words After() const { return {words_.begin() + static_cast<std::ptrdiff_t>(next_), words_.end()}; }
  // The last word read and all words after it.
  Words Rest() const { return {words_.begin() + static_cast<std::ptrdiff_t>(next_) - 1, words_.end()}; }

  Position Here() const {
    const bool takes_program = at_ == grammar_.root || std::ranges::count(grammar_.runs, at_) > 0;
    return {*grammar_.root, *at_, Self(), takes_program, config_};
  }
  std::string NoVerb(const std::string& word) const { return cli::NoVerb(Here(), word); }
  std::string Unknown(const std::string& option) const { return UnknownOption(Here(), option); }
  std::string UnknownLong(const std::string& name, const std::string& value) const;  // "": none

  // dtrun help [VERB]: the following words are verbs, and nothing is run.
  Result<SplitWords> Help();
  void Enter(CLI::App* verb);

  // These return false if they have consumed the rest.
  Result<bool> TakeWord(const std::string& word);
  Result<bool> TakeConfig(const std::string& file);
  Result<bool> TakeProgram(const std::string& word);
  Result<bool> TakeOption(const std::string& word);
  // Whether it is a flag of both dtrun's root and another launcher. If so, moves it before the verb.
  bool TakeForRoot(const std::string& name);
  // The next word. `form`: shown in the error if there is none.
  Result<std::string> NextValue(const std::string& name, const std::string& form);
  // `word` is `name`, optionally with "=VALUE" from `equals` on.
  Result<bool> TakeOwn(const CLI::Option& option, const std::string& name, const std::string& word,
                       std::size_t equals);
  Result<bool> Add(const CLI::Option& option, const std::string& name, std::string value);
  // The value of `name` follows `equals`, or is the next word.
  Result<bool> TakeForeign(const ForeignFlag& flag, const std::string& name, const std::string& word,
                           std::size_t equals);
  Result<bool> TakeModule(const ForeignFlag& flag, const std::string& name, const std::string& word,
                          std::size_t equals);
  // Keeps a foreign flag, with its values, that dtrun cannot take; `near`: dtrun's words that are near to it.
  void Refuse(const ForeignFlag& flag, const std::string& name, const Words& values, ForeignWords near);
  // `own`, which begins with "dtrun", with the words near to refused flags.
  Words WithNear(Words own) const;
  // The refused flags, and then `text`.
  std::string Refusals(const std::string& text) const;
  // The command line without the refused flags; empty: it would run nothing, or another job on each host.
  std::string ToType() const;

  // An error for a word that is no program, or an unlikely one, and looks like a verb.
  Status NotAVerb(const std::string& word) const;

  // The replacement for another launcher's command.
  std::string InPlaceOf(const OtherLauncher& launcher) const;
  std::string InPlaceOfTorchrun(bool old, const Words& rest) const;
  // dtrun's command line without the last word read.
  std::string WithoutWord(const std::string& otherwise) const;

  const Grammar& grammar_;
  const Words& words_;
  CLI::App* at_;
  std::size_t next_ = 0;
  std::string config_;
  bool module_ = false;  // the program is a Python module
  // The words after the first `launcher_from_` are this one's command line; null: all are dtrun's own.
  const OtherLauncher* launcher_ = nullptr;
  std::size_t launcher_from_ = 0;
  std::map<const CLI::Option*, std::string> seen_;  // with the first spelling
  Words kept_;                                      // dtrun's own words as typed, without refused flags
  bool dashes_ = false;                             // "--" precedes the program
  Words refused_;                                   // a line for each refused flag
  bool each_host_ = false;                          // one of them is of a command that each host runs
  std::vector<Words> near_;
  Words for_mpirun_;  // refused flags that mpirun would take
  SplitWords out_;
};

}  // namespace dtrun::cli
