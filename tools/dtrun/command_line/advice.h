// What to type instead of what was typed, with all that was typed and is right.
//
// Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace dtrun::cli {

// Of a command in one word, such as 'python3 train.py': the words, or sh -c where only a shell can run it.
std::string AsWords(const std::string& command);

// "NAME=VALUE", as a shell takes it before a program.
bool IsAssignment(const std::string& word);

// `own` and the command, whose first words are assignments, with these as options; nullopt: there is no
// assignment, or no program behind.
std::optional<std::string> WithVariables(std::vector<std::string> own,
                                         const std::vector<std::string>& command);

// The one of `verbs` that other tools call `word`.
std::optional<std::string> VerbLike(const std::string& word, const std::vector<std::string>& verbs);

// The only one of the long `names` that begins as the short option does: "--template" for "-t".
std::optional<std::string> LongFor(const std::string& short_name, const std::vector<std::string>& names);

}  // namespace dtrun::cli
