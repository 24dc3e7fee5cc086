// Flags of other launchers, given to dtrun itself: what they mean here, or what to type instead.
//
// Constant data; any thread. A spelling that is dtrun's own is not listed: verbs declare it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace dtrun::cli {

// How a flag of another launcher is read.
enum class Reading {
  kOption,     // as the option `text`
  kHostCount,  // a number of hosts: -N; `text`: what to do for what is no number
  kSetting,    // its value is the value of the option `text`: --set TEXT=VALUE
  kFixed,      // takes no value: --set TEXT, which has its value
  kVariable,   // NAME=VALUE sets a variable of the ranks; NAME alone has no effect, for they inherit it
  kPair,       // two words, NAME VALUE: --set TEXTNAME=VALUE
  kWord,       // one of `words`: --set TEXT=WHAT_IT_MEANS; `why`, if given: what to do for others
  kDefault,    // one of `words` has no effect, and `why` says so; `text`: what to do for others
  kModule,     // a Python module: the interpreter is to be written
  kNothing,    // has no effect, and no value; `text`: why
  kNothingOf,  // has no effect, and a value; `text`: why
  kUnread,     // dtrun has nothing like it; `text`: what to do, where leaving it out is not all
  kRefused,    // `text`: what to do instead; "{}" in it is the value, and "{s}" the value as a duration
  kMpirun,     // refused too, with its value; where mpirun starts the ranks it can have both
};

struct ForeignFlag {
  // Each between blanks, with '-' for '_': " -np --ntasks "; "--fsdp-*": all that begin so.
  std::string_view names;
  std::string_view launcher;  // whose it is: "mpirun, srun"
  Reading reading;
  std::string_view text;
  std::string_view words = {};  // of kWord, a value there and what it is here: "core=compact none=none"
  std::string_view why = {};
  bool certain = false;  // read so only in a command that is that launcher's: a program may have the flag too
};

// Null: nobody's that is known. `flag`: without "=VALUE"; "_" and "-" are the same in it. `of`: the launcher
// whose command line it is, as OtherLauncher::family; empty: nobody knows.
const ForeignFlag* FindForeignFlag(std::string_view flag, std::string_view of = {});

// What the parameter `name` of mpirun itself is, as in --mca NAME VALUE; null: it is for the ranks.
const ForeignFlag* FindMpirunParameter(std::string name);
// Its value as that option's here.
std::string MpirunValue(const ForeignFlag& parameter, const std::string& value);

// Whether it is one of the launcher `of`.
bool IsOf(const ForeignFlag& flag, std::string_view of);

// Whose it is, in words: "torchrun, accelerate and deepspeed".
std::string Owners(const ForeignFlag& flag);

// A number of hosts, perhaps as torchrun's range of one; empty: it is none.
std::string HostCount(const std::string& value);

// What to do instead of a flag that is refused. A number is a duration in seconds.
std::string AdviceOf(const ForeignFlag& flag, const std::string& value);

// The long names of those that have an equivalent here.
std::vector<std::string> ForeignNames();

struct ForeignWords {
  std::vector<std::string> words;  // of dtrun, that mean the same
  std::string assumed;             // a line that says so
  bool told = false;               // without --verbose too: it has no effect
};

// `name`: the flag as typed. `value` gives its value, and then the next word, or says that there is none.
// REQUIRES: it is not read as an option, nor as a module
Result<ForeignWords> ReadForeign(const ForeignFlag& flag, const std::string& name,
                                 const std::function<Result<std::string>()>& value);

}  // namespace dtrun::cli
