// The immutable options that a plugin instance sees: dtrun_options of the ABI.
//
// The launching process builds it in core/spec from validated values. It travels to probe
// processes and ranks as JSON, and the plugin reads it through "dtrun.options/1". Keys are the
// plugin's own, without the "backend.options." prefix. Immutable once built; any thread may read.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/options/value.h"

// The ABI's opaque type, defined for core.
struct dtrun_options {
  struct Wrapped;
  struct Entry {
    dtrun::options::Spec spec;  // key without prefix
    dtrun::options::Value value;
    std::vector<dtrun_string> items;              // views of a list value; Set and copying rebuild them
    std::shared_ptr<const Wrapped> wrapped = {};  // the backend that the value names; null: it names none
  };
  std::map<std::string, Entry, std::less<>> entries;

  dtrun_options() = default;
  dtrun_options(const dtrun_options& other);
  dtrun_options(dtrun_options&&) noexcept = default;
  dtrun_options& operator=(dtrun_options other) noexcept;
  ~dtrun_options() = default;

  // Adds or replaces the option spec.key.
  void Set(dtrun::options::Spec spec, dtrun::options::Value value);
};

// A backend that another one stands on, with the options that the user gave it.
struct dtrun_options::Wrapped {
  std::string name;  // "gloo"
  std::string path;  // real path of its file
  std::string id;    // required id of the file (core/plugin/plugin_file.h); empty: any
  dtrun_options options;
};

namespace dtrun::options {

// Converts the snapshot to one line of JSON and back. Of each spec, the JSON has only the fields
// needed for reading: key, type, scope, choices, secret. It includes secrets: keep it out of logs.
std::string ToJson(const dtrun_options& options);
Result<dtrun_options> FromJson(std::string_view json);

// "delay > bf16 > gloo" for the backend `name` with these options; the name alone if it stands on none.
std::string StackText(const std::string& name, const dtrun_options& options);
// The lowest one in such a text, which moves the bytes: "gloo".
std::string_view LowestOf(std::string_view stack);

// The default values of the options in `schema` with keys that begin with `prefix`.
Result<dtrun_options> DefaultsOf(const Schema& schema, std::string_view prefix);

// The "dtrun.options/1" table.
const dtrun_options_service* OptionsService();

}  // namespace dtrun::options
