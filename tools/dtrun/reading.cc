#include "tools/dtrun/reading.h"

#include <unistd.h>

#include "core/base/standard_output.h"
#include "core/output/message.h"
#include "core/output/sink.h"
#include "core/output/style.h"

namespace dtrun::cli {

namespace {

std::string FormFor(int descriptor, std::string_view text) {
  const output::Sink sink(descriptor);
  if (!sink.terminal()) return std::string(text);
  return output::Message(text, sink.columns(), output::WantsColour(output::ColourWhen::kAuto, true));
}

}  // namespace

void WriteForReading(std::string_view text) { WriteOutput(FormFor(STDOUT_FILENO, text)); }

void FormMessagesForReading() {
  FormMessages([](std::string_view text) { return FormFor(STDERR_FILENO, text); });
}

}  // namespace dtrun::cli
