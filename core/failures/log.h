// Known failures in the logs of a rank.
//
// Reads files; any thread, blocks for as long as the disk takes.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "core/base/result.h"
#include "core/failures/finding.h"

namespace dtrun::failures {

// Of a longer log only so much of its end is read; line numbers are then not known.
inline constexpr std::size_t kMostBytes = std::size_t{16} << 20;

enum class Whose {
  kAnybodys,  // whatever stands there, waiting for it: stdin
  kNamed,     // what a user has named: a file, or a pipe that somebody writes into now
  kOurs,      // a log that this user's dtrun has written: anything else in its place is an error
};

// What sentences may say of a rank's program, the first word of its command: {python}, when it is an
// interpreter of Python.
Captures FactsOf(const std::filesystem::path& program);

// Errors name the file. `facts`: what else is known, for the sentences.
Result<std::vector<Finding>> FindFailuresIn(const std::filesystem::path& file,
                                            std::size_t most_bytes = kMostBytes,
                                            Whose whose = Whose::kAnybodys, const Captures& facts = {});

struct LogFinding {
  Finding finding;
  std::filesystem::path file;  // empty: known from the last lines alone
  bool recent = true;          // near the end of the log, where the rank died
};

// What to tell of a rank that failed: the foremost finding of its logs, a cause before a symptom,
// a recent one before an old one, and else by the order of `files`.
Result<std::optional<LogFinding>> FindInLogs(const std::vector<std::filesystem::path>& files, Whose whose,
                                             const Captures& facts = {});

}  // namespace dtrun::failures
