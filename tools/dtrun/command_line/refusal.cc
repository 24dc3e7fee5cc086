// Error messages for rejected command lines, with the nearest valid alternative.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "core/base/secrets.h"
#include "core/base/text.h"
#include "tools/dtrun/command_line/splitter.h"

namespace dtrun::cli {
namespace {

// Verbs without a group are internal and not listed.
std::vector<const CLI::App*> ShownVerbs(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* verb) { return !verb->get_group().empty(); });
}

// "plan", "config list": adds the verbs below `app` that have the option `name`.
void AddVerbsWith(const std::string& name, const CLI::App& app, const std::string& before, Words* to) {
  for (const CLI::App* verb : ShownVerbs(app)) {
    if (verb->get_option_no_throw(name) != nullptr) to->push_back(before + verb->get_name());
    AddVerbsWith(name, *verb, before + verb->get_name() + " ", to);
  }
}

// The long options of `app`, including their dashes.
Words LongNames(const CLI::App& app) {
  Words names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// The only long name in `names` that begins with the letter of the short option: "--template" for "-t".
std::optional<std::string> LongFor(const std::string& short_name, const Words& names) {
  if (short_name.size() != 2) return std::nullopt;
  const auto alike = [&](const std::string& name) { return name.starts_with("--" + short_name.substr(1)); };
  const auto found = std::ranges::find_if(names, alike);
  if (found == names.end() || std::ranges::count_if(names, alike) != 1) return std::nullopt;
  return *found;
}

}  // namespace

Words VerbsOf(const CLI::App& app) {
  Words names;
  for (const CLI::App* verb : ShownVerbs(app)) names.push_back(verb->get_name());
  return names;
}

std::string NoVerb(const Position& position, const std::string& word) {
  const Words verbs = VerbsOf(position.at);
  if (verbs.empty())
    return fmt::format("'{}' takes no '{}'; see {} --help", position.self, word, position.self);
  auto nearest = VerbLike(word, verbs);
  if (!nearest) nearest = Nearest(word, verbs);
  return fmt::format("'{}' has no verb '{}'; {}", position.self, word,
                     nearest ? fmt::format("did you mean '{}'?", *nearest)
                             : fmt::format("its verbs: {}", fmt::join(verbs, ", ")));
}

std::string UnknownOption(const Position& position, const std::string& name) {
  std::string text = fmt::format("unknown option '{}'", name);
  if (&position.at != &position.root) text += fmt::format(" of '{}'", position.self);
  if (position.takes_program && position.root.get_option_no_throw(name) != nullptr) {
    return text + fmt::format("; it goes before the verb: dtrun {}{}", name,
                              position.self.substr(position.self.find(' ')));
  }
  Words names = LongNames(position.at);
  if (const auto whole = LongFor(name, names)) return text + fmt::format("; did you mean {}?", *whole);
  if (position.takes_program) std::ranges::move(ForeignNames(), std::back_inserter(names));
  for (std::string& one : names) one.erase(0, one.find_first_not_of('-'));
  const std::string bare = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  if (const auto nearest = Nearest(bare, names)) {
    return text + fmt::format("; did you mean '--{}'?", *nearest);
  }
  Words verbs;
  // A letter means something else in another verb.
  const bool likely = &position.at == &position.root || position.takes_program || name.starts_with("--");
  if (likely) AddVerbsWith(name, position.root, "", &verbs);
  if (!verbs.empty()) {
    const bool own = &position.at != &position.root && !position.takes_program;
    return text + fmt::format("; '{}' belongs to the verb{} {}: dtrun {} {}{}", name,
                              verbs.size() == 1 ? "" : "s", fmt::join(verbs, ", "), verbs.front(), name,
                              own ? fmt::format("; {} --help lists its own", position.self) : "");
  }
  if (!position.takes_program) return text + fmt::format("; {} --help lists them", position.self);
  if (!position.config.empty()) {
    return text + fmt::format(
                      "; put arguments of the program into job.command of '{}', or give the whole command "
                      "here: {} {} PROGRAM {}",
                      position.config, position.self, position.config, name);
  }
  return text + fmt::format("; options of the program go after it: {} PROGRAM {}; {} --help lists dtrun's",
                            position.self, name, position.self);
}

std::optional<std::string> NotAConfig(const std::string& option, const std::string& value, bool exists) {
  if (option == "-c" && IsDigits(value) && !exists) {
    return fmt::format("-c {}: -c names a config here, and there is no file '{}'; for srun's -c: {}", value,
                       value, AdviceOf(*FindForeignFlag("--cpus-per-task"), value));
  }
  if (!value.ends_with(".py") && !value.ends_with(".sh")) return std::nullopt;
  return fmt::format(
      "{} takes a config, a TOML file, and '{}' is a program, which goes after dtrun's options: dtrun -n 2 "
      "{} {}",
      option, value, value.ends_with(".py") ? "python3" : "bash", value);
}

std::string Refusal(const CLI::ParseError& error, const CLI::App& root, const std::string& verb) {
  const CLI::App* at = &root;
  for (std::string_view rest = verb; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    at = at->get_subcommand(std::string(rest.substr(0, end)));
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
  const std::string self = verb.empty() ? "dtrun" : "dtrun " + verb;
  const Words verbs = VerbsOf(*at);
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !verbs.empty()) {
    return fmt::format("dtrun: '{}' needs a verb: {}", self, fmt::join(verbs, ", "));
  }
  const std::string masked = MaskText(error.what());  // it quotes words
  std::string_view text = masked;
  constexpr std::string_view kRequired = " is required", kConversion = "Could not convert: ";
  if (text.ends_with(kRequired)) {
    text.remove_suffix(kRequired.size());
    const CLI::Option* missing = at->get_option_no_throw(std::string(text));
    std::string what = missing == nullptr ? "" : ": " + missing->get_description();
    if (what.size() > 2) what[2] = ToLower(what[2]);
    return fmt::format("dtrun: '{}' needs {}{}; see {} --help", self, text, what, self);
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
