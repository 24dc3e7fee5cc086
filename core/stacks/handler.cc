#include "core/stacks/handler.h"

#include <algorithm>
#include <string_view>

namespace dtrun::stacks {
namespace {

constexpr int kMostLines = 2000;  // of a function, above the current line

// The line without its indentation; empty if it is blank or a comment.
std::string_view Statement(std::string_view line) {
  const auto begin = line.find_first_not_of(" \t\f\r");
  if (begin == std::string_view::npos || line[begin] == '#') return {};
  return line.substr(begin);
}

// Whether the line is a clause of `keyword`.
bool Opens(std::string_view statement, std::string_view keyword) {
  if (!statement.starts_with(keyword)) return false;
  const std::string_view rest = statement.substr(keyword.size());
  return rest.empty() || rest.front() == ':' || rest.front() == ' ' || rest.front() == '(' ||
         rest.front() == '*';
}

bool InClause(const Frame& frame, const Source& source) {
  const auto indentation = [](std::string_view line, std::string_view statement) {
    return line.size() - statement.size();
  };
  if (frame.file.starts_with("<frozen")) return false;
  const std::string own = frame.line > 0 ? source(frame.file, frame.line) : "";
  if (Statement(own).empty()) return true;  // for example of `python3 -c`
  if (Opens(Statement(own), "except") || Opens(Statement(own), "finally")) return true;  // all on one line
  std::size_t deepest = indentation(own, Statement(own));
  for (int at = frame.line; at-- > std::max(1, frame.line - kMostLines) && deepest > 0;) {
    const std::string line = source(frame.file, at);
    const std::string_view statement = Statement(line);
    if (statement.empty() || indentation(line, statement) >= deepest) continue;
    if (Opens(statement, "except") || Opens(statement, "finally")) return true;
    if (Opens(statement, "def") || Opens(statement, "async def") || Opens(statement, "class")) return false;
    deepest = indentation(line, statement);
  }
  return false;
}

}  // namespace

bool MayHandleError(const PythonThread& thread, const Source& source) {
  const auto is_script = [](const Frame& frame) { return frame.function == "<module>"; };
  if (!thread.cut && std::ranges::none_of(thread.frames, is_script)) return true;
  return std::ranges::any_of(thread.frames, [&](const Frame& frame) { return InClause(frame, source); });
}

}  // namespace dtrun::stacks
