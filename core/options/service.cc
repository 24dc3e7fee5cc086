// The "dtrun.options/1" table over a snapshot. Called by plugins on any thread; allocates only if a
// call fails.
#include <fmt/format.h>

#include <algorithm>

#include "core/options/snapshot.h"

namespace dtrun::options {
namespace {

using Entry = dtrun_options::Entry;

dtrun_status Fail(dtrun_status code, std::string text, dtrun_error* err) {
  return Error{code, std::move(text)}.CopyTo(err);
}

// The entry of `key`; null after filling `err` and `*code`.
const Entry* Find(const dtrun_options* options, const char* key, dtrun_status* code, dtrun_error* err) {
  if (options == nullptr || key == nullptr) {
    *code = Fail(DTRUN_INVALID_ARGUMENT, "read an option: options or key is NULL", err);
    return nullptr;
  }
  const auto found = options->entries.find(std::string_view(key));
  if (found != options->entries.end()) return &found->second;
  *code = Fail(DTRUN_INVALID_ARGUMENT,
               fmt::format("read option '{}': the plugin's table has no such option", key), err);
  return nullptr;
}

// The error if `entry` has no value for `getter`: it is unset or has another type.
dtrun_status Refuse(const Entry& entry, const char* getter, dtrun_error* err) {
  if (!entry.value.set()) {
    return Fail(DTRUN_NOT_FOUND, fmt::format("option '{}' is unset and has no default", entry.spec.key), err);
  }
  return Fail(
      DTRUN_INVALID_ARGUMENT,
      fmt::format("option '{}' is a {}; {} does not read that", entry.spec.key, TypeText(entry.spec), getter),
      err);
}

dtrun_status GetInt(const dtrun_host*, const dtrun_options* options, const char* key, std::int64_t* out,
                    dtrun_error* err) {
  dtrun_status code = DTRUN_OK;
  const Entry* entry = Find(options, key, &code, err);
  if (entry == nullptr) return code;
  if (const auto* flag = std::get_if<bool>(&entry->value.data)) {
    *out = *flag ? 1 : 0;
    return DTRUN_OK;
  }
  if (const auto* number = std::get_if<std::int64_t>(&entry->value.data)) {
    *out = *number;
    return DTRUN_OK;
  }
  const auto* word = std::get_if<std::string>(&entry->value.data);
  const std::vector<std::string>& choices = entry->spec.choices;
  if (word == nullptr || entry->spec.type != Type::kEnum) return Refuse(*entry, "get_int", err);
  const auto choice = std::find(choices.begin(), choices.end(), *word);
  if (choice == choices.end()) {
    return Fail(DTRUN_INTERNAL, fmt::format("option '{}': '{}' is not one of its choices", key, *word), err);
  }
  *out = choice - choices.begin();
  return DTRUN_OK;
}

dtrun_status GetFloat(const dtrun_host*, const dtrun_options* options, const char* key, double* out,
                      dtrun_error* err) {
  dtrun_status code = DTRUN_OK;
  const Entry* entry = Find(options, key, &code, err);
  if (entry == nullptr) return code;
  const auto* real = std::get_if<double>(&entry->value.data);
  if (real == nullptr) return Refuse(*entry, "get_float", err);
  *out = *real;
  return DTRUN_OK;
}

dtrun_status GetString(const dtrun_host*, const dtrun_options* options, const char* key, dtrun_string* out,
                       dtrun_error* err) {
  dtrun_status code = DTRUN_OK;
  const Entry* entry = Find(options, key, &code, err);
  if (entry == nullptr) return code;
  const auto* text = std::get_if<std::string>(&entry->value.data);
  if (text == nullptr) return Refuse(*entry, "get_string", err);
  *out = {text->c_str(), text->size()};
  return DTRUN_OK;
}

dtrun_status GetList(const dtrun_host*, const dtrun_options* options, const char* key,
                     const dtrun_string** out_items, std::uint64_t* out_count, dtrun_error* err) {
  dtrun_status code = DTRUN_OK;
  const Entry* entry = Find(options, key, &code, err);
  if (entry == nullptr) return code;
  if (!std::holds_alternative<std::vector<std::string>>(entry->value.data))
    return Refuse(*entry, "get_list", err);
  *out_items = entry->items.data();
  *out_count = entry->items.size();
  return DTRUN_OK;
}

dtrun_status GetOrigin(const dtrun_host*, const dtrun_options* options, const char* key,
                       std::int32_t* out_origin, dtrun_string* out_place, dtrun_error* err) {
  dtrun_status code = DTRUN_OK;
  const Entry* entry = Find(options, key, &code, err);
  if (entry == nullptr) return code;
  const Origin& origin = entry->value.origin;
  *out_origin = origin.kind;
  *out_place = {origin.place.c_str(), origin.place.size()};
  return DTRUN_OK;
}

}  // namespace

const dtrun_options_service* OptionsService() {
  static constexpr dtrun_options_service kService = {
      sizeof(dtrun_options_service), 0, GetInt, GetFloat, GetString, GetList, GetOrigin};
  return &kService;
}

}  // namespace dtrun::options
