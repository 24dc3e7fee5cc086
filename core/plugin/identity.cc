#include "core/plugin/identity.h"

#include <fmt/format.h>

namespace dtrun::plugin {

const char* KindText(Kind kind) {
  switch (kind) {
    case Kind::kBackend: return "backend";
    case Kind::kLauncher: return "launcher";
    case Kind::kDevice: break;
  }
  return "device";
}

std::string AbiText(std::uint32_t major, std::uint32_t minor) { return fmt::format("{}.{}", major, minor); }

Error Identity::Refuse(dtrun_status code, std::string_view why, std::string_view action) const {
  const auto known = [](const std::string& text) { return text.empty() ? std::string("unknown") : text; };
  return Error{
      code, fmt::format("{} plugin '{}' (name '{}', version {}, build-id {}, ABI {}; this dtrun has ABI {}): "
                        "{}; {}",
                        KindText(file.kind), file.path.string(), file.name, known(version),
                        build_id.empty() ? "none" : build_id, known(abi),
                        AbiText(DTRUN_ABI_MAJOR, DTRUN_ABI_MINOR), why, action)};
}

}  // namespace dtrun::plugin
