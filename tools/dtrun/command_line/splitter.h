// The implementation of SplitCommandLine. split.cc handles words and split_options.cc options. in_place.cc
// suggests replacements for other launchers' command lines, in_place_torchrun.cc for torchrun's. One thread;
// single use.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "tools/dtrun/command_line/first_word.h"
#include "tools/dtrun/command_line/flags.h"
#include "tools/dtrun/command_line/refusal.h"
#include "tools/dtrun/command_line/split.h"

namespace dtrun::cli {

using Words = std::vector<std::string>;

inline Error Wrong(std::string text) { return Error{DTRUN_INVALID_ARGUMENT, std::move(text)}; }

class Splitter {
 public:
  // Both arguments must outlive it.
  Splitter(const Grammar& grammar, const Words& words)
      : grammar_(grammar), words_(words), at_(grammar.root) {}

  Result<SplitWords> Run();

 private:
  // From now on reads the flags of `launcher`: its command line follows the first `own` words.
  void Read(const OtherLauncher& launcher, std::size_t own) {
    launcher_ = &launcher;
    launcher_from_ = own;
    last_wins_ = true;
  }
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

  // dtrun and all words before the last one read.
  Words Typed() const {
    Words own{"dtrun"};
    own.insert(own.end(), words_.begin(), words_.begin() + static_cast<std::ptrdiff_t>(next_) - 1);
    return own;
  }
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

  // An error for a word that is no program, or an unlikely one, and looks like a verb.
  Status NotAVerb(const std::string& word) const;

  // The replacement for another launcher's command.
  std::string InPlaceOf(const OtherLauncher& launcher) const;
  std::string Itself(const OtherLauncher& launcher) const;
  // For torchrun; with `old` for torch.distributed.launch.
  std::string AsTorchrun(bool old, const Words& rest) const;
  std::string InOurWords(const OtherLauncher& launcher, const Words& rest) const;
  // dtrun's command line without the last word read.
  std::string WithoutWord(const std::string& otherwise) const;

  const Grammar& grammar_;
  const Words& words_;
  CLI::App* at_;
  std::size_t next_ = 0;
  std::string config_;
  bool module_ = false;  // the program is a Python module
  const OtherLauncher* launcher_ = nullptr;
  std::size_t launcher_from_ = 0;
  bool last_wins_ = false;  // a repeated option overrides the earlier one instead of being an error
  std::map<const CLI::Option*, std::string> seen_;  // with the first spelling
  SplitWords out_;
};

}  // namespace dtrun::cli
