// The description of an option as data: key, type, default, bounds and documentation.
//
// Core's own table (core/spec/tables.h) and plugins' tables share this form, so parsing,
// messages, `config explain` and `plugins describe` exist once. Values; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/wire/limits.h"
#include "dtrun/abi/options.h"

namespace dtrun::options {

// The ABI's types, then those that only core's own options use.
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
  std::string key;  // full dotted key: "job.command"; for a plugin: "backend.options.interface"
  Type type = Type::kString;
  int scope = DTRUN_SCOPE_JOB;
  std::optional<std::string> default_text;  // in the notation of the type; none: unset
  std::string doc;                          // one line
  std::string long_doc;
  std::string unit;
  std::optional<std::string> min_text;  // inclusive
  std::optional<std::string> max_text;  // inclusive
  std::vector<std::string> choices;
  std::string since;
  std::string env_alias;
  std::string replaced_by;  // deprecated when not empty
  std::string former_key;   // old key, also accepted until the second next minor version; empty: none
  std::string reader;       // the reader: "agent", "per-process launcher", "gloo backend"
  bool required = false;
  bool experimental = false;
  bool secret = false;
  bool must_exist = false;
  bool must_be_folder = false;  // of dtrun's own options only
  bool names_backend = false;   // the value names another backend, which this one stands on
  void Fields(auto& io) {
    io("key", key);
    io("type", type, wire::Between{Type::kBool, Type::kNames});
    io("scope", scope);
    io("default_text", default_text);
    io("doc", doc);
    io("long_doc", long_doc);
    io("unit", unit);
    io("min_text", min_text);
    io("max_text", max_text);
    io("choices", choices, wire::kMostEntries);
    io("since", since);
    io("env_alias", env_alias);
    io("replaced_by", replaced_by);
    io("reader", reader);
    io("required", required);
    io("experimental", experimental);
    io("secret", secret);
    io("must_exist", must_exist);
    io("names_backend", names_backend);
  }
};

using Schema = std::vector<Spec>;

// Converts a plugin's table and puts `prefix` ("backend.options.") before each key. Uses the first
// element's struct_size as the stride and tolerates missing texts. Skips an element without a key,
// and reads an option of unknown type as a string.
Schema FromAbi(const dtrun_option* options, std::uint64_t count, const std::string& prefix,
               const std::string& reader);

// "duration", "list of strings", `one of "a", "b"`, ...: for tables and suggestions.
std::string TypeText(const Spec& spec);

// The expected value, for error messages: "a number from 1 to 4096 or one of "cpu", "gpu"", `a
// duration such as "60s", from 1ms to 24h`.
std::string ExpectedText(const Spec& spec);

}  // namespace dtrun::options
