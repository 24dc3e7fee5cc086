#include "tools/dtrun/command_line/flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>

#include "core/base/number.h"
#include "core/base/text.h"
#include "tools/dtrun/command_line/first_word.h"

namespace dtrun::cli {
namespace {

using enum Reading;
using Effect = ForeignWords::Effect;

constexpr std::string_view kMpirunFamily = "mpirun";
constexpr std::string_view kLeaveOut = "leave it out";

// Whether `listed`, a word of ForeignFlag::names, is `name`.
bool Means(std::string_view listed, std::string_view name) {
  listed = listed.substr(0, listed.find('='));
  return listed.ends_with('*') ? name.starts_with(listed.substr(0, listed.size() - 1)) : listed == name;
}

bool Lists(const ForeignFlag& row, std::string_view name) {
  return std::ranges::any_of(Split(row.names, ' '),
                             [&](std::string_view listed) { return Means(listed, name); });
}

std::string Dashed(std::string_view name) {
  std::string dashed(name);
  std::ranges::replace(dashed, '_', '-');
  return dashed;
}

// `suits`: also whether the row applies in every command line.
template <class Suits>
const ForeignFlag* Find(std::string_view name, const Suits& suits) {
  for (const bool shared : {false, true}) {
    for (const ForeignFlag& row : shared ? ForeignFlags() : OwnForeignFlags()) {
      if (suits(row, shared) && Lists(row, name)) return &row;
    }
  }
  return nullptr;
}

// A parameter of --mca, or a variable. Null: it is not for a launcher.
const ForeignFlag* FindByName(std::string_view name) {
  return Find(name, [](const ForeignFlag&, bool) { return true; });
}

bool IsRefused(const ForeignFlag& flag) { return flag.reading >= kRefused; }

// The words of a command, up to ':', as a list of TOML.
std::string ListOf(std::string_view value) {
  std::string words;
  for (const std::string_view word : Split(value.substr(0, value.find(':')), ' ')) {
    if (!word.empty()) words += fmt::format("{}\"{}\"", words.empty() ? "" : ", ", word);
  }
  return "[" + words + "]";
}

// The duration of Slurm's [DAYS-]HOURS[:MINUTES[:SECONDS]] or MINUTES[:SECONDS], in dtrun's form; sbatch(1).
std::string OfSlurm(std::string_view time) {
  const std::size_t dash = time.find('-');
  const bool days = dash != time.npos;
  const auto parts = Split(days ? time.substr(dash + 1) : time, ':');
  constexpr std::int64_t kUnits[] = {3600, 60, 1};
  const std::size_t first = days || parts.size() == 3 ? 0 : 1;
  if (parts.size() > std::size(kUnits) - first) return "DURATION";
  std::int64_t seconds = 0;
  const auto add = [&](std::string_view part, std::int64_t unit) {
    const auto number = NumberOf<std::int32_t>(part);
    if (number) seconds += *number * unit;
    return number && *number >= 0;
  };
  if (days && !add(time.substr(0, dash), 24 * 3600)) return "DURATION";
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!add(parts[i], kUnits[first + i])) return "DURATION";
  }
  return seconds % 60 == 0 ? fmt::format("{}m", seconds / 60) : fmt::format("{}s", seconds);
}

std::string Filled(std::string_view text, const std::string& value) {
  constexpr std::int64_t kMiB = 1 << 20;
  std::string filled(text);
  const auto number = NumberOf<int>(value);
  ReplaceAll(&filled, "{list}", ListOf(value));
  ReplaceAll(&filled, "{s}", IsDigits(value) ? value + "s" : value);
  ReplaceAll(&filled, "{MiB}", number ? std::to_string(*number * kMiB) : "BYTES");
  ReplaceAll(&filled, "{time}", OfSlurm(value));
  ReplaceAll(&filled, "{}", value);
  return filled;
}

Words FilledWords(const ForeignFlag& flag, const std::string& value) {
  Words words;
  for (const std::string_view word : Split(flag.words, ' ')) {
    if (!word.empty()) words.push_back(Filled(word, value));
  }
  return words;
}

ForeignWords ReadAs(const std::string& name, Words words) {
  std::string text = fmt::format("{} is read as {}", name, fmt::join(words, " "));
  return {Effect::kRead, std::move(words), std::move(text)};
}

ForeignWords NoEffect(const std::string& name, std::string_view why) {
  return {Effect::kNone, {}, fmt::format("{} has no effect: {}", name, why)};
}

