#include "core/base/json.h"

namespace dtrun {

namespace {

// Json::parse with a callback sees the depth, but then rescans all entries of a list after each one.
bool IsDeeperThan(std::string_view text, int most) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > most) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace

Json ParseJson(std::string_view text) {
  constexpr int kDeepest = 64;
  if (!IsDeeperThan(text, kDeepest)) return Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return Json::parse(
      text, [](int depth, Json::parse_event_t, Json&) { return depth < kDeepest; },
      /*allow_exceptions=*/false);
}

std::string JsonLine(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string JsonText(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string JsonDocument(int schema, const Json& members) {
  Json out = {{"schema", schema}};
  out.update(members);
  return JsonText(out);
}

}  // namespace dtrun
