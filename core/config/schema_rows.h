// schema_rows.h - helpers to write the rows of core's schema: an option and its attributes.
//
// Included by the files that list options (schema.cc, schema_job.cc, schema_python.cc). Pure; any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/options/spec.h"

namespace dtrun::config::rows {

using options::Schema;
using options::Spec;
using options::Type;

// The readers of options.
inline constexpr char kRoot[] = "dtrun";
inline constexpr char kPlan[] = "plan";
inline constexpr char kAgent[] = "agent";
inline constexpr char kCommunicator[] = "communicator";
inline constexpr char kPlugins[] = "plugin loader";

inline Spec Option(const char* key, Type type, const char* reader, const char* doc) {
  Spec spec;
  spec.key = key;
  spec.type = type;
  spec.reader = reader;
  spec.doc = doc;
  spec.since = "0.1";
  return spec;
}

inline Spec Renamed(Spec spec, const char* former_key) {
  spec.former_key = former_key;
  return spec;
}

inline Spec Default(Spec spec, const char* text) {
  spec.default_text = text;
  return spec;
}

inline Spec Range(Spec spec, const char* min, const char* max) {
  spec.min_text = min;
  spec.max_text = max;
  return spec;
}

inline Spec Choices(Spec spec, std::vector<std::string> choices) {
  spec.choices = std::move(choices);
  return spec;
}

inline Spec Scope(Spec spec, int scope) {
  spec.scope = scope;
  return spec;
}

inline Spec Long(Spec spec, const char* text) {
  spec.long_doc = text;
  return spec;
}

// The rows of [job] and of [python].
void AddJob(Schema& schema);
void AddPython(Schema& schema);

}  // namespace dtrun::config::rows
