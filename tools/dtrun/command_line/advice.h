// Suggests a corrected command that keeps the valid parts of the user's input.
//
// Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace dtrun::cli {

// Splits a command given as one word, such as 'python3 train.py'. Uses sh -c if only a shell can run it.
std::string AsWords(const std::string& command);

// "NAME=VALUE", as a shell accepts it before a program.
bool IsAssignment(const std::string& word);

// `own` and the command with its leading assignments turned into options. Nullopt: there is no assignment, or
// no program after it.
std::optional<std::string> WithVariables(std::vector<std::string> own,
                                         const std::vector<std::string>& command);

// The member of `verbs` that other tools call `word`.
std::optional<std::string> VerbLike(const std::string& word, const std::vector<std::string>& verbs);

// The only long name in `names` that begins with the letter of the short option: "--template" for "-t".
std::optional<std::string> LongFor(const std::string& short_name, const std::vector<std::string>& names);

}  // namespace dtrun::cli
