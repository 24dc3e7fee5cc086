#include "core/plan/placeholder.h"

#include <fmt/format.h>

#include <vector>

#include "core/base/suggest.h"

namespace dtrun::plan {
namespace {

Error Unknown(std::string_view name, const std::map<std::string, std::string>& variables) {
  std::vector<std::string> names;
  for (const auto& [key, value] : variables) names.push_back(key);
  std::string hint;
  if (auto nearest = Nearest(name, names)) {
    hint = fmt::format("did you mean '${{{}}}'? ", *nearest);
  } else {
    hint = fmt::format("known: {}; ", fmt::join(names, ", "));
  }
  return Error{
      DTRUN_INVALID_ARGUMENT,
      fmt::format("unknown placeholder '${{{0}}}'; {1}write '$${{{0}}}' to pass it on as it is", name, hint)};
}

}  // namespace

Result<std::string> Expand(std::string_view text, const std::map<std::string, std::string>& variables) {
  std::string out;
  while (!text.empty()) {
    if (text.starts_with("$${")) {
      out += "${";
      text.remove_prefix(3);
    } else if (text.starts_with("${")) {
      const std::size_t end = text.find('}');
      if (end == std::string_view::npos) {
        return Error{DTRUN_INVALID_ARGUMENT,
                     fmt::format("'{}' lacks a closing brace; write '$${{' for a literal '${{'", text)};
      }
      const std::string name(text.substr(2, end - 2));
      const auto found = variables.find(name);
      if (found == variables.end()) return Unknown(name, variables);
      out += found->second;
      text.remove_prefix(end + 1);
    } else {
      out += text.front();
      text.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace dtrun::plan
