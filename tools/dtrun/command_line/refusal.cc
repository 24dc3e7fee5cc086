#include "tools/dtrun/command_line/refusal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "core/base/secrets.h"

namespace dtrun::cli {

std::vector<std::string> VerbsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!verb->get_group().empty()) names.push_back(verb->get_name());
  }
  return names;
}

std::vector<std::string> LongNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string Refusal(const CLI::ParseError& error, const CLI::App& root, const std::string& verb) {
  const CLI::App* at = &root;
  for (std::string_view rest = verb; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    at = at->get_subcommand(std::string(rest.substr(0, end)));
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
  const std::string self = verb.empty() ? "dtrun" : "dtrun " + verb;
  const std::vector<std::string> verbs = VerbsOf(*at);
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !verbs.empty()) {
    return fmt::format("dtrun: '{}' needs a verb: {}", self, fmt::join(verbs, ", "));
  }
  const std::string masked = MaskText(error.what());  // it repeats words
  std::string_view text = masked;
  constexpr std::string_view kRequired = " is required", kConversion = "Could not convert: ";
  if (text.ends_with(kRequired)) {
    text.remove_suffix(kRequired.size());
    const CLI::Option* missing = at->get_option_no_throw(std::string(text));
    return fmt::format("dtrun: '{}' needs {}{}; see {} --help", self, text,
                       missing == nullptr ? "" : ": " + missing->get_description(), self);
  }
  if (text.starts_with(kConversion)) {
    text.remove_prefix(kConversion.size());
    return fmt::format("dtrun: {}: not a number; see {} --help", text, self);
  }
  constexpr std::string_view kExtra = "not expected: ";
  if (const std::size_t extra = text.find(kExtra); extra != text.npos) {
    text.remove_prefix(extra + kExtra.size());
    return fmt::format("dtrun: '{}' is too much for '{}'; see {} --help", text, self, self);
  }
  return fmt::format("dtrun: {}; see {} --help", text, self);
}

}  // namespace dtrun::cli
