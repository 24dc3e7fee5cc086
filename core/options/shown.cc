#include "core/options/shown.h"

#include "core/base/secrets.h"
#include "core/base/units.h"

namespace dtrun::options {

Data Shown(const Spec& spec, Data data) {
  if (data.index() == 0) return data;
  if (spec.secret) return std::string(kSecret);
  if (const auto* number = std::get_if<std::int64_t>(&data)) {
    if (spec.type == Type::kDuration) return FormatDuration(Nanoseconds(*number));
    if (spec.type == Type::kBytes && *number >= 0) return FormatBytes(static_cast<std::uint64_t>(*number));
  }
  if (auto* text = std::get_if<std::string>(&data)) *text = MaskValue(spec.key, *text);
  if (auto* list = std::get_if<std::vector<std::string>>(&data)) *list = MaskArguments(*list);
  if (auto* map = std::get_if<std::map<std::string, std::string>>(&data)) {
    for (auto& [name, text] : *map) text = MaskValue(name, text);
  }
  return data;
}

}  // namespace dtrun::options
