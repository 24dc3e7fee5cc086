// The text of events.log, which a crash or a user may have changed: nothing crashes, each record that is read
// is written and read the same, and the records alone give the same verdict.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/base/text.h"
#include "core/verdict/event_log.h"
#include "core/verdict/verdict.h"
#include "tests/fuzz/target.h"

namespace events_fuzz {

using namespace dtrun;

void Require(bool holds) {
  if (!holds) std::abort();
}

DTRUN_FUZZ_TARGET(events)(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string records;
  for (const std::string_view line : LinesOf(text)) {
    const auto entry = verdict::FromLine(line);
    if (!entry) continue;
    const std::string written = verdict::ToLine(*entry);
    Require(verdict::ToLine(verdict::FromLine(written).value()) == written);
    records += written + "\n";
  }
  auto story = verdict::Replay(text);
  if (!story) return 0;
  (void)verdict::VerdictText(story->facts());
  Require(verdict::VerdictJson(*story) == verdict::VerdictJson(verdict::Replay(records).value()));
  story->MoveTo("/elsewhere");
  (void)verdict::VerdictText(story->facts());
  return 0;
}

}  // namespace events_fuzz
