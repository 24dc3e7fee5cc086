// Prints text for people on stdout and stderr. On a terminal it is coloured and wrapped at the width
// (COLUMNS, if set); in a pipe or file it is unchanged. Main thread.
#pragma once

#include <string>
#include <string_view>

namespace dtrun::cli {

void WriteForReading(std::string_view text);

// For --help: also wraps in a pipe, at COLUMNS or 80, like argparse.
void WriteHelp(std::string_view text);

// For long lists: without colours.
void WriteTable(std::string_view text);

// A user error: prints "dtrun: TEXT" and returns kUserError. `text` may quote ranks, jobs and other hosts.
int Refuse(std::string_view text);

// For an option's value: empty if it is a number from 0 to 1000000000, else what is wrong.
std::string NotACount(const std::string& word);

// The width of stdout: COLUMNS if set, else the terminal's. 0: it is no terminal.
int ColumnsOfOutput();

// Formats all later messages this way.
void FormMessagesForReading();

}  // namespace dtrun::cli
