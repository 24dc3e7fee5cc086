// The reader behind SplitCommandLine: split.cc has its words, split_options.cc its options, in_place.cc what
// it answers to another launcher's command line, and in_place_torchrun.cc to torchrun's. One thread; used
// once.
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
  // Both outlive it.
  Splitter(const Grammar& grammar, const Words& words)
      : grammar_(grammar), words_(words), at_(grammar.root) {}

  Result<SplitWords> Run();

 private:
  // The flags of another launcher whose command line stands behind the first `own` words.
  void Read(const OtherLauncher& launcher, std::size_t own) {
    launcher_ = &launcher;
    launcher_from_ = own;
    last_wins_ = true;
  }
  // Of the word that was read last; null: nobody's.
  const OtherLauncher* Owner() const { return next_ > launcher_from_ ? launcher_ : nullptr; }
  const ForeignFlag* Foreign(const std::string& name) const {
    return FindForeignFlag(name, Owner() == nullptr ? "" : Owner()->family);
  }
  // Means something else there than here.
  bool IsOwners(const ForeignFlag* flag) const {
    return flag != nullptr && Owner() != nullptr && IsOf(*flag, Owner()->family);
  }

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

  Position Here() const {
    const bool takes_program = at_ == grammar_.root || std::ranges::count(grammar_.runs, at_) > 0;
    return {*grammar_.root, *at_, Self(), takes_program, config_};
  }
  std::string NoVerb(const std::string& word) const { return cli::NoVerb(Here(), word); }
  std::string Unknown(const std::string& option) const { return UnknownOption(Here(), option); }
  std::string UnknownLong(const std::string& name, const std::string& value) const;  // "": it has none

  // dtrun help [VERB]: what stands behind it are verbs, and nothing is run.
  Result<SplitWords> Help();
  void Enter(CLI::App* verb);

  // These give false where the rest has been taken too.
  Result<bool> TakeWord(const std::string& word);
  Result<bool> TakeConfig(const std::string& file);
  Result<bool> TakeProgram(const std::string& word);
  Result<bool> TakeOption(const std::string& word);
  // Whether it is a flag of dtrun's root, which another launcher has too: it goes before the verb.
  bool TakeForRoot(const std::string& name);
  // The next word; `form`: what is added where there is none.
  Result<std::string> NextValue(const std::string& name, const std::string& form);
  // `word` is `name`, perhaps with "=VALUE" behind it, from `equals` on.
  Result<bool> TakeOwn(const CLI::Option& option, const std::string& name, const std::string& word,
                       std::size_t equals);
  Result<bool> Add(const CLI::Option& option, const std::string& name, std::string value);
  // The value of `name` stands behind `equals`, or is the next word.
  Result<bool> TakeForeign(const ForeignFlag& flag, const std::string& name, const std::string& word,
                           std::size_t equals);

  // A word that is no program, or none that anybody means, and reads like a verb.
  Status NotAVerb(const std::string& word) const;

  // What to type for a command that is another launcher's.
  std::string InPlaceOf(const OtherLauncher& launcher) const;
  std::string Itself(const OtherLauncher& launcher) const;
  // For torchrun, or torch.distributed.launch where `old`.
  std::string AsTorchrun(bool old, const Words& rest) const;
  std::string InOurWords(const OtherLauncher& launcher, const Words& rest) const;
  // dtrun's command line without the word that was read last.
  std::string WithoutWord(const std::string& otherwise) const;

  const Grammar& grammar_;
  const Words& words_;
  CLI::App* at_;
  std::size_t next_ = 0;
  std::string config_;
  bool module_ = false;  // the program is a Python module
  const OtherLauncher* launcher_ = nullptr;
  std::size_t launcher_from_ = 0;
  bool last_wins_ = false;                          // of an option that is given twice; else that is an error
  std::map<const CLI::Option*, std::string> seen_;  // and how it was typed first
  SplitWords out_;
};

}  // namespace dtrun::cli
