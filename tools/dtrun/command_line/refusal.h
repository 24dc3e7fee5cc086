// What CLI11 has refused, in dtrun's words.
//
// Pure; one thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace dtrun::cli {

// The verbs of `app` that a user may type.
std::vector<std::string> VerbsOf(const CLI::App& app);

// The long options of `app`, with their dashes.
std::vector<std::string> LongNames(const CLI::App& app);

// One line. `verb`: "config check"; empty: none was typed.
std::string Refusal(const CLI::ParseError& error, const CLI::App& root, const std::string& verb);

}  // namespace dtrun::cli
