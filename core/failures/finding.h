// Finds known failures in a text.
//
// Any thread. The process's table is read at the first call with a text. Linear in the size of the text.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/failures/pattern.h"
#include "core/failures/table.h"

namespace dtrun::failures {

// The last occurrence of a known failure in the text. The last one counts because a process dies of what it
// prints last.
struct Finding {
  std::shared_ptr<const KnownFailure> failure;
  std::string what;  // with the ranks and addresses from the text
  std::string fix;
  std::string line;             // the line itself, cut to 400 bytes
  std::size_t line_number = 0;  // from 1; 0: unknown
  std::size_t lines_after = 0;
  std::size_t count = 0;  // number of occurrences
};

// Each failure once, ordered by its last line. `facts`: further values for the sentences.
std::vector<Finding> FindFailures(std::string_view text, const Captures& facts = {});
std::vector<Finding> FindFailures(const Table& table, std::string_view text, const Captures& facts = {});

// A known failure of which `words` match only a part, ignoring case: "Connection reset by peer" of a longer
// line. Each failure once, in table order; none for fewer than 4 bytes.
struct Mention {
  std::shared_ptr<const KnownFailure> failure;
  std::string text;  // its first text that contains these words
};
std::vector<Mention> FindMentions(std::string_view words);

// The finding to report first: the last cause, else the last symptom, else the last report. Null: none.
const Finding* Foremost(const std::vector<Finding>& findings);

// Only this many bytes at the end of a longer log are read. Line numbers are then unknown.
inline constexpr std::size_t kMostBytes = std::size_t{16} << 20;

enum class LogSource {
  kAny,       // stdin or the like: waits until it ends
  kUserPath,  // a path that the user named: a file, or a pipe with a writer
  kRunLog,    // a log written by this user's dtrun; anything else in its place is an error
};

// Values for the sentences about a rank's program, given the first word of its command: {python} if it is a
// Python interpreter.
Captures FactsOf(const std::filesystem::path& program);

// Errors name the file. `facts`: further values for the sentences.
Result<std::vector<Finding>> FindFailuresIn(const std::filesystem::path& file,
                                            std::size_t most_bytes = kMostBytes,
                                            LogSource source = LogSource::kAny, const Captures& facts = {});

struct LogFinding {
  Finding finding;
  std::filesystem::path file;  // empty: found in the last lines alone
  bool recent = true;          // near the end of the log
};

// The finding to report for a failed rank: a cause before a symptom, recent before old, then in the order of
// `files`.
Result<std::optional<LogFinding>> FindInLogs(const std::vector<std::filesystem::path>& files,
                                             LogSource source, const Captures& facts = {});

}  // namespace dtrun::failures
