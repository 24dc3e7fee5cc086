// Splits a command line into dtrun's own words, for CLI11, and the job's command.
//
// The first word that is neither an option nor its value decides. It is a verb, a config (FILE.toml) or else
// the program, and everything after the program belongs to it. "--" also ends dtrun's own words.
//
// Invalid input is rejected here, with an alternative, because CLI11 does not know other launchers' options.
// Pure except for `known`; one thread.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace dtrun::cli {

struct SplitWords {
  std::vector<std::string> words;              // for CLI11, without the program name
  std::vector<std::string> command;            // of the job; empty: none given
  std::string verb;                            // "config check"; empty: none
  std::map<std::string, std::string> spelled;  // spec::Request::spelled
  std::vector<std::string> assumed;            // a line for each conversion from another launcher's spelling
  std::string swallowed;            // the last word is an option's value but may be meant as the program
  std::vector<std::string> warned;  // a line for each input that has no effect or may be a mistake
};

struct Grammar {
  CLI::App* root = nullptr;
  std::vector<const CLI::App*> runs;  // verbs, besides the root, that take a program
  // Whether a program with this name exists.
  std::function<bool(const std::string& name)> known;
  // Whether an option with this name exists in configs. Empty: unknown.
  std::function<bool(const std::string& name)> option = {};
  // Whether a file with this name exists. Empty: unknown.
  std::function<bool(const std::string& name)> file = {};
  // The option key that a flag with this name, without dashes, may stand for; empty: none. May be empty.
  std::function<std::string(const std::string& name)> key = {};
};

// Errors name the word and suggest an alternative. All flags of other launchers that dtrun cannot take are in
// one error, with the command to type in its place. Secrets are masked in errors and lines.
Result<SplitWords> SplitCommandLine(const Grammar& grammar, const std::vector<std::string>& words);

// One line for an error of CLI11. `verb`: "config check"; empty: none was typed.
std::string Refusal(const CLI::ParseError& error, const CLI::App& root, const std::string& verb);

}  // namespace dtrun::cli
