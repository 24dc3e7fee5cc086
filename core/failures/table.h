// Known failures, recognised by texts that libraries print, and their table, from TOML files: the user's own
// entries before those shipped with dtrun.
//
// A table is immutable; any thread. The process's own table is read at the first search, or by ReadAhead.
#pragma once

#include <bitset>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dtrun::failures {

// How much a text explains.
enum class Depth : std::uint8_t {
  kCause,    // the actual error
  kSymptom,  // a consequence; prefer a cause in the same log
  kReport,   // a launcher or the runtime reports that a process failed; prefer any other text
};

// What kind of failure it is, where the exit status does not tell.
enum class Kind : std::uint8_t {
  kUnsaid,
  kNetwork,
  kRendezvous,
  kMemory,
  kConnection,  // a connection to a peer or to anything else, such as a web service
  kCalls,       // ranks made different calls
};

struct KnownFailure {
  std::string id;
  std::vector<std::string> texts;  // patterns (pattern.h)
  std::string what;
  std::string fix;
  std::string source;
  Depth depth = Depth::kCause;
  Kind kind = Kind::kUnsaid;
  std::vector<std::string> against;  // paths of fallback levels: "peer-access"
};

// A fallback from a faster path between the GPUs of a host.
struct FallbackLevel {
  std::string path;
  std::vector<std::pair<std::string, std::string>> variables;
  std::string said;  // "without peer access between GPUs"
};

class Table {
 public:
  using Word = std::uint32_t;

  struct Pattern {
    std::size_t failure;  // index into `failures`
    std::string_view text;
  };

  // If two entries have the same id, the first counts. Invalid entries are left out.
  explicit Table(const std::vector<std::filesystem::path>& files);
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  const std::vector<std::shared_ptr<const KnownFailure>>& failures() const { return failures_; }

  // In the order of attempts.
  const std::vector<FallbackLevel>& fallbacks() const { return fallbacks_; }

  // The entries left out, each with file, line, column, key and what to do.
  const std::vector<std::string>& problems() const { return problems_; }

  // The patterns that may begin with these four bytes, in table order; null: none. Most positions of a text
  // are rejected with one lookup in a bitmap.
  const std::vector<Pattern>* At(Word word) const;

  // REQUIRES: at least four bytes.
  static Word WordAt(std::string_view text);

 private:
  void Add(const std::filesystem::path& file);
  void Add(KnownFailure failure);

  std::vector<std::shared_ptr<const KnownFailure>> failures_;
  std::vector<FallbackLevel> fallbacks_;
  std::vector<std::string> problems_;
  std::bitset<1 << 16> seen_;
  std::unordered_map<Word, std::vector<Pattern>> patterns_;
};

// Puts the user's own files (failures.path) before the shipped one.
void UseFiles(std::vector<std::filesystem::path> own);

// The process's table.
std::shared_ptr<const Table> Known();

// Reads the process's table in the background, so that a verdict does not wait for it.
class ReadAhead {
 public:
  // Waits for `after` first, so that short successful jobs read nothing. If no thread can start, the table is
  // read on demand.
  explicit ReadAhead(std::chrono::milliseconds after = std::chrono::milliseconds(100));

 private:
  std::jthread thread_;  // its destructor waits for a read in progress
};

}  // namespace dtrun::failures
