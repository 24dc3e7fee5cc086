// An option of dtrun as a typed field: its row in the schema, its value, and the value's origin.
//
// A field is declared once, in core/spec/tables.h or core/spec/job_spec.h, with its row:
//   TextField name = Row("job.name", kRoot, "name of the job").Default("train");
// Schema, validation, `config explain` and docs/options.md come from that row. Values; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/options/value.h"

namespace dtrun::spec {

// The readers of options.
inline constexpr char kRoot[] = "dtrun";
inline constexpr char kPlan[] = "plan";
inline constexpr char kAgent[] = "agent";
inline constexpr char kCommunicator[] = "communicator";
inline constexpr char kPlugins[] = "plugin loader";

// The row of an option that is being declared.
struct Row {
  Row(const char* key, const char* reader, const char* doc) {
    spec.key = key;
    spec.reader = reader;
    spec.doc = doc;
    spec.since = "0.1";
  }
  Row& Long(const char* text) { return spec.long_doc = text, *this; }
  Row& Default(const char* text) { return spec.default_text = text, *this; }
  Row& Range(const char* min, const char* max) { return spec.min_text = min, spec.max_text = max, *this; }
  Row& Choices(std::vector<std::string> words) { return spec.choices = std::move(words), *this; }
  Row& Unit(const char* unit) { return spec.unit = unit, *this; }
  Row& Renamed(const char* former_key) { return spec.former_key = former_key, *this; }
  Row& Scope(int scope) { return spec.scope = scope, *this; }
  Row& Required() { return spec.required = true, *this; }
  Row& MustExist() { return spec.must_exist = true, *this; }

  options::Spec spec;
};

class AnyField {
 public:
  const options::Spec& row() const;
  const std::string& key() const { return row().key; }
  bool has() const { return value.set(); }
  // Whether the config sets it; false: it has its default.
  bool given() const { return value.origin.kind != DTRUN_ORIGIN_DEFAULT; }
  const std::string& place() const { return value.origin.place; }
  // Whether the value is this word.
  bool is(std::string_view word) const {
    const auto* text = as<std::string>();
    return text != nullptr && *text == word;
  }
  // Null if the value has another type, or there is none.
  template <class T>
  const T* as() const {
    return std::get_if<T>(&value.data);
  }

  options::Value value;

 protected:
  AnyField(Row&& row, options::Type type);

 private:
  std::size_t index_;  // in CoreSchema()
};

template <options::Type kType, class T>
class Field : public AnyField {
 public:
  Field(Row& row) : AnyField(std::move(row), kType) {}   // NOLINT(google-explicit-constructor): a declaration
  Field(Row&& row) : AnyField(std::move(row), kType) {}  // NOLINT(google-explicit-constructor)

  // REQUIRES: has(); a violation ends the process.
  decltype(auto) operator*() const {
    if constexpr (std::is_same_v<T, std::chrono::nanoseconds>) {
      return T(Stored<std::int64_t>());
    } else {
      return Stored<T>();
    }
  }
  const T* operator->() const { return &Stored<T>(); }
  T value_or(T otherwise) const { return has() ? T(**this) : std::move(otherwise); }

 private:
  template <class Data>
  const Data& Stored() const {
    const auto* data = as<Data>();
    if (data == nullptr) std::abort();
    return *data;
  }
};

using TextField = Field<options::Type::kString, std::string>;
using EnumField = Field<options::Type::kEnum, std::string>;
using PathField = Field<options::Type::kPath, std::string>;
using ListField = Field<options::Type::kList, std::vector<std::string>>;
using PathsField = Field<options::Type::kPathList, std::vector<std::string>>;
using MapField = Field<options::Type::kMap, std::map<std::string, std::string>>;
using BoolField = Field<options::Type::kBool, bool>;
using NumberField = Field<options::Type::kUint, std::int64_t>;
using BytesField = Field<options::Type::kBytes, std::int64_t>;
using TimeField = Field<options::Type::kDuration, std::chrono::nanoseconds>;
using CountField = Field<options::Type::kCount, std::int64_t>;  // a number, or a word: see is()
using NamesField = Field<options::Type::kNames, std::string>;   // a name, or a list: see as()

}  // namespace dtrun::spec
