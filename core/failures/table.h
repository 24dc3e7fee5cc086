// The known failures: entries of TOML files, those of the user before those that ship with dtrun.
//
// A table is immutable; any thread. The process's own is read when a text is first searched, or by ReadAhead.
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
#include <vector>

#include "core/failures/failure.h"

namespace dtrun::failures {

class Table {
 public:
  using Word = std::uint32_t;

  struct Pattern {
    std::size_t failure;  // index into `failures`
    std::string_view text;
  };

  // Of two entries with one id the first counts. What cannot be read is left out.
  explicit Table(const std::vector<std::filesystem::path>& files);
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  const std::vector<std::shared_ptr<const KnownFailure>>& failures() const { return failures_; }

  // In the order in which they are tried.
  const std::vector<FallbackLevel>& fallbacks() const { return fallbacks_; }

  // What was left out, each with file, line, column, key and what to do.
  const std::vector<std::string>& problems() const { return problems_; }

  // The patterns that may begin with these four bytes, in the order of the table; null for none. Most places
  // of a text are passed by with one look into a bitmap.
  const std::vector<Pattern>* At(Word word) const;

  // REQUIRES: four bytes are left
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

// share/dtrun/failures.toml of the installation that this program belongs to.
std::filesystem::path ShippedFile();

// The user's own files (failures.path), before the shipped one from now on.
void UseFiles(std::vector<std::filesystem::path> own);

// The process's table.
std::shared_ptr<const Table> Known();

// Reads the process's table in the background, so that a failure's verdict does not wait for it.
class ReadAhead {
 public:
  // After this time, so that short jobs that go well read nothing. Where no thread can start, the table is
  // read when it is needed.
  explicit ReadAhead(std::chrono::milliseconds after = std::chrono::milliseconds(100));

 private:
  std::jthread thread_;  // its end waits for a reading that has begun
};

}  // namespace dtrun::failures
