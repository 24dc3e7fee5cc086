// A command line, split into dtrun's own words, as CLI11 reads them, and the job's command.
//
// The first word that is neither an option nor its value decides: the name of a verb is the verb, FILE.toml
// is the config, anything else is the program, and all that follows it is the program's. "--" ends dtrun's
// own words as well. What cannot be meant is refused here, with what could be: CLI11 knows only our options,
// and no other launcher's. Pure but for `known`; one thread.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace dtrun::cli {

struct SplitWords {
  std::vector<std::string> words;              // for CLI11, without the name of the program
  std::vector<std::string> command;            // the job's; empty: none was given
  std::string verb;                            // "config check"; empty: none
  std::map<std::string, std::string> spelled;  // config::Request::spelled
  std::vector<std::string> assumed;  // a line for each thing that was typed in another launcher's spelling
  std::string swallowed;             // the last word is an option's value and may be meant as the program
  std::vector<std::string> warned;   // a line for each thing that has no effect or may be a mistake
};

struct Grammar {
  CLI::App* root = nullptr;
  std::vector<const CLI::App*> runs;  // verbs that take a program besides the root
  // Whether there is a program of that name.
  std::function<bool(const std::string& name)> known;
  // Whether a config has an option of that name. Empty: nobody knows.
  std::function<bool(const std::string& name)> option = {};
  // Whether there is a file of that name. Empty: nobody knows.
  std::function<bool(const std::string& name)> file = {};
  // The key of the option that a flag of that name, without dashes, may be meant for; empty: none. May be
  // empty.
  std::function<std::string(const std::string& name)> key = {};
};

// Errors name the word, and say what to type instead. Secrets are masked in them and in the lines.
Result<SplitWords> SplitCommandLine(const Grammar& grammar, const std::vector<std::string>& words);

}  // namespace dtrun::cli