// NAME VALUE: for mpirun itself, or for the ranks.
Result<ForeignWords> ReadPair(const ForeignFlag& flag, const std::string& name, const Words& values) {
  const auto form = [&](const std::string& of) {
    return fmt::format("{} takes a name and a value: {} {} VALUE", name, name, of);
  };
  if (values.empty() || values[0].starts_with('-')) return Error{DTRUN_INVALID_ARGUMENT, form("NAME")};
  if (values.size() == 1) return Error{DTRUN_INVALID_ARGUMENT, form(values[0])};
  if (IsOf(flag, kMpirunFamily)) {
    const std::string typed = name + " " + values[0];
    if (const ForeignFlag* row = FindByName(Dashed(values[0]))) return ReadForeign(*row, typed, {values[1]});
    if (flag.words.empty()) return NoEffect(typed, "it is for mpirun, and dtrun starts the ranks");
  }
  Words words = FilledWords(flag, values[0] + "=" + values[1]);
  if (values[1].size() > 1 && values[1][0] == '-' && !IsDigit(values[1][1])) {
    return Error{DTRUN_INVALID_ARGUMENT, fmt::format("{}; if '{}' is the value: {}", form(values[0]),
                                                     values[1], fmt::join(words, " "))};
  }
  return ReadAs(name, std::move(words));
}

bool IsHarmless(const ForeignFlag& flag, std::string_view value) {
  return std::ranges::count(Split(flag.values, ' '), value) > 0;
}

// Why a harmless value has no effect.
std::string_view ReasonOf(const ForeignFlag& flag) { return flag.advice.substr(0, flag.advice.find(';')); }

// N of Open MPI's mapping "ppr:N:node"; empty: it is another one.
std::string PerNode(std::string_view mapping) {
  constexpr std::string_view kBefore = "ppr:", kAfter = ":node";
  if (!mapping.starts_with(kBefore) || !mapping.ends_with(kAfter)) return {};
  const std::size_t end = mapping.size() - kAfter.size();
  const std::string_view count = mapping.substr(kBefore.size(), end - std::min(end, kBefore.size()));
  return IsDigits(count) ? std::string(count) : std::string();
}

ForeignWords ReadOneOf(const ForeignFlag& flag, const std::string& name, const std::string& value) {
  std::string expected;
  for (const std::string_view word : Split(flag.values, ' ')) {
    const std::string_view there = word.substr(0, word.find('='));
    if (there == value) return ReadAs(name, FilledWords(flag, std::string(word.substr(there.size() + 1))));
    expected += fmt::format("{}{}", expected.empty() ? "" : ", ", there);
  }
  const std::string_view key = flag.words.substr(0, flag.words.find('=')).substr(flag.words.find(' ') + 1);
  return {
      Effect::kRefused,
      {},
      fmt::format("dtrun does not read '{}', only {}; {}", value, expected,
                  flag.advice.empty() ? fmt::format("else see: dtrun config explain {}", key) : flag.advice)};
}

ForeignWords ReadVariable(const ForeignFlag& flag, const std::string& name, const std::string& value) {
  if (value.find('=') != value.npos) return ReadAs(name, FilledWords(flag, value));
  if (std::getenv(value.c_str()) != nullptr) {
    return {Effect::kRead,
            {},
            fmt::format("{} {} is so already: ranks have the environment that dtrun has", name, value)};
  }
  return {
      Effect::kNone,
      {},
      fmt::format("{0} {1}: this variable is not set here, so ranks do not have it; export it, or write {0} "
                  "{1}=VALUE",
                  name, value)};
}

// srun's list. Without ALL srun withholds the rest of the environment, which dtrun does not.
ForeignWords ReadExports(const ForeignFlag& flag, const std::string& name, const std::string& value) {
  Words words;
  bool all = false;
  for (const std::string_view variable : Split(value, ',')) {
    if (variable == "ALL") all = true;
    if (variable.find('=') == variable.npos) continue;
    for (std::string& word : FilledWords(flag, std::string(variable))) words.push_back(std::move(word));
  }
  if (!all) return {Effect::kRefused, std::move(words), std::string(flag.advice)};
  return words.empty() ? NoEffect(name, ReasonOf(flag)) : ReadAs(name, std::move(words));
}

