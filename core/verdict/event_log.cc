#include "core/verdict/event_log.h"

#include <algorithm>
#include <utility>

#include "core/base/text.h"
#include "core/wire/json.h"

namespace dtrun::verdict {
namespace {

// What each line has beside its fact.
struct Stamp {
  std::chrono::nanoseconds at{};
  std::string from;
  void Fields(auto& io) { io("at", at, kAnyTime), io("from", from, wire::kMostName, wire::kMayMiss); }
};

// Records that a job may repeat without end.
bool Repeats(const fact::Any& fact) {
  const auto* const looked = std::get_if<fact::Places>(&fact);
  return (looked != nullptr && !looked->last) || std::holds_alternative<fact::Joined>(fact) ||
         std::holds_alternative<fact::Left>(fact) || std::holds_alternative<fact::Reported>(fact) ||
         std::holds_alternative<fact::Overrode>(fact) || std::holds_alternative<fact::MovedOn>(fact) ||
         std::holds_alternative<fact::PrintedError>(fact) || std::holds_alternative<fact::HostClock>(fact);
}

// Observers report some facts at every look, unchanged.
bool IsKnown(const Facts& facts, const fact::Any& fact) {
  if (const auto* const noted = std::get_if<fact::Noted>(&fact))
    return noted->what == fact::Noted::What::kStacks && facts.stacks;
  const auto* const one = std::get_if<fact::Overrode>(&fact);
  const RankFacts* const rank = one == nullptr ? nullptr : facts.Find(one->rank);
  return rank != nullptr && std::ranges::any_of(rank->overrides, [one](const Override& known) {
           return known.name == one->name && known.now == one->now && known.given == one->given;
         });
}

}  // namespace

std::string ToLine(const Entry& entry) {
  Json line = {{"at", entry.at.count()}, {"from", entry.from}};
  line.update(wire::ToJson(entry.fact));
  return JsonLine(line);
}

void EventLog::Add(fact::Any fact, std::string from) {
  if (IsKnown(facts(), fact)) return;
  const Entry entry{Clock::now() - begun_, std::move(from), std::move(fact)};
  if (const auto* const opened = std::get_if<fact::Opened>(&entry.fact)) opened_ = *opened;
  if (std::holds_alternative<fact::Began>(entry.fact) && size_ > most_ / 2 && opened_) {
    size_ = 0;
    gap_ = broken_ = false;
    Put({entry.at, "root", *opened_}, true);
    story_.Apply(entry);  // it adds the generation before to the earlier ones
    Put({entry.at, "root", story_.earlier()});
  } else {
    story_.Apply(entry);
  }
  if (size_ <= most_ || !Repeats(entry.fact)) return Put(entry);
  if (!std::exchange(gap_, true)) Put({entry.at, "root", fact::Noted{fact::Noted::What::kGap}});
}

void EventLog::Put(const Entry& entry, bool anew) {
  if (!write_) return;
  std::string line = ToLine(entry) + "\n";
  if (broken_) line = "\n" + ToLine({entry.at, "root", fact::Noted{fact::Noted::What::kGap}}) + "\n" + line;
  size_ += line.size();
  broken_ = !write_(line, anew);
}

Result<Entry> FromLine(std::string_view line) {
  const Json json = ParseJson(line);
  if (!json.is_object()) return Error{DTRUN_INVALID_ARGUMENT, "it is no JSON object"};
  auto stamp = wire::FromJson<Stamp>(json, "record");
  auto fact = wire::FromJson<fact::Any>(json, "record");
  if (!stamp || !fact) return stamp ? std::move(fact).error() : std::move(stamp).error();
  return Entry{stamp->at, std::move(stamp->from), *std::move(fact)};
}

Result<Story> Replay(std::string_view text) {
  Story story;
  std::chrono::nanoseconds last{};
  bool opened = false;
  for (const std::string_view line : LinesOf(text)) {
    const Result<Entry> entry = FromLine(line);
    if (!entry) {
      story.Apply({last, "", fact::Noted{fact::Noted::What::kGap}});
      continue;
    }
    last = entry->at;
    if (const auto* const first = std::get_if<fact::Opened>(&entry->fact)) {
      if (first->version != fact::Opened::kVersion)
        return Error{DTRUN_INVALID_ARGUMENT,
                     "it has layout " + std::to_string(first->version) + ", which this dtrun does not read"};
      opened = true;
    }
    if (opened) story.Apply(*entry);
  }
  if (!opened) return Error{DTRUN_INVALID_ARGUMENT, "it holds no record of a job"};
  story.End(last);
  return story;
}

}  // namespace dtrun::verdict
