#include "report.h"

#include <cstdio>
#include <regex>
#include <set>
#include <sstream>

#include "rules.h"
#include "sdk/conformance/text_check.h"

namespace dtrun::conformance::tool {
namespace {

constexpr std::size_t kTexts = 5;        // of failures that are printed
constexpr std::size_t kLinesOfOne = 25;  // of one

// The control character of one byte, or of two in UTF-8, that `text` has at `at`; 0: none.
unsigned ControlAt(const std::string& text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  if (byte(at) < 0x20 || byte(at) == 0x7f) return byte(at);
  return byte(at) == 0xc2 && byte(at + 1) >= 0x80 && byte(at + 1) < 0xa0 ? byte(at + 1) : 0;
}

// Control characters of texts from elsewhere do not reach the terminal: "\\u001b". Of a text that is no UTF-8
// neither do other bytes: "\\xff".
std::string Visible(const std::string& line) {
  const bool utf8 = IsUtf8(line);
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const unsigned control = ControlAt(line, i);
    char shown[7];
    if (!utf8 && static_cast<unsigned char>(line[i]) >= 0x80) {
      std::snprintf(shown, sizeof shown, "\\x%02x", static_cast<unsigned char>(line[i]));
      out += shown;
      continue;
    }
    if (control == 0) {
      out += line[i];
      continue;
    }
    std::snprintf(shown, sizeof shown, "\\u%04x", control);
    out += shown;
    if (control >= 0x80) ++i;
  }
  return out;
}

void PrintIndented(const std::string& text, const char* indent) {
  std::istringstream in(text);
  std::size_t lines = 0;
  for (std::string line; std::getline(in, line); ++lines) {
    if (lines == kLinesOfOne) {
      std::printf("%s...\n", indent);
      return;
    }
    std::printf("%s%s\n", indent, Visible(line).c_str());
  }
}

std::vector<std::string> Ids(const std::string& rules) {
  std::vector<std::string> ids;
  std::istringstream in(rules);
  for (std::string id; in >> id;) {
    if (id.back() == ',') id.pop_back();
    ids.push_back(id);
  }
  return ids;
}

}  // namespace

std::string RulesBroken(const std::vector<std::string>& failures, const std::string& rules) {
  static const std::regex kNamed("\\(([A-Z][0-9]+(, [A-Z][0-9]+)*)\\)");
  std::string all;
  const auto add = [&](const std::string& id) {
    if ((", " + all + ",").find(", " + id + ",") == std::string::npos) all += (all.empty() ? "" : ", ") + id;
  };
  for (const std::string& text : failures) {
    for (std::sregex_iterator found(text.begin(), text.end(), kNamed), end; found != end; ++found) {
      for (const std::string& id : Ids((*found)[1])) add(id);
    }
  }
  for (const std::string& id : Ids(rules)) add(id);
  return all;
}

std::string RuleText(const std::string& id) {
  const std::string page = kRulesPage, mark = "\n- **" + id + "** ";
  const std::size_t found = page.find(mark);
  if (found == page.npos) return {};
  std::size_t end = found + mark.size();
  const std::size_t begin = end;
  do {
    end = page.find('\n', end + 1);
  } while (end != page.npos && page.compare(end, 3, "\n  ") == 0);
  std::string text;
  bool code = false, link = false;
  for (std::size_t i = begin; i < std::min(end, page.size()); ++i) {
    const char now = page[i];
    if (now == '`') code = !code;
    if (!code && page.compare(i, 2, "](") == 0) link = true;
    const bool markup = now == '`' || now == '\n' || (!code && (now == '*' || now == '['));
    if (!link && !markup) text += now;
    if (link && now == ')') link = false;
    if (now == '\n') i += 1;  // of the two spaces that follow, one stays
  }
  return text;
}

void PrintResult(const CaseResult& result) {
  const bool failed = result.kind == CaseResult::Kind::kFailed;
  const char* const word = failed ? "FAILED" : result.kind == CaseResult::Kind::kSkipped ? "skipped" : "ok";
  std::printf("%-7s  %s (%.2f s)%s%s\n", word, result.name.c_str(), result.seconds,
              result.reason.empty() ? "" : ": ", Visible(result.reason).c_str());
  if (failed) {
    for (std::size_t i = 0; i < result.failures.size(); ++i) {
      if (i == kTexts) {
        std::printf("         and %zu more\n", result.failures.size() - kTexts);
        break;
      }
      if (result.failures[i] != result.reason) PrintIndented(result.failures[i], "         ");
    }
    PrintIndented(result.output, "         | ");
    for (const std::string& id : Ids(result.rules)) {
      static std::set<std::string> printed;  // texts are long; the second time the id will do
      std::printf("         rule %s: %s\n", id.c_str(),
                  printed.insert(id).second ? RuleText(id).c_str() : "see above");
    }
  }
  std::fflush(stdout);
}

void PrintSummary(const std::vector<CaseResult>& results, double seconds) {
  std::size_t counts[3] = {};
  for (const CaseResult& result : results) ++counts[static_cast<std::size_t>(result.kind)];
  const auto of = [&](CaseResult::Kind kind) { return counts[static_cast<std::size_t>(kind)]; };
  std::printf("%zu cases in %.1f s: %zu passed, %zu failed, %zu skipped\n", results.size(), seconds,
              of(CaseResult::Kind::kPassed), of(CaseResult::Kind::kFailed), of(CaseResult::Kind::kSkipped));
}

void PrintProblem(const std::string& text) {
  const char* before = "dtrun-conformance: ";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line); before = "  ")
    std::fprintf(stderr, "%s%s\n", before, Visible(line).c_str());
}

void PrintNote(const std::string& text) { std::printf("%s\n", Visible(text).c_str()); }

}  // namespace dtrun::conformance::tool
