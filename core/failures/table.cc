#include "core/failures/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/program_files.h"
#include "core/base/text.h"
#include "core/failures/pattern.h"
#include "core/spec/document.h"
#include "core/spec/file.h"

namespace dtrun::failures {
namespace {

struct Problem {
  spec::Position at;
  std::string what;  // includes what to do
};

using spec::Node;

const std::vector<std::pair<std::string, Depth>> kDepths = {
    {"cause", Depth::kCause}, {"symptom", Depth::kSymptom}, {"report", Depth::kReport}};
const std::vector<std::pair<std::string, Kind>> kKinds = {{"network", Kind::kNetwork},
                                                          {"rendezvous", Kind::kRendezvous},
                                                          {"memory", Kind::kMemory},
                                                          {"connection", Kind::kConnection},
                                                          {"calls", Kind::kCalls}};

// The names outside brackets, which every text must capture.
std::vector<std::string> NamesNeeded(std::string_view sentence) {
  std::vector<std::string> names;
  while (!sentence.empty()) {
    sentence.remove_prefix(std::min(sentence.find_first_of("[{"), sentence.size()));
    if (sentence.empty()) break;
    const bool bracket = sentence.front() == '[';
    const std::size_t close = std::min(sentence.find(bracket ? ']' : '}'), sentence.size() - 1);
    if (!bracket) names.emplace_back(sentence.substr(1, close - 1));
    sentence.remove_prefix(close + 1);
  }
  return names;
}

// Takes the keys of one entry.
class Reader {
 public:
  // The first key names the entry.
  Reader(const Node& entry, std::string kind, const std::vector<std::string>& keys,
         std::vector<Problem>* problems)
      : entry_(entry), kind_(std::move(kind)), problems_(*problems), before_(problems->size()) {
    if (entry.kind != Node::Kind::kTable) {
      problems_.push_back({entry.at, fmt::format("'{}' holds {}; write each as [[{}]]", kind_,
                                                 spec::FoundText(entry), kind_)});
      return;
    }
    name_ = TakeText(keys.front(), kNeeded);
    for (const spec::Member& member : entry_.members) {
      if (std::ranges::find(keys, member.key) != keys.end()) continue;
      const auto near = Nearest(member.key, keys);
      Tell(member.at, member.key,
           near ? fmt::format("is unknown; did you mean '{}'?", *near)
                : fmt::format("is unknown; there are {}", fmt::join(keys, ", ")));
    }
  }

  enum Need : bool { kOptional, kNeeded };

  const std::string& name() const { return name_; }
  bool good() const { return problems_.size() == before_; }

  void Tell(spec::Position at, const std::string& key, const std::string& what) {
    const std::string whose = name_.empty() ? "" : fmt::format(" of {} '{}'", kind_, name_);
    problems_.push_back({at, fmt::format("key '{}'{} {}", key, whose, what)});
  }

  // Null, with a problem added, if it is missing or of another kind.
  const Node* Take(const std::string& key, Node::Kind kind, Need need) {
    if (entry_.kind != Node::Kind::kTable) return nullptr;
    const auto found = std::ranges::find(entry_.members, key, &spec::Member::key);
    if (found == entry_.members.end()) {
      if (need == kNeeded) Tell(entry_.at, key, fmt::format("is missing; every {} needs it", kind_));
      return nullptr;
    }
    const Node& node = found->value;
    if (node.kind == kind && !(node.text.empty() && node.items.empty())) return &node;
    Tell(node.at, key,
         fmt::format("is {}; give {}", node.kind == kind ? "empty" : spec::FoundText(node),
                     kind == Node::Kind::kString ? "a string" : "a list of strings"));
    return nullptr;
  }

  std::string TakeText(const std::string& key, Need need) {
    const Node* const node = Take(key, Node::Kind::kString, need);
    return node == nullptr ? "" : node->text;
  }

  // `problem_of`: checks one text; empty: valid.
  std::vector<std::string> TakeTexts(const std::string& key, Need need,
                                     std::string (*problem_of)(std::string_view)) {
    std::vector<std::string> texts;
    const Node* const list = Take(key, Node::Kind::kList, need);
    for (const Node& item : list == nullptr ? std::vector<Node>() : list->items) {
      const std::string problem =
          item.kind == Node::Kind::kString ? problem_of(item.text) : "is not a string; quote it";
      if (!problem.empty())
        Tell(item.at, key, fmt::format("holds {}, which {}", spec::FoundText(item), problem));
      texts.push_back(item.text);
    }
    return texts;
  }

