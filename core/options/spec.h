// What an option is: its key, type, default, bounds and words, as data.
//
// Core's own table (core/config/schema.cc) and the tables of plugins have this one form,
// so parsing, messages, `config explain` and `plugins describe` are written once.
// Values; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dtrun/abi/options.h"

namespace dtrun::options {

// The ABI's types and those that only core's own options have.
enum class Type {
  kBool = DTRUN_TYPE_BOOL,
  kInt = DTRUN_TYPE_INT,
  kUint = DTRUN_TYPE_UINT,
  kFloat = DTRUN_TYPE_FLOAT,
  kString = DTRUN_TYPE_STRING,
  kEnum = DTRUN_TYPE_ENUM,
  kBytes = DTRUN_TYPE_BYTES,
  kDuration = DTRUN_TYPE_DURATION,
  kPath = DTRUN_TYPE_PATH,
  kList = DTRUN_TYPE_LIST,
  kMap = 100,       // table of strings, such as job.env
  kCount = 101,     // a number, or one of `choices`
  kPathList = 102,  // list of paths
  kNames = 103,     // a name, or a list of names in order of preference
};

struct Spec {
  std::string key;  // full dotted key: "job.command"; of a plugin: "backend.options.interface"
  Type type = Type::kString;
  int scope = DTRUN_SCOPE_JOB;
  std::optional<std::string> default_text;  // in the spelling of the type; none: unset
  std::string doc;                          // one line
  std::string long_doc;
  std::string unit;
  std::optional<std::string> min_text;  // inclusive
  std::optional<std::string> max_text;  // inclusive
  std::vector<std::string> choices;
  std::string since;
  std::string env_alias;
  std::string replaced_by;  // deprecated when not empty
  std::string former_key;   // which also works, until the next minor version but one; empty: none
  std::string reader;       // who reads it: "agent", "per-process launcher", "gloo backend"
  bool required = false;
  bool experimental = false;
  bool secret = false;
  bool must_exist = false;
};

using Schema = std::vector<Spec>;

// A plugin's table with `prefix` ("backend.options.") before each key. Strides by the
// first element's struct_size and tolerates missing texts; an element without a key is
// left out, and a type this build does not know is read as a string.
Schema FromAbi(const dtrun_option* options, std::uint64_t count, const std::string& prefix,
               const std::string& reader);

// "duration", "list of strings", `one of "a", "b"`, ...: for tables and suggestions.
std::string TypeText(const Spec& spec);

// What a message says it expected: "a number from 1 to 4096 or one of "cpu", "gpu"",
// `a duration such as "60s", from 1ms to 24h`.
std::string ExpectedText(const Spec& spec);

}  // namespace dtrun::options