// Which variables are read by which launcher, and where the name of ForeignFlag begins in theirs.
struct Prefix {
  std::string_view text, launcher;
  std::size_t name;
  bool all;  // those without a row have no effect either
  bool parameters() const { return text.ends_with("_MCA_"); }
};
constexpr Prefix kPrefixes[] = {
    {"OMPI_MCA_", "mpirun", 9, false},     {"PRTE_MCA_", "mpirun", 9, true},
    {"HYDRA_", "mpiexec", 0, true},        {"I_MPI_HYDRA_", "mpiexec", 6, true},
    {"I_MPI_JOB_", "mpiexec", 0, true},    {"MPIEXEC_", "mpiexec", 0, true},
    {"I_MPI_PERHOST", "mpiexec", 0, true}, {"SLURM_", "srun", 0, false},
    {"SRUN_", "srun", 0, false},
};
// Variables that match dtrun's default, or that mpirun's plugin lets ranks inherit.
constexpr std::string_view kAsHydra[] = {"HYDRA_ENV", "I_MPI_HYDRA_ENV"};

// The replacement for a variable; empty: it would change nothing.
std::string InPlaceOf(const ForeignFlag& flag, const std::string& variable, const std::string& value) {
  const auto read = ReadForeign(flag, variable, {value});
  if (!read || read->effect == Effect::kNone) return {};
  if (read->effect == Effect::kRefused) return read->text == kLeaveOut ? "unset it" : read->text;
  return read->words.empty() ? "" : "in its place: " + Quoted(read->words);
}

// "A, B have no effect: mpirun reads them".
std::string NoEffectOf(const Words& variables, std::string_view launcher) {
  const bool one = variables.size() == 1;
  return fmt::format("{} {} no effect: {} reads {}", fmt::join(variables, ", "), one ? "has" : "have",
                     launcher, one ? "it" : "them");
}

}  // namespace

std::string HostCount(const std::string& value) {
  const std::size_t colon = value.find(':');
  const std::string number = value.substr(0, colon);
  if (colon != value.npos && value.substr(colon + 1) != number) return {};
  return IsDigits(number) ? number : std::string();
}

std::string AdviceOf(const ForeignFlag& flag, const std::string& value) {
  const std::string advice = Filled(flag.advice, value);
  if (!IsRefused(flag) || flag.words.empty()) return advice.empty() ? std::string(kLeaveOut) : advice;
  const bool front = !flag.words.starts_with('-') && flag.words != kPlan;
  return fmt::format("write {}{}{}{}", Quoted(FilledWords(flag, value)), front ? " in front of dtrun" : "",
                     advice.empty() ? "" : "; ", advice);
}

std::string FlagOf(const ForeignFlag& flag, const std::string& name) {
  std::string owners(flag.launchers);
  if (const std::size_t comma = owners.rfind(", "); comma != owners.npos) owners.replace(comma, 2, " and ");
  return fmt::format("{} is a flag of {}{}", name, owners,
                     flag.reading == kUnread ? " that dtrun does not read" : "");
}

bool IsOf(const ForeignFlag& flag, std::string_view of) {
  const auto lists = [&](std::string_view name) {
    return flag.launchers.find(name) != std::string_view::npos;
  };
  return lists(of) || (of == kMpirunFamily && lists("mpiexec"));
}

const ForeignFlag* FindForeignFlag(std::string_view flag, std::string_view of) {
  if (!flag.starts_with('-')) return nullptr;
  const std::string name = Dashed(flag);
  const auto own = [&](const ForeignFlag& row, bool) { return !of.empty() && IsOf(row, of); };
  const auto any = [&](const ForeignFlag&, bool shared) { return shared; };
  const auto mpis = [&](const ForeignFlag& row, bool shared) {
    return (own(row, shared) || shared) && IsOf(row, kMpirunFamily);
  };
  if (const ForeignFlag* found = Find(name, own)) return found;
  if (const ForeignFlag* found = Find(name, any)) return found;
  if (name.size() < 3 || name.starts_with("--")) return nullptr;
  return Find("-" + name, mpis);  // Open MPI's long flags have one or two dashes
}

int ValuesOf(const ForeignFlag& flag, std::string_view name) {
  const std::string dashed = Dashed(name);
  for (const std::string_view listed : Split(flag.names, ' ')) {
    if (Means(listed, dashed) || Means(listed, "-" + dashed))
      return static_cast<int>(std::ranges::count(listed, '='));
  }
  return 0;
}

std::vector<std::string> ForeignNames() {
  std::vector<std::string> names;
  for (const ForeignFlag& flag : ForeignFlags()) {
    if (IsRefused(flag) || flag.reading == kModule) continue;
    for (const std::string_view name : Split(flag.names, ' ')) {
      if (name.starts_with("--")) names.emplace_back(name.substr(0, name.find('=')));
    }
  }
  return names;
}

