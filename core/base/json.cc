#include "core/base/json.h"

namespace dtrun {

Json ParseJson(std::string_view text) {
  constexpr int kDeepest = 64;
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
