#include "core/failures/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/base/json.h"
#include "core/failures/pattern.h"

namespace dtrun::failures {
namespace {

constexpr char kGiveMore[] = "give the lines around the first error, or the file with the log";
constexpr std::size_t kMostMentions = 8;

std::string_view DepthName(Depth depth) { return depth == Depth::kCause ? "cause" : "symptom"; }

// A sentence of a failure whose text is not there.
std::string WithoutText(const std::string& sentence) {
  Captures unknown;
  for (std::size_t at = sentence.find('{'); at != sentence.npos; at = sentence.find('{', at + 1))
    unknown.emplace_back(sentence.substr(at + 1, sentence.find('}', at) - at - 1), "…");
  return Fill(sentence, unknown);
}

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
  if (foremost == nullptr) return fmt::format("no known failure in this text; {}\n", kGiveMore);
  std::string out;
  Append(*foremost, where, &out);
  for (const Finding& finding : findings) {
    if (&finding == foremost) continue;
    out += '\n';
    Append(finding, where, &out);
  }
  return out;
}

std::string ToText(const std::vector<Mention>& mentions) {
  std::string out =
      mentions.size() == 1
          ? fmt::format("perhaps this known failure; to be sure, {}\n", kGiveMore)
          : fmt::format("perhaps one of {} known failures; to know which, {}\n", mentions.size(), kGiveMore);
  for (std::size_t i = 0; i < std::min(mentions.size(), kMostMentions); ++i) {
    const KnownFailure& failure = *mentions[i].failure;
    fmt::format_to(std::back_inserter(out), "\n{}\n  next: {}\n  id {}; a text of {}\n    | {}\n",
                   WithoutText(failure.what), WithoutText(failure.fix), failure.id, failure.source,
                   mentions[i].text);
  }
  if (mentions.size() > kMostMentions)
    fmt::format_to(std::back_inserter(out), "\nand {} more\n", mentions.size() - kMostMentions);
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

Json ToJson(const std::vector<Mention>& mentions) {
  Json out = Json::array();
  for (const Mention& mention : mentions) {
    out.push_back({{"id", mention.failure->id},
                   {"what", WithoutText(mention.failure->what)},
                   {"fix", WithoutText(mention.failure->fix)},
                   {"source", mention.failure->source},
                   {"text", mention.text}});
  }
  return out;
}

}  // namespace dtrun::failures
