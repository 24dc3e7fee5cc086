#include "tools/dtrun/reading.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/base/number.h"
#include "core/base/standard_output.h"
#include "core/output/display.h"
#include "core/output/message.h"
#include "core/output/sink.h"
#include "core/output/style.h"

namespace dtrun::cli {

namespace {

// The width from COLUMNS, else the terminal's.
int ColumnsOf(const output::Sink& sink) {
  const char* const asked = std::getenv("COLUMNS");
  const auto columns = asked == nullptr ? std::nullopt : NumberOf<int>(asked);
  return columns && *columns > 0 ? *columns : sink.columns();
}

std::string FormFor(int descriptor, std::string_view text, bool colour) {
  const output::Sink sink(descriptor);
  if (!sink.terminal()) return std::string(text);
  return output::Message(text, ColumnsOf(sink),
                         colour && output::WantsColour(output::ColourWhen::kAuto, true));
}

}  // namespace

std::string NotACount(const std::string& word) {
  const auto count = NumberOf<int>(word);
  return count && *count >= 0 && *count <= 1'000'000'000
             ? ""
             : fmt::format("'{}' is no number from 0 to 1000000000", word);
}

int Refuse(std::string_view text) {
  PrintMessage("dtrun: {}\n", output::Tamed(text));
  return kUserError;
}

int ColumnsOfOutput() {
  const output::Sink sink(STDOUT_FILENO);
  return sink.terminal() || std::getenv("COLUMNS") != nullptr ? ColumnsOf(sink) : 0;
}

void WriteHelp(std::string_view text) {
  constexpr int kColumnsOfAPipe = 80;
  const output::Sink sink(STDOUT_FILENO);
  const int columns = ColumnsOf(sink);
  WriteOutput(output::Message(text, columns > 0 ? columns : kColumnsOfAPipe, false));
}

void WriteForReading(std::string_view text) { WriteOutput(FormFor(STDOUT_FILENO, text, true)); }

void WriteTable(std::string_view text) { WriteOutput(FormFor(STDOUT_FILENO, text, false)); }

void FormMessagesForReading() {
  FormMessages([](std::string_view text) { return FormFor(STDERR_FILENO, text, true); });
}

}  // namespace dtrun::cli
