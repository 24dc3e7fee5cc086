// Feeds any bytes to the table of known failures, as a log may hold any: nothing crashes, places
// are inside the text, and a text that is found once is found again in its own line, wherever
// that stands.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/failures/finding.h"
#include "tests/fuzz/target.h"

namespace diagnosis_fuzz {

void Require(bool holds) {
  if (!holds) std::abort();
}

DTRUN_FUZZ_TARGET(diagnosis)(const std::uint8_t* data, std::size_t size) {
  using namespace dtrun::failures;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n')) + 1;
  const auto findings = FindFailures(text);
  Require((Foremost(findings) == nullptr) == findings.empty());
  std::size_t last = 0;
  for (const Finding& finding : findings) {
    Require(finding.line_number >= std::max<std::size_t>(last, 1) && finding.line_number <= lines);
    Require(finding.line_number + finding.lines_after <= lines && finding.count >= 1);
    Require(finding.line.find('\n') == finding.line.npos && finding.line.size() <= 400);
    last = finding.line_number;
  }
  // What stands before does not change what is found.
  const auto again = FindFailures("an ordinary line\n" + std::string(text));
  Require(again.size() == findings.size());
  for (std::size_t i = 0; i < again.size(); ++i) {
    Require(again[i].failure == findings[i].failure && again[i].what == findings[i].what);
    Require(again[i].line_number == findings[i].line_number + 1);
  }
  return 0;
}

}  // namespace diagnosis_fuzz
