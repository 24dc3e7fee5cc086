#include "core/plan/steps.h"

#include <fmt/format.h>

#include <cstdlib>
#include <vector>

#include "core/base/suggest.h"

namespace dtrun::plan {
namespace {

Error Unknown(std::string_view name, const ProcessVariables& variables) {
  if (std::getenv(std::string(name).c_str()) != nullptr) {
    return Error{
        DTRUN_INVALID_ARGUMENT,
        fmt::format("variables of the environment are not expanded here, as '${{{0}}}'; write its value, or "
                    "have a shell do it: sh -c with '$${{{0}}}'",
                    name)};
  }
  std::vector<std::string> names;
  for (const auto& [key, value] : variables) names.push_back(key);
  std::string hint;
  if (auto nearest = Nearest(name, names)) {
    hint = fmt::format("did you mean '${{{}}}'? ", *nearest);
  } else {
    std::erase_if(names, [](const std::string& one) { return one.starts_with("DTRUN_"); });
    hint = fmt::format("known are {} and dtrun's own; ", fmt::join(names, ", "));
  }
  return Error{DTRUN_INVALID_ARGUMENT,
               fmt::format("unknown placeholder '${{{0}}}'; {1}'$${{{0}}}' passes '${{{0}}}' to the program",
                           name, hint)};
}

}  // namespace

Result<std::string> Expand(std::string_view text, const ProcessVariables& variables) {
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
