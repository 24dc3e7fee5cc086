#include "arguments.h"

#include <algorithm>
#include <charconv>
#include <regex>
#include <string_view>
#include <utility>

namespace dtrun::conformance::tool {
namespace {

constexpr int kMostRanks = 64;
constexpr int kMostRuns = 10'000;
constexpr int kLongest = 86'400;  // seconds

constexpr Flag kFlags[] = {
    {"--plugin", "FILE",
     "the plugin: libdtrun_backend_NAME.so, libdtrun_launcher_NAME.so or libdtrun_device_NAME.so"},
    {"--world", "N",
     "the most ranks that a case has, 1 to 64 (default 7); cases that need more are skipped. Collectives are "
     "tried in worlds of 1 to 4, and of N where it is given, calls drawn at random in worlds of 5 and 7, "
     "too"},
    {"--repeat", "N", "runs each case N times; the report says in how many of them it failed (default 1)"},
    {"--wide", nullptr,
     "tries what takes too long for each run: every collective in worlds of 5 and 7, each rank of each world "
     "as the "
     "one that is killed, and as much time that passes as the rules allow"},
    {"--only", "RE", "only the cases with a name, Suite.Case, that matches this regular expression"},
    {"--profile", "P", "only the cases of a profile: messages, host-collectives, launcher or devices"},
    {"--seed", "S",
     "of the calls that are drawn at random (default 20261121); the same seed draws the same calls"},
    {"--junit", "FILE", "writes the results as JUnit XML, too"},
    {"--list", nullptr, "prints the cases and the rules that each proves, and runs none"},
    {"--timeout", "SECONDS", "the time that a case has, and 5 s more to start and end (default 120)"},
    {"--set", "OPTION=VALUE",
     "a value of an option of the plugin, in the spelling of its type; may be repeated"},
    {"--env", "NAME=VALUE",
     "a variable of an allocation, for a launcher that is asked for hosts or how to connect to them; may be "
     "repeated"},
    {"--launch", "COMMAND",
     "starts each case as --world ranks, one for each process, by this command and the rank's own behind it, "
     "for "
     "libraries that allow no more; {ranks} in it is their number: --launch 'mpirun -n {ranks}'"},
    {"--version", nullptr, "prints the version of the program and of the ABI"},
    {"--help", nullptr, "prints this"},
};

// Of the program itself.
constexpr Flag kHidden[] = {{"--manual-page", nullptr, ""},
                            {"--run-case", "NAME", ""},
                            {"--record", "FILE", ""},
                            {"--shared", "FOLDER", ""}};

std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t corner = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = corner + (a[i - 1] == b[j - 1] ? 0 : 1);
      corner = std::exchange(row[j], std::min({changed, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row[b.size()];
}

const Flag& FlagOf(const std::string& name) {
  for (const std::span<const Flag> flags : {std::span<const Flag>(kFlags), std::span<const Flag>(kHidden)}) {
    for (const Flag& flag : flags) {
      if (name == flag.name) return flag;
    }
  }
  const auto nearest =
      std::ranges::min_element(kFlags, {}, [&](const Flag& flag) { return Distance(name, flag.name); });
  const bool meant = Distance(name, nearest->name) <= 3;
  throw UsageError("there is no argument '" + name + "'; " +
                   (meant ? std::string("did you mean '") + nearest->name + "'?" : "--help lists all"));
}

int Number(const std::string& flag, const std::string& text, int least, int most) {
  int value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    throw UsageError("'" + flag + "' is '" + text + "', must be a whole number from " +
                     std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

void CheckPattern(const std::string& text) {
  try {
    const std::regex pattern(text);
  } catch (const std::regex_error& error) {
    throw UsageError("'--only' is '" + text + "', which is no regular expression (" + error.what() +
                     "); put a backslash before what is meant literally");
  }
}

void AddPair(std::map<std::string, std::string>* to, const std::string& flag, const std::string& text,
             const std::string& must) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw UsageError("'" + flag + "' is '" + text + "', must be " + must);
  (*to)[text.substr(0, equals)] = text.substr(equals + 1);
}

void Set(Arguments* out, const std::string& flag, const std::string& value) {
  if (flag == "--plugin") out->plugin = value;
  if (flag == "--world") {
    out->world = Number(flag, value, 1, kMostRanks);
    out->world_given = true;
  }
  if (flag == "--repeat") out->repeat = Number(flag, value, 1, kMostRuns);
  if (flag == "--only") CheckPattern(out->only = value);
  if (flag == "--profile") out->profile = value;
  if (flag == "--seed") out->seed = static_cast<unsigned>(Number(flag, value, 0, 2'000'000'000));
  if (flag == "--junit") out->junit = value;
  if (flag == "--timeout") out->timeout = Number(flag, value, 1, kLongest);
  if (flag == "--launch") out->launch = value;
  if (flag == "--run-case") out->run_case = value;
  if (flag == "--record") out->record = value;
  if (flag == "--shared") out->shared = value;
  if (flag == "--list") out->list = true;
  if (flag == "--wide") out->wide = true;
  if (flag == "--help") out->help = true;
  if (flag == "--version") out->version = true;
  if (flag == "--manual-page") out->manual_page = true;
  if (flag == "--set")
    AddPair(&out->options, flag, value, "OPTION=VALUE; dtrun plugins describe lists the options");
  if (flag == "--env") AddPair(&out->environment, flag, value, "NAME=VALUE");
}

}  // namespace

std::span<const Flag> Flags() { return kFlags; }

Arguments ReadArguments(const std::vector<std::string>& words) {
  Arguments out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "-h") {
      out.help = true;
      continue;
    }
    if (word.rfind("-", 0) != 0) {
      throw UsageError(
          "'" + word + "' is no argument; " +
          (word.find(".so") != word.npos ? "did you mean --plugin " + word + "?" : "--help lists all"));
    }
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const Flag& flag = FlagOf(name);
    if (flag.value == nullptr) {
      if (equals != word.npos) throw UsageError("'" + name + "' takes no value; write it alone");
      Set(&out, name, "");
      continue;
    }
    const bool next = equals == word.npos;
    if (next && i + 1 == words.size()) {
      throw UsageError("'" + name + "' needs a value; write " + name + " " + flag.value);
    }
    const std::string value = next ? words[++i] : word.substr(equals + 1);
    if (value.empty()) throw UsageError("'" + name + "' is empty; write " + name + " " + flag.value);
    Set(&out, name, value);
  }
  if (out.plugin.empty() && !out.help && !out.version && !out.manual_page) {
    throw UsageError("'--plugin' is missing; name the file to try: --plugin libdtrun_backend_NAME.so");
  }
  return out;
}

}  // namespace dtrun::conformance::tool
