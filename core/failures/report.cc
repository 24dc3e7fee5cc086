#include "core/failures/report.h"

#include <fmt/format.h>

#include <iterator>

#include "core/base/json.h"

namespace dtrun::failures {
namespace {

std::string_view DepthName(Depth depth) { return depth == Depth::kCause ? "cause" : "symptom"; }

void Append(const Finding& finding, const std::string& where, std::string* out) {
  const std::string place = PlaceText(where, finding);
  fmt::format_to(std::back_inserter(*out), "{}: {}\n  next: {}\n  {}id {}; a text of {}{}\n    | {}\n",
                 finding.failure->depth == Depth::kCause ? "known failure" : "known symptom", finding.what,
                 finding.fix, place.empty() ? "" : place + "; ", finding.failure->id, finding.failure->source,
                 finding.count > 1 ? fmt::format("; {} times", finding.count) : "", finding.line);
}

}  // namespace

std::string PlaceText(const std::string& file, const Finding& finding) {
  if (finding.line_number == 0) return file;
  return fmt::format("{}{}line {}", file, file.empty() ? "" : ", ", finding.line_number);
}

std::string ToText(const std::vector<Finding>& findings, const std::string& where) {
  const Finding* const foremost = Foremost(findings);
  if (foremost == nullptr)
    return "no known failure in this text; give the lines around the first error, or the file with the log\n";
  std::string out;
  Append(*foremost, where, &out);
  for (const Finding& finding : findings) {
    if (&finding == foremost) continue;
    out += '\n';
    Append(finding, where, &out);
  }
  return out;
}

Json ToJson(const Finding& finding) {
  return {{"id", finding.failure->id},
          {"depth", DepthName(finding.failure->depth)},
          {"what", finding.what},
          {"fix", finding.fix},
          {"cure", finding.fix},  // its older name, which ends with 0.2
          {"source", finding.failure->source},
          {"text", finding.line},
          {"line", finding.line_number == 0 ? Json(nullptr) : Json(finding.line_number)},
          {"count", finding.count}};
}

Json ToJson(const std::vector<Finding>& findings) {
  Json out = Json::array();
  const Finding* const foremost = Foremost(findings);
  for (const Finding& finding : findings) {
    Json one = ToJson(finding);
    one["foremost"] = &finding == foremost;
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace dtrun::failures
