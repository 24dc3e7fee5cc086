#include "tools/dtrun/command_line/advice.h"

#include <algorithm>
#include <string_view>

#include "core/base/text.h"
#include "tools/dtrun/command_line/first_word.h"

namespace dtrun::cli {
namespace {

struct Synonyms {
  std::string_view words;  // each surrounded by spaces
  std::string_view verb;
};

constexpr Synonyms kSynonyms[] = {
    {" show print dump view ls options ", "list"},
    {" get describe info ", "explain"},
    {" info show ", "describe"},
    {" validate lint verify test ", "check"},
    {" new create generate template ", "init"},
};

}  // namespace

std::string AsWords(const std::string& command) {
  if (command.find_first_of(";|&<>$`\n") == std::string::npos) return command;
  return "sh -c " + Quoted({command});
}

bool IsAssignment(const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  const auto legal = [](char c) { return IsLetterOrDigit(c) || c == '_'; };
  return name.size() < word.size() && !name.empty() && !IsDigit(name[0]) && std::ranges::all_of(name, legal);
}

std::optional<std::string> WithVariables(std::vector<std::string> own,
                                         const std::vector<std::string>& command) {
  const auto program = std::ranges::find_if_not(command, IsAssignment);
  if (program == command.begin() || program == command.end() || program->starts_with('-'))
    return std::nullopt;
  for (auto one = command.begin(); one != program; ++one) {
    own.insert(own.end(), {"--set", "job.env." + *one});
  }
  own.insert(own.end(), program, command.end());
  return Quoted(own);
}

std::optional<std::string> VerbLike(const std::string& word, const std::vector<std::string>& verbs) {
  for (const Synonyms& row : kSynonyms) {
    std::string verb(row.verb);
    if (row.words.find(' ' + word + ' ') != std::string_view::npos && std::ranges::count(verbs, verb) > 0)
      return verb;
  }
  return std::nullopt;
}

std::optional<std::string> LongFor(const std::string& short_name, const std::vector<std::string>& names) {
  if (short_name.size() != 2) return std::nullopt;
  const auto alike = [&](const std::string& name) { return name.starts_with("--" + short_name.substr(1)); };
  const auto found = std::ranges::find_if(names, alike);
  if (found == names.end() || std::ranges::count_if(names, alike) != 1) return std::nullopt;
  return *found;
}

}  // namespace dtrun::cli
