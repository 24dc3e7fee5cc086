// What the verbs print for people to read, on stdout and stderr: broken between words at the width of a
// terminal (COLUMNS, where it is set), with colours there, and as it is in a pipe or a file. Main thread.
#pragma once

#include <string_view>

namespace dtrun::cli {

void WriteForReading(std::string_view text);

// What --help prints: breaks in a pipe too, at COLUMNS or 80, as argparse does.
void WriteHelp(std::string_view text);

// Lists of many lines: without colours.
void WriteTable(std::string_view text);

// Messages are shown so from now on.
void FormMessagesForReading();

}  // namespace dtrun::cli
