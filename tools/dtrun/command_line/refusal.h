// What is refused of a command line, in dtrun's words, and the nearest that could be meant.
//
// Pure; one thread.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace dtrun::cli {

// The verbs of `app` that a user may type.
std::vector<std::string> VerbsOf(const CLI::App& app);

// The long options of `app`, with their dashes.
std::vector<std::string> LongNames(const CLI::App& app);

// Where a word stands that is refused.
struct Position {
  const CLI::App& root;
  const CLI::App& at;  // the root, or the verb that was read last
  std::string self;    // "dtrun", "dtrun config"
  bool takes_program;  // `at` runs one
  std::string config;  // that was given; empty: none
};

std::string NoVerb(const Position& position, const std::string& word);

// `name`: without its value.
std::string UnknownOption(const Position& position, const std::string& name);

// Why `value`, given to `option`, is no config; unset when it may be one.
std::optional<std::string> NotAConfig(const std::string& option, const std::string& value, bool exists);

// What CLI11 has refused: one line. `verb`: "config check"; empty: none was typed.
std::string Refusal(const CLI::ParseError& error, const CLI::App& root, const std::string& verb);

}  // namespace dtrun::cli
