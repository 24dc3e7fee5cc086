// Flags, parameters and variables of other launchers: their equivalents in dtrun, or what to type instead.
//
// Constant data and pure functions; any thread. Spellings that dtrun itself declares are not listed.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace dtrun::cli {

// How dtrun interprets another launcher's flag.
enum class Reading {
  kWords,     // as dtrun's `words`
  kNothing,   // no effect; `advice`: why
  kHosts,     // as `words` if the value is a number of hosts
  kOneOf,     // as `words` if the value is in `values`: "core=compact none=none" has its meaning here
  kHarmless,  // no effect if the value is in `values` or left out, for the reason that begins `advice`
  kVariable,  // NAME=VALUE as `words`; NAME alone has no effect: ranks inherit it
  kExports,   // a list of ALL, NAME and NAME=VALUE: each NAME=VALUE as `words`; refused without ALL
  kModule,    // a Python module: the interpreter must be given
  kRefused,   // `words` are near to it, if there are any; `advice`: what else to do
  kEachHost,  // also refused: of a command that each host runs, so that no single command can be offered
  kUnread,    // also refused: dtrun has nothing like it
  kMpirun,    // also refused, unless it is harmless or ppr:N:node; allowed if mpirun starts the ranks
};

// ForeignFlag::words of a flag for which dtrun has a verb.
inline constexpr std::string_view kPlan = "dtrun plan";

struct ForeignFlag {
  // Separated by spaces. Flags have '-' for '_' and end in a '=' for each word of value: "--ntasks= --mca==";
  // "--fsdp-*" is any that begins so. Without dashes: parameters of --mca, and variables of the environment.
  std::string_view names;
  std::string_view launchers;  // that have it: "mpirun, srun"
  // dtrun's option and its value, or words in front of dtrun. In place of {} the value, of {s} the value in
  // seconds, of {time} Slurm's time as a duration, of {MiB} so many bytes, and of {list} its words as a list.
  std::string_view words;
  Reading reading = Reading::kWords;
  std::string_view advice = {};  // has {} and {s} too
  std::string_view values = {};
};

// Searched in this order; the first row applies.
std::span<const ForeignFlag> ForeignFlags();
// Those that apply only in their launcher's own command line, and precede the others there.
std::span<const ForeignFlag> OwnForeignFlags();

// Null: unknown flag. `flag`: without "=VALUE"; "_" and "-" are equivalent. `of`: the launcher of this
// command line, as OtherLauncher::family; empty: unknown.
const ForeignFlag* FindForeignFlag(std::string_view flag, std::string_view of = {});
// The number of words that `name` takes as its value.
int ValuesOf(const ForeignFlag& flag, std::string_view name);

// Whether the flag belongs to the launcher `of`.
bool IsOf(const ForeignFlag& flag, std::string_view of);

// "--map-by is a flag of mpirun".
std::string FlagOf(const ForeignFlag& flag, const std::string& name);

// A number of hosts, also from a torchrun range of one number. Empty: not a number.
std::string HostCount(const std::string& value);

// The advice for a rejected flag.
std::string AdviceOf(const ForeignFlag& flag, const std::string& value);

// The long names of all flags with an equivalent in dtrun.
std::vector<std::string> ForeignNames();

struct ForeignWords {
  enum class Effect { kRead, kNone, kRefused };
  Effect effect = Effect::kRead;
  std::vector<std::string> words = {};  // of dtrun; if it is refused, those near to it
  std::string text = {};                // a line that reports the conversion, or the advice
};

// `name`: the flag as typed. `values`: as many as given, up to ValuesOf. An error if a name and a value are
// expected and are not there. REQUIRES: its reading is not kModule
Result<ForeignWords> ReadForeign(const ForeignFlag& flag, const std::string& name,
                                 const std::vector<std::string>& values);

// What decides which variables are read.
struct Started {
  std::string launcher;  // launcher.name
  std::string platform;  // the source of the hosts; empty: none
};

// A line for each variable, or group of variables, of mpirun, mpiexec, srun and torchrun that has no effect
// because dtrun starts the ranks itself, with a replacement. Ignores variables set by an outer launcher, and
// variables that ranks read themselves, such as OMPI_MCA_btl.
std::vector<std::string> UnusedVariables(const std::map<std::string, std::string>& environment,
                                         const Started& job);

}  // namespace dtrun::cli