Result<ForeignWords> ReadForeign(const ForeignFlag& flag, const std::string& name, const Words& values) {
  const std::string value = values.empty() ? "VALUE" : values[0];
  const auto refused = [&] { return ForeignWords{Effect::kRefused, {}, AdviceOf(flag, value)}; };
  switch (flag.reading) {
    case kNothing: return NoEffect(name, flag.advice);
    case kHosts: {
      const std::string count = HostCount(value);
      return count.empty() ? refused() : ReadAs(name, FilledWords(flag, count));
    }
    case kOneOf: return ReadOneOf(flag, name, value);
    case kHarmless: {
      const bool left_out = values.empty() && ValuesOf(flag, name) == 0;
      return left_out || IsHarmless(flag, value) ? NoEffect(name, ReasonOf(flag)) : refused();
    }
    case kVariable: return ReadVariable(flag, name, value);
    case kExports: return ReadExports(flag, name, value);
    case kModule:
    case kWords: break;
    case kRefused:
    case kEachHost:
    case kUnread:
    case kMpirun: {
      if (flag.reading == kMpirun && IsHarmless(flag, value))
        return NoEffect(name + " " + value, ReasonOf(flag));
      if (const std::string count = flag.values.empty() ? "" : PerNode(value); !count.empty())
        return ReadAs(name + " " + value, {"--set", "job.processes_per_host=" + count});
      ForeignWords near = refused();
      if (!values.empty() || ValuesOf(flag, name) == 0) near.words = FilledWords(flag, value);
      return near;
    }
  }
  if (ValuesOf(flag, name) == 2) return ReadPair(flag, name, values);
  return ReadAs(name, FilledWords(flag, value));
}

std::vector<std::string> UnusedVariables(const std::map<std::string, std::string>& environment,
                                         const Started& job) {
  const auto has = [&](const char* name) { return environment.contains(name); };
  if (has("DTRUN_JOB_KEY")) return {};  // in a rank of dtrun
  const bool starts_mpirun = job.launcher == "mpirun";
  // Of "mpijob" the operator sets them, and dtrun reads the hosts from them.
  const bool mpis =
      !has("PMI_RANK") && !has("OMPI_COMM_WORLD_SIZE") && !has("PMIX_NAMESPACE") && job.platform != "mpijob";
  // Within a step Slurm or that step's srun has set them.
  const bool srun = has("SLURM_JOB_ID") && !has("SLURM_STEP_ID") && !has("SLURM_STEPID");
  // A torchrun started by a rank may read its own.
  const bool torchrun =
      job.launcher != "per-node" && job.platform != "kubeflow" && job.platform != "torchrun";
  Words lines, pets;
  std::map<std::string_view, Words> idle;  // by launcher
  for (const auto& [variable, value] : environment) {
    if (torchrun && variable.starts_with("PET_")) pets.push_back(variable);
    const auto prefix = std::ranges::find_if(
        kPrefixes, [&name = variable](const Prefix& one) { return name.starts_with(one.text); });
    if (prefix == std::end(kPrefixes) || std::ranges::count(kAsHydra, variable) > 0) continue;
    if (prefix->launcher == "srun" ? !srun : !mpis) continue;
    const std::string name = variable.substr(prefix->name);
    if (starts_mpirun && prefix->launcher != "srun") {
      if (!variable.starts_with("OMPI_MCA_orte_")) continue;  // mpirun inherits the others
      lines.push_back(fmt::format(
          "{} does not reach mpirun, as variables that an outer mpirun sets are withheld; in its place: "
          "--set {}",
          variable,
          Quoted({fmt::format("launcher.options.arguments=[\"--mca\", \"{}\", \"{}\"]", name, value)})));
      continue;
    }
    const ForeignFlag* flag = FindByName(prefix->parameters() ? Dashed(name) : name);
    const std::string in_place = flag == nullptr ? "" : InPlaceOf(*flag, variable, value);
    if (flag == nullptr ? prefix->all : prefix->parameters() && flag->reading == kNothing)
      idle[prefix->launcher].push_back(variable);
    if (in_place.empty()) continue;
    const std::string told = prefix->parameters() ? variable : fmt::format("{}={}", variable, value);
    lines.push_back(
        fmt::format("{}, and dtrun starts the ranks; {}", NoEffectOf({told}, prefix->launcher), in_place));
  }
  for (const std::string_view launcher : {"mpirun", "mpiexec"}) {
    if (const auto of = idle.find(launcher); of != idle.end())
      lines.push_back(NoEffectOf(of->second, launcher) + ", and dtrun starts the ranks");
  }
  if (!pets.empty()) {
    lines.push_back(NoEffectOf(pets, "torchrun") +
                    ", and so does 'dtrun torchrun'; --set cluster.from=kubeflow takes the hosts from them");
  }
  return lines;
}

}  // namespace dtrun::cli
