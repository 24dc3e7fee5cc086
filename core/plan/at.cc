#include "core/plan/at.h"

#include <fmt/format.h>

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

std::string PlacePrefix(const config::Settings& settings, const std::string& key) {
  return Prefix(settings.Get(key).origin.place, key);
}

Error AtEntry(const config::Settings& settings, const std::string& key, const std::string& name,
              const Error& error) {
  return Error{error.code, Prefix(settings.PlaceOf(key, name), key) + error.text};
}

Error At(const config::Settings& settings, const std::string& key, const Error& error) {
  return Error{error.code, PlacePrefix(settings, key) + error.text};
}

Error At(const config::Settings& settings, const std::string& key, std::string text) {
  return At(settings, key, Error{DTRUN_INVALID_ARGUMENT, std::move(text)});
}

Error AtPlugin(const config::Settings& settings, std::string_view kind, const Error& error) {
  const std::string options = fmt::format("{}.options.", kind);
  for (const options::Spec& spec : settings.schema()) {
    const options::Value& value = settings.Get(spec.key);
    if (!spec.key.starts_with(options) || value.origin.place.empty()) continue;
    const auto* text = std::get_if<std::string>(&value.data);
    if (text != nullptr && Quotes(error.text, *text)) return At(settings, spec.key, error);
  }
  const std::string name = fmt::format("{}.name", kind);
  return settings.Get(name).origin.place.empty() ? error : At(settings, name, error);
}

}  // namespace dtrun::plan
