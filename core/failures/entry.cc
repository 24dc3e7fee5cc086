#include "core/failures/entry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/base/suggest.h"
#include "core/failures/pattern.h"

namespace dtrun::failures {
namespace {

using config::Node;

const std::vector<std::string> kKeys = {"id", "texts", "what", "fix", "source", "depth", "kind", "against"};
const std::vector<std::pair<std::string, Depth>> kDepths = {{"cause", Depth::kCause},
                                                            {"symptom", Depth::kSymptom}};
const std::vector<std::pair<std::string, Kind>> kKinds = {{"network", Kind::kNetwork},
                                                          {"rendezvous", Kind::kRendezvous},
                                                          {"memory", Kind::kMemory},
                                                          {"connection", Kind::kConnection}};

// The names outside of brackets, which every text has to capture.
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

class Reader {
 public:
  Reader(const Node& entry, std::vector<Problem>* problems) : entry_(entry), problems_(*problems) {
    Take("id", Node::Kind::kString, true, [&](const Node& node) { failure_.id = node.text; });
  }

  std::optional<KnownFailure> Read() {
    const std::size_t before = problems_.size();
    for (const config::Member& member : entry_.members) {
      if (std::ranges::find(kKeys, member.key) != kKeys.end()) continue;
      const auto near = Nearest(member.key, kKeys);
      Tell(member.at, member.key,
           near ? fmt::format("is unknown; did you mean '{}'?", *near)
                : fmt::format("is unknown; there are {}", fmt::join(kKeys, ", ")));
    }
    TakeTexts("texts", true, &failure_.texts);
    TakeTexts("against", false, &failure_.against);
    TakeSentence("what", &failure_.what);
    TakeSentence("fix", &failure_.fix);
    Take("source", Node::Kind::kString, false, [&](const Node& node) { failure_.source = node.text; });
    TakeWord("depth", kDepths, &failure_.depth);
    TakeWord("kind", kKinds, &failure_.kind);
    if (failure_.id.empty() || problems_.size() > before) return std::nullopt;
    return std::move(failure_);
  }

 private:
  void Tell(config::Position at, const std::string& key, const std::string& what) {
    const std::string whose = failure_.id.empty() ? "" : fmt::format(" of failure '{}'", failure_.id);
    problems_.push_back({at, fmt::format("key '{}'{} {}", key, whose, what)});
  }

  template <class Use>
  void Take(const std::string& key, Node::Kind kind, bool needed, const Use& use) {
    const auto found = std::ranges::find(entry_.members, key, &config::Member::key);
    if (found == entry_.members.end()) {
      if (needed) Tell(entry_.at, key, "is missing; every failure needs it");
      return;
    }
    const Node& node = found->value;
    const bool empty = node.text.empty() && node.items.empty();
    if (node.kind != kind || empty) {
      const char* const wanted = kind == Node::Kind::kString ? "a string" : "a list of strings";
      Tell(node.at, key, fmt::format("is {}; give {}", empty ? "empty" : config::FoundText(node), wanted));
      return;
    }
    use(node);
  }

  void TakeTexts(const std::string& key, bool needed, std::vector<std::string>* to) {
    Take(key, Node::Kind::kList, needed, [&](const Node& list) {
      for (const Node& item : list.items) {
        const std::string problem =
            item.kind != Node::Kind::kString
                ? fmt::format("holds {}; give strings only", config::FoundText(item))
            : !needed || ProblemOf(item.text).empty()
                ? ""
                : fmt::format("holds '{}', which {}", item.text, ProblemOf(item.text));
        if (!problem.empty()) Tell(item.at, key, problem);
        to->push_back(item.text);
      }
    });
  }

  void TakeSentence(const std::string& key, std::string* to) {
    Take(key, Node::Kind::kString, true, [&](const Node& node) {
      *to = node.text;
      for (const std::string& name : NamesNeeded(node.text)) {
        for (const std::string& text : failure_.texts) {
          const bool has =
              text.find("{" + name + "}") != text.npos || text.find("{" + name + "...}") != text.npos;
          if (has) continue;
          Tell(node.at, key,
               fmt::format("says {{{}}}, which text '{}' does not have; put that part into [ ]", name, text));
        }
      }
    });
  }

  template <class Value>
  void TakeWord(const std::string& key, const std::vector<std::pair<std::string, Value>>& words, Value* to) {
    Take(key, Node::Kind::kString, false, [&](const Node& node) {
      const auto found = std::ranges::find(words, node.text, [](const auto& one) { return one.first; });
      if (found != words.end()) {
        *to = found->second;
        return;
      }
      std::string list;
      for (const auto& [word, value] : words) list += (list.empty() ? "" : ", ") + word;
      Tell(node.at, key, fmt::format("is '{}'; give one of {}", node.text, list));
    });
  }

  const Node& entry_;
  std::vector<Problem>& problems_;
  KnownFailure failure_;
};

}  // namespace

std::optional<KnownFailure> ReadEntry(const config::Node& entry, std::vector<Problem>* problems) {
  if (entry.kind != Node::Kind::kTable) {
    problems->push_back(
        {entry.at, fmt::format("'failure' holds {}; write each as [[failure]]", config::FoundText(entry))});
    return std::nullopt;
  }
  return Reader(entry, problems).Read();
}

}  // namespace dtrun::failures
