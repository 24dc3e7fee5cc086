#include "core/options/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "core/base/number.h"
#include "core/options/text.h"

namespace dtrun::options {
namespace {

std::string TextOf(const char* text) { return text == nullptr ? std::string() : std::string(text); }

std::optional<std::string> MaybeTextOf(const char* text) {
  if (text == nullptr) return std::nullopt;
  return std::string(text);
}

Type TypeOf(std::int32_t type) {
  const bool known = type >= DTRUN_TYPE_BOOL && type <= DTRUN_TYPE_LIST;
  return known ? static_cast<Type>(type) : Type::kString;
}

Spec SpecOf(const dtrun_option& option, const std::string& prefix, const std::string& reader) {
  Spec spec;
  spec.key = prefix + option.key;
  spec.type = TypeOf(option.type);
  spec.scope = option.scope;
  spec.default_text = MaybeTextOf(option.default_text);
  spec.doc = TextOf(option.doc);
  spec.long_doc = TextOf(option.long_doc);
  spec.unit = TextOf(option.unit);
  spec.min_text = MaybeTextOf(option.min_text);
  spec.max_text = MaybeTextOf(option.max_text);
  for (std::uint64_t i = 0; option.choices != nullptr && i < option.choice_count; ++i) {
    if (option.choices[i] != nullptr) spec.choices.emplace_back(option.choices[i]);
  }
  spec.since = TextOf(option.since);
  spec.env_alias = TextOf(option.env_alias);
  spec.replaced_by = TextOf(option.replaced_by);
  if (!spec.replaced_by.empty()) spec.replaced_by = prefix + spec.replaced_by;
  spec.reader = reader;
  spec.required = (option.flags & DTRUN_OPTION_REQUIRED) != 0;
  spec.experimental = (option.flags & DTRUN_OPTION_EXPERIMENTAL) != 0;
  spec.secret = (option.flags & DTRUN_OPTION_SECRET) != 0;
  spec.must_exist = (option.flags & DTRUN_OPTION_MUST_EXIST) != 0;
  spec.names_backend = (option.flags & DTRUN_OPTION_BACKEND) != 0;
  return spec;
}

std::string RangeText(const Spec& spec) {
  if (spec.min_text && spec.max_text) return fmt::format(" from {} to {}", *spec.min_text, *spec.max_text);
  if (spec.min_text) return fmt::format(" of at least {}", *spec.min_text);
  if (spec.max_text) return fmt::format(" of at most {}", *spec.max_text);
  return spec.type == Type::kUint ? " of at least 0" : "";
}

// An example within the bounds.
template <class Parse>
std::string Example(const Spec& spec, const char* usual, Parse parse) {
  const auto below = [&](const std::string& a, const std::string& b) {
    const auto left = parse(a), right = parse(b);
    return left && right && *left < *right;
  };
  if (spec.min_text && below(usual, *spec.min_text)) return *spec.min_text;
  if (spec.max_text && below(*spec.max_text, usual)) return *spec.max_text;
  return usual;
}

}  // namespace

Schema FromAbi(const dtrun_option* options, std::uint64_t count, const std::string& prefix,
               const std::string& reader) {
  Schema schema;
  if (options == nullptr || count == 0) return schema;
  const std::size_t stride = options[0].struct_size;
  if (stride < offsetof(dtrun_option, default_text)) return schema;  // too small for a key and a type
  const char* at = reinterpret_cast<const char*>(options);
  for (std::uint64_t i = 0; i < count; ++i, at += stride) {
    dtrun_option option;
    DTRUN_INIT(option);
    std::memcpy(&option, at, std::min(stride, sizeof option));
    if (option.key != nullptr) schema.push_back(SpecOf(option, prefix, reader));
  }
  return schema;
}

std::string TypeText(const Spec& spec) {
  switch (spec.type) {
    case Type::kBool: return "bool";
    case Type::kInt:
    case Type::kUint: return "integer";
    case Type::kFloat: return "number";
    case Type::kString: return spec.names_backend ? "name or file of a backend" : "string";
    case Type::kEnum: return "one of " + QuoteAll(spec.choices);
    case Type::kBytes: return "size";
    case Type::kDuration: return "duration";
    case Type::kPath: return "path";
    case Type::kList: return "list of strings";
    case Type::kMap: return "table of strings";
    case Type::kCount: return "number or one of " + QuoteAll(spec.choices);
    case Type::kPathList: return "list of paths";
    case Type::kNames: return "string or list of strings";
  }
  return "string";
}

std::string ExpectedText(const Spec& spec) {
  const std::string range = RangeText(spec);
  const std::string comma = range.empty() ? "" : ",";
  switch (spec.type) {
    case Type::kBool: return "true or false";
    case Type::kInt:
    case Type::kUint: return "an integer" + range;
    case Type::kFloat: return "a number" + range;
    case Type::kString: return "a string";
    case Type::kEnum: return "one of " + QuoteAll(spec.choices);
    case Type::kBytes: return "a size such as " + Quote(Example(spec, "8MiB", ParseBytes)) + comma + range;
    case Type::kDuration:
      return "a duration such as " + Quote(Example(spec, "60s", ParseDuration)) + comma + range;
    case Type::kPath: return "a path";
    case Type::kList: return "a list of strings";
    case Type::kMap: return "a table of strings";
    case Type::kCount: return "a number" + range + " or one of " + QuoteAll(spec.choices);
    case Type::kPathList: return "a list of paths";
    case Type::kNames: return "a name, or a list of different names";
  }
  return "a string";
}

}  // namespace dtrun::options
