#include "core/plan/at.h"

#include <utility>
#include <variant>

#include "core/options/value.h"

namespace dtrun::plan {
namespace {

bool Quotes(const std::string& text, const std::string& value) {
  return text.find("'" + value + "'") != std::string::npos ||
         text.find("\"" + value + "\"") != std::string::npos;
}

std::string Prefix(const std::string& place, const std::string& key) {
  if (place == "command line") return {};
  if (place.ends_with(key)) return place + ": ";
  return (place.empty() ? "" : place + ": ") + key + ": ";
}

}  // namespace

std::string PlacePrefix(const spec::AnyField& field) { return Prefix(field.place(), field.key()); }

Error AtEntry(const spec::JobSpec& spec, const spec::AnyField& table, const std::string& name,
              const Error& error) {
  return Error{error.code, Prefix(spec.PlaceOf(table, name), table.key()) + error.text};
}

Error At(const spec::AnyField& field, const Error& error) {
  return Error{error.code, PlacePrefix(field) + error.text};
}

Error At(const spec::AnyField& field, std::string text) {
  return At(field, Error{DTRUN_INVALID_ARGUMENT, std::move(text)});
}

Error AtPlugin(const spec::PluginOptions& options, const spec::AnyField& name, const Error& error) {
  for (const auto& [key, value] : options.values) {
    const auto* text = std::get_if<std::string>(&value.data);
    if (value.origin.place.empty() || text == nullptr || !Quotes(error.text, *text)) continue;
    return Error{error.code, Prefix(value.origin.place, key) + error.text};
  }
  return name.place().empty() ? error : At(name, error);
}

}  // namespace dtrun::plan