  // A sentence that uses the captures of `texts`.
  std::string TakeSentence(const std::string& key, const std::vector<std::string>& texts) {
    const Node* const node = Take(key, Node::Kind::kString, kNeeded);
    if (node == nullptr) return {};
    for (const std::string& name : NamesNeeded(node->text)) {
      for (const std::string& text : texts) {
        const bool has =
            text.find("{" + name + "}") != text.npos || text.find("{" + name + "...}") != text.npos;
        if (has) continue;
        Tell(node->at, key,
             fmt::format("says {{{}}}, which text '{}' does not have; put that part into [ ]", name, text));
      }
    }
    return node->text;
  }

  template <class Value>
  Value TakeWord(const std::string& key, const std::vector<std::pair<std::string, Value>>& words,
                 Value otherwise) {
    const Node* const node = Take(key, Node::Kind::kString, kOptional);
    if (node == nullptr) return otherwise;
    std::string list;
    for (const auto& [word, value] : words) {
      if (word == node->text) return value;
      list += (list.empty() ? "" : ", ") + word;
    }
    Tell(node->at, key, fmt::format("is '{}'; give one of {}", node->text, list));
    return otherwise;
  }

 private:
  const Node& entry_;
  const std::string kind_;
  std::vector<Problem>& problems_;
  const std::size_t before_;
  std::string name_;
};

std::string NoProblem(std::string_view) { return {}; }

std::string ProblemOfVariable(std::string_view text) {
  const std::size_t equals = text.find('=');
  return equals == text.npos || equals == 0 ? "is no NAME=value; give one" : "";
}

// Reads and checks one entry. Nullopt, with at least one problem added, if it cannot be used.
std::optional<KnownFailure> ReadFailure(const Node& entry, std::vector<Problem>* problems) {
  Reader reader(entry, "failure", {"id", "texts", "what", "fix", "source", "depth", "kind", "against"},
                problems);
  KnownFailure failure;
  failure.id = reader.name();
  failure.texts = reader.TakeTexts("texts", Reader::kNeeded, ProblemOf);
  failure.what = reader.TakeSentence("what", failure.texts);
  failure.fix = reader.TakeSentence("fix", failure.texts);
  failure.source = reader.TakeText("source", Reader::kOptional);
  failure.depth = reader.TakeWord("depth", kDepths, Depth::kCause);
  failure.kind = reader.TakeWord("kind", kKinds, Kind::kUnsaid);
  failure.against = reader.TakeTexts("against", Reader::kOptional, NoProblem);
  return reader.good() ? std::optional(std::move(failure)) : std::nullopt;
}

std::optional<FallbackLevel> ReadFallback(const Node& entry, std::vector<Problem>* problems) {
  Reader reader(entry, "fallback", {"path", "variables", "said"}, problems);
  FallbackLevel level;
  level.path = reader.name();
  for (const std::string& text : reader.TakeTexts("variables", Reader::kNeeded, ProblemOfVariable))
    level.variables.emplace_back(text.substr(0, text.find('=')), text.substr(text.find('=') + 1));
  level.said = reader.TakeText("said", Reader::kNeeded);
  return reader.good() ? std::optional(std::move(level)) : std::nullopt;
}

namespace fs = std::filesystem;

std::size_t Slot(Table::Word word) { return (word * 0x9e3779b1u) >> 16; }

std::string PlacedAt(const fs::path& file, spec::Position at, const std::string& what) {
  return at.line == 0 ? fmt::format("{}: {}", file.string(), what)
                      : fmt::format("{}:{}:{}: {}", file.string(), at.line, at.column, what);
}

// Of this program's installation.
fs::path ShippedFile() { return SharedFolder() / "failures.toml"; }

// The process's table.
struct Shared {
  std::mutex mutex;
  std::vector<fs::path> own;
  std::shared_ptr<const Table> table;  // null: not read yet
} shared;

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

void UseFiles(std::vector<fs::path> own) {
  const std::lock_guard lock(shared.mutex);
  shared.own = std::move(own);
  shared.table.reset();
}

std::shared_ptr<const Table> Known() {
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
