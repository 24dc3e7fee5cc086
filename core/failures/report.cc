#include "core/failures/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/base/json.h"
#include "core/failures/pattern.h"

namespace dtrun::failures {
namespace {

constexpr char kGiveMore[] = "give the lines around the first error, or the file with the log";
constexpr char kSymptomsAlone[] =
    "\nThis is a symptom. Look for the cause in earlier lines or in the output of the other ranks.\n";
constexpr std::size_t kMostMentions = 8;

// Programs see a report as a symptom: the format has no third word.
std::string_view DepthName(Depth depth) { return depth == Depth::kCause ? "cause" : "symptom"; }

// A sentence without captures: drops bracketed parts and replaces other captures by "…".
std::string WithoutText(const std::string& sentence) {
  Captures unknown;
  bool bracket = false;
  for (std::size_t at = 0; at < sentence.size(); ++at) {
    if (sentence[at] == '[' || sentence[at] == ']') bracket = sentence[at] == '[';
    if (sentence[at] == '{' && !bracket)
      unknown.emplace_back(sentence.substr(at + 1, sentence.find('}', at) - at - 1), "…");
  }
  return Fill(sentence, unknown);
}

// Splits a text of several lines, one below the other.
std::string OnLines(std::string text) {
  for (std::size_t at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1))
    text.replace(at, 1, "\n    | ");
  return text;
}

std::string Reference(const KnownFailure& failure) {
  return fmt::format("  reference: {}, printed by {}\n", failure.id, failure.source);
}

void Append(const Finding& finding, const std::string& where, std::string* out) {
  const bool only_line = where.empty() && finding.line_number == 1 && finding.lines_after == 0;
  const std::string place = only_line ? "" : PlaceText(where, finding);
  const std::string times = finding.count > 1 ? fmt::format("{} times", finding.count) : "";
  fmt::format_to(std::back_inserter(*out), "{}: {}\n",
                 finding.failure->depth == Depth::kCause ? "known failure" : "known symptom", finding.what);
  if (!place.empty() || !times.empty()) {
    fmt::format_to(std::back_inserter(*out), "  seen {}{}{}{}:\n", place.empty() ? "" : "in ", place,
                   place.empty() || times.empty() ? "" : ", ", times);
  }
  fmt::format_to(std::back_inserter(*out), "    | {}\n  next: {}\n{}", finding.line, finding.fix,
                 Reference(*finding.failure));
}

// The most informative finding of each line: specific before general, a cause before a symptom.
std::vector<const Finding*> FirstOfEachLine(const std::vector<Finding>& findings) {
  std::vector<const Finding*> firsts;
  for (const Finding& finding : findings) {
    if (firsts.empty() || firsts.back()->lines_after != finding.lines_after) {
      firsts.push_back(&finding);
    } else if (finding.failure->depth < firsts.back()->failure->depth) {
      firsts.back() = &finding;
    }
  }
  return firsts;
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
  for (const Finding* const finding : FirstOfEachLine(findings)) {
    if (finding == foremost) continue;
    out += '\n';
    Append(*finding, where, &out);
  }
  if (foremost->failure->depth != Depth::kCause) out += kSymptomsAlone;
  return out;
}

std::string ToText(const std::vector<Mention>& mentions) {
  std::string out =
      mentions.size() == 1
          ? fmt::format("perhaps this known failure; to be sure, {}\n", kGiveMore)
          : fmt::format("perhaps one of {} known failures; to know which, {}\n", mentions.size(), kGiveMore);
  for (std::size_t i = 0; i < std::min(mentions.size(), kMostMentions); ++i) {
    const KnownFailure& failure = *mentions[i].failure;
    fmt::format_to(std::back_inserter(out), "\n{}\n  its text:\n    | {}\n  next: {}\n{}",
                   WithoutText(failure.what), OnLines(mentions[i].text), WithoutText(failure.fix),
                   Reference(failure));
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
          {"cure", finding.fix},  // older name, removed after 0.2
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
