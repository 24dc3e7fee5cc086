#include "core/failures/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <utility>
#include <variant>

#include "core/base/program_files.h"
#include "core/spec/document.h"
#include "core/spec/file.h"
#include "core/failures/entry.h"

namespace dtrun::failures {
namespace {

namespace fs = std::filesystem;

std::size_t Slot(Table::Word word) { return (word * 0x9e3779b1u) >> 16; }

std::string PlacedAt(const fs::path& file, spec::Position at, const std::string& what) {
  return at.line == 0 ? fmt::format("{}: {}", file.string(), what)
                      : fmt::format("{}:{}:{}: {}", file.string(), at.line, at.column, what);
}

struct Shared {
  std::mutex mutex;
  std::vector<fs::path> own;
  std::shared_ptr<const Table> table;  // null: not read yet
};

Shared& TheShared() {
  static Shared shared;
  return shared;
}

}  // namespace

Table::Table(const std::vector<fs::path>& files) {
  for (const fs::path& file : files) Add(file);
  for (std::size_t i = 0; i < failures_.size(); ++i) {
    for (const std::string& text : failures_[i]->texts) {
      const Word word = WordAt(text);
      seen_.set(Slot(word));
      patterns_[word].push_back({i, text});
    }
  }
}

void Table::Add(const fs::path& file) {
  const auto tell = [&](spec::Position at, const std::string& what) {
    problems_.push_back(PlacedAt(file, at, what));
  };
  const Result<std::string> text = spec::ReadFile(file);
  if (!text) {
    return tell({}, fmt::format("{}; {}", text.error().text,
                                file == ShippedFile() ? "it belongs to dtrun: install dtrun again"
                                                      : "correct failures.path or --failures"));
  }
  const std::variant<spec::Node, spec::SyntaxError> parsed = spec::ParseToml(*text);
  if (const auto* const error = std::get_if<spec::SyntaxError>(&parsed))
    return tell(error->at, error->message);
  std::vector<Problem> problems;
  for (const spec::Member& member : std::get<spec::Node>(parsed).members) {
    const bool failure = member.key == "failure";
    if ((!failure && member.key != "fallback") || member.value.kind != spec::Node::Kind::kList) {
      problems.push_back(
          {member.at, fmt::format("'{}' is not known here; write each failure as [[failure]]", member.key)});
      continue;
    }
    for (const spec::Node& entry : member.value.items) {
      if (failure) {
        if (auto read = ReadFailure(entry, &problems)) Add(*std::move(read));
      } else if (auto level = ReadFallback(entry, &problems)) {
        fallbacks_.push_back(*std::move(level));
      }
    }
  }
  for (const Problem& problem : problems) tell(problem.at, problem.what);
}

void Table::Add(KnownFailure failure) {
  const auto same = [&](const auto& other) { return other->id == failure.id; };
  if (std::ranges::any_of(failures_, same)) return;
  failures_.push_back(std::make_shared<const KnownFailure>(std::move(failure)));
}

Table::Word Table::WordAt(std::string_view text) {
  Word word = 0;
  std::memcpy(&word, text.data(), sizeof word);
  return word;
}

const std::vector<Table::Pattern>* Table::At(Word word) const {
  if (!seen_.test(Slot(word))) return nullptr;
  const auto found = patterns_.find(word);
  return found == patterns_.end() ? nullptr : &found->second;
}

fs::path ShippedFile() { return SharedFolder() / "failures.toml"; }

void UseFiles(std::vector<fs::path> own) {
  Shared& shared = TheShared();
  const std::lock_guard lock(shared.mutex);
  shared.own = std::move(own);
  shared.table.reset();
}

std::shared_ptr<const Table> Known() {
  Shared& shared = TheShared();
  const std::lock_guard lock(shared.mutex);
  if (shared.table == nullptr) {
    std::vector<fs::path> files = shared.own;
    files.push_back(ShippedFile());
    shared.table = std::make_shared<const Table>(files);
  }
  return shared.table;
}

ReadAhead::ReadAhead(std::chrono::milliseconds after) {
  const auto read = [after](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    stopped.wait_for(lock, stop, after, [] { return false; });
    if (!stop.stop_requested()) Known();
  };
  try {
    thread_ = std::jthread(read);
  } catch (const std::system_error&) {  // no thread available: read on demand
  }
}

}  // namespace dtrun::failures
