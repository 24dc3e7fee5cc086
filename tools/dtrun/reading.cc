#include "tools/dtrun/reading.h"

#include <unistd.h>

#include "core/base/standard_output.h"
#include "core/output/message.h"
#include "core/output/sink.h"
#include "core/output/style.h"

namespace dtrun::cli {

void WriteForReading(std::string_view text) {
  const output::Sink sink(STDOUT_FILENO);
  if (!sink.terminal()) return WriteOutput(text);
  WriteOutput(output::Message(text, sink.columns(), output::WantsColour(output::ColourWhen::kAuto, true)));
}

}  // namespace dtrun::cli
