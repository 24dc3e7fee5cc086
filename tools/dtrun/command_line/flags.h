// Flags of other launchers given to dtrun: their equivalents, or what to type instead.
//
// Constant data; any thread. Spellings that dtrun itself declares are not listed.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace dtrun::cli {

// How dtrun interprets another launcher's flag.
enum class Reading {
  kOption,     // like the option `text`
  kHostCount,  // a number of hosts: -N; `text`: advice if it is not a number
  kSetting,    // its value becomes the value of the option `text`: --set TEXT=VALUE
  kFixed,      // takes no value: --set TEXT, which includes the value
  kVariable,   // NAME=VALUE sets a variable of the ranks; NAME alone has no effect: ranks inherit it
  kPair,       // two words, NAME VALUE: --set TEXTNAME=VALUE
  kWord,       // one of `words`: --set TEXT=MEANING; `why`, if given: advice for other values
  kDefault,    // one of `words` has no effect, for the reason `why`; `text`: advice for other values
  kModule,     // a Python module: the interpreter must be given
  kNothing,    // no effect, no value; `text`: why
  kNothingOf,  // no effect, with a value; `text`: why
  kUnread,     // no equivalent in dtrun; `text`: advice, if more is needed than leaving it out
  kRefused,    // `text`: what to do instead; "{}" stands for the value, "{s}" for the value as a duration
  kMpirun,     // also rejected, with its value; allowed if mpirun starts the ranks
};

struct ForeignFlag {
  // Space-separated, with '-' for '_': " -np --ntasks "; "--fsdp-*" matches a prefix.
  std::string_view names;
  std::string_view launcher;  // the launchers that have it: "mpirun, srun"
  Reading reading;
  std::string_view text;
  std::string_view words = {};  // for kWord: a value there and its meaning here: "core=compact none=none"
  std::string_view why = {};
  bool certain = false;  // applies only in that launcher's own command line: a program may have the same flag
};

// Null: unknown flag. `flag`: without "=VALUE"; "_" and "-" are equivalent. `of`: the launcher of this
// command line, as OtherLauncher::family; empty: unknown.
const ForeignFlag* FindForeignFlag(std::string_view flag, std::string_view of = {});

// The mpirun parameter `name`, as in --mca NAME VALUE. Null: it is for the ranks.
const ForeignFlag* FindMpirunParameter(std::string name);
// The value converted for dtrun's option.
std::string MpirunValue(const ForeignFlag& parameter, const std::string& value);

// Whether the flag belongs to the launcher `of`.
bool IsOf(const ForeignFlag& flag, std::string_view of);

// The launchers that have the flag, as text: "torchrun, accelerate and deepspeed".
std::string Owners(const ForeignFlag& flag);

// A number of hosts, also from a torchrun range of one number. Empty: not a number.
std::string HostCount(const std::string& value);

// The advice for a rejected flag. A number is a duration in seconds.
std::string AdviceOf(const ForeignFlag& flag, const std::string& value);

// The long names of all flags with an equivalent in dtrun.
std::vector<std::string> ForeignNames();

struct ForeignWords {
  std::vector<std::string> words;  // equivalent words of dtrun
  std::string assumed;             // a line that reports the conversion
  bool told = false;               // also shown without --verbose, because the flag has no effect
};

// `name`: the flag as typed. `value`: returns its value, then the next word, or an error if there is none.
// REQUIRES: its reading is neither kOption nor kModule
Result<ForeignWords> ReadForeign(const ForeignFlag& flag, const std::string& name,
                                 const std::function<Result<std::string>()>& value);

}  // namespace dtrun::cli
