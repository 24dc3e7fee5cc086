// Error messages for rejected command lines, with the nearest valid alternative.
//
// Pure; one thread.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace dtrun::cli {

// The public verbs of `app`.
std::vector<std::string> VerbsOf(const CLI::App& app);

// The long options of `app`, including their dashes.
std::vector<std::string> LongNames(const CLI::App& app);

// The position of a rejected word.
struct Position {
  const CLI::App& root;
  const CLI::App& at;  // the root, or the last verb
  std::string self;    // "dtrun", "dtrun config"
  bool takes_program;  // `at` takes a program
  std::string config;  // the given config; empty: none
};

std::string NoVerb(const Position& position, const std::string& word);

// `name`: without its value.
std::string UnknownOption(const Position& position, const std::string& name);

// Why `value`, given to `option`, is not a config; unset if it may be one.
std::optional<std::string> NotAConfig(const std::string& option, const std::string& value, bool exists);

// One line for an error of CLI11. `verb`: "config check"; empty: none was typed.
std::string Refusal(const CLI::ParseError& error, const CLI::App& root, const std::string& verb);

}  // namespace dtrun::cli
