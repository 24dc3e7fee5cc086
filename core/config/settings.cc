#include "core/config/settings.h"

#include <cstdlib>

#include "core/config/lookup.h"

namespace dtrun::config {
namespace {

template <class T>
const T& Typed(const options::Value& value) {
  const T* typed = std::get_if<T>(&value.data);
  if (typed == nullptr) std::abort();
  return *typed;
}

}  // namespace

bool Settings::Has(std::string_view key) const { return Get(key).set(); }
bool Settings::Bool(std::string_view key) const { return Typed<bool>(Get(key)); }
std::int64_t Settings::Int(std::string_view key) const { return Typed<std::int64_t>(Get(key)); }
std::chrono::nanoseconds Settings::Duration(std::string_view key) const {
  return std::chrono::nanoseconds(Int(key));
}
const std::string& Settings::Text(std::string_view key) const { return Typed<std::string>(Get(key)); }
const std::vector<std::string>& Settings::List(std::string_view key) const {
  return Typed<std::vector<std::string>>(Get(key));
}
const std::map<std::string, std::string>& Settings::Map(std::string_view key) const {
  return Typed<std::map<std::string, std::string>>(Get(key));
}

const options::Value& Settings::Get(std::string_view key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) std::abort();
  return found->second;
}

const options::Spec* Settings::Find(std::string_view key) const { return FindSpec(schema_, key); }

dtrun_options Settings::SnapshotOf(std::string_view prefix) const {
  dtrun_options options;
  for (const options::Spec& spec : schema_) {
    if (!std::string_view(spec.key).starts_with(prefix)) continue;
    options::Spec own = spec;
    own.key.erase(0, prefix.size());
    options.Set(std::move(own), Get(spec.key));
  }
  return options;
}

const std::string& Settings::PlaceOf(const std::string& key, const std::string& name) const {
  const options::Origin& origin = Get(key).origin;
  const auto found = entry_places_.find(key + "." + name);
  return found == entry_places_.end() || origin.kind != DTRUN_ORIGIN_FILE ? origin.place : found->second;
}

}  // namespace dtrun::config
