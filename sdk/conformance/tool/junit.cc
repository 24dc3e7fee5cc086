#include "junit.h"

#include <cstdint>
#include <sstream>

namespace dtrun::conformance::tool {
namespace {

// The bytes of the UTF-8 character at `at`, 0 when there is none.
std::size_t CharacterBytes(const std::string& text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  const std::size_t bytes = first < 0x80             ? 1
                            : (first & 0xe0) == 0xc0 ? 2
                            : (first & 0xf0) == 0xe0 ? 3
                            : (first & 0xf8) == 0xf0 ? 4
                                                     : 0;
  if (bytes == 0 || at + bytes > text.size()) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((static_cast<unsigned char>(text[at + i]) & 0xc0) != 0x80) return 0;
  }
  return bytes;
}

// XML has no control characters but tab and line feed, not even escaped, and no broken UTF-8.
std::string Escaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t bytes = CharacterBytes(text, i);
    const char c = text[i];
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\n')
      out += "&#10;";
    else if (bytes == 0 || (bytes == 1 && static_cast<unsigned char>(c) < 0x20 && c != '\t'))
      out += '?';
    else
      out += text.substr(i, bytes);
    i += bytes == 0 ? 1 : bytes;
  }
  return out;
}

std::size_t CountOf(const std::vector<CaseResult>& results, CaseResult::Kind kind) {
  std::size_t count = 0;
  for (const CaseResult& result : results) count += result.kind == kind ? 1 : 0;
  return count;
}

}  // namespace

std::string JunitXml(const std::string& suite, const std::vector<CaseResult>& results, double seconds) {
  std::ostringstream out;
  out.precision(3);
  out << std::fixed << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\""
      << Escaped(suite) << "\" tests=\"" << results.size() << "\" failures=\""
      << CountOf(results, CaseResult::Kind::kFailed) << "\" errors=\"0\" skipped=\""
      << CountOf(results, CaseResult::Kind::kSkipped) << "\" time=\"" << seconds << "\">\n";
  for (const CaseResult& result : results) {
    const std::size_t dot = result.name.find('.');
    out << "<testcase classname=\"" << Escaped(result.name.substr(0, dot)) << "\" name=\""
        << Escaped(result.name.substr(dot + 1)) << "\" time=\"" << result.seconds
        << "\"><properties><property name=\"rule\" value=\"" << Escaped(result.rules) << "\"/></properties>";
    if (result.kind == CaseResult::Kind::kSkipped)
      out << "<skipped message=\"" << Escaped(result.reason) << "\"/>";
    if (result.kind == CaseResult::Kind::kFailed) {
      out << "<failure message=\"" << Escaped(result.reason) << "\">";
      for (const std::string& text : result.failures) out << Escaped(text) << "&#10;";
      out << Escaped(result.output) << "</failure>";
    }
    out << "</testcase>\n";
  }
  out << "</testsuite>\n</testsuites>\n";
  return out.str();
}

}  // namespace dtrun::conformance::tool
