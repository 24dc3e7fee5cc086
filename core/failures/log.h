// Finds known failures in the logs of a rank.
//
// Reads files; any thread, blocks for as long as the disk takes.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "core/base/result.h"
#include "core/failures/finding.h"

namespace dtrun::failures {

// Only this many bytes at the end of a longer log are read. Line numbers are then unknown.
inline constexpr std::size_t kMostBytes = std::size_t{16} << 20;

enum class Whose {
  kAnybodys,  // any source, waiting for it: stdin
  kNamed,     // a path that the user named: a file, or a pipe with a writer
  kOurs,      // a log written by this user's dtrun; anything else in its place is an error
};

// Values for the sentences about a rank's program, given the first word of its command: {python} if it is a
// Python interpreter.
Captures FactsOf(const std::filesystem::path& program);

// Errors name the file. `facts`: further values for the sentences.
Result<std::vector<Finding>> FindFailuresIn(const std::filesystem::path& file,
                                            std::size_t most_bytes = kMostBytes,
                                            Whose whose = Whose::kAnybodys, const Captures& facts = {});

struct LogFinding {
  Finding finding;
  std::filesystem::path file;  // empty: found in the last lines alone
  bool recent = true;          // near the end of the log
};

// The finding to report for a failed rank: a cause before a symptom, recent before old, then in the order of
// `files`.
Result<std::optional<LogFinding>> FindInLogs(const std::vector<std::filesystem::path>& files, Whose whose,
                                             const Captures& facts = {});

}  // namespace dtrun::failures
