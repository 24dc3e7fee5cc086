#include "core/comm/recorder/excerpt.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/comm/recorder/journal.h"

namespace dtrun::comm {
namespace {

constexpr int kRestLooks = 5;             // without a change, and ranks are at rest
constexpr std::uint64_t kLastCalls = 32;  // that are told of ranks at rest

void AddCalls(const Journal& journal, std::uint64_t last, std::uint64_t count, Excerpt& to) {
  for (std::uint64_t left = std::min(last, count); left > 0; --left) {
    const std::uint64_t number = last - left + 1;
    Excerpt::Seen seen{number, 0, {}};
    if (Read(journal, number, &seen.call, &seen.chain)) to.calls.push_back(seen);
  }
}

void AddCheckpoints(const Journal& journal, std::uint64_t after, std::uint64_t last, Excerpt& to) {
  constexpr std::uint64_t kOldest = kCheckpointEvery * (kCheckpoints - 1);
  std::uint64_t number = std::max(after, last > kOldest ? last - kOldest - kCheckpointEvery : 0);
  while (number < last) {  // both are multiples
    number += kCheckpointEvery;
    if (const auto chain = ReadCheckpoint(journal, number)) to.checkpoints.emplace_back(number, *chain);
  }
}

}  // namespace

Reporter::Reporter(const Book& book, std::vector<int> ranks)
    : book_(book), ranks_(std::move(ranks)), told_(ranks_.size() * kJournals) {}

std::vector<Excerpt> Reporter::Report() {
  std::vector<Excerpt> out;
  std::map<std::uint64_t, int> here;  // ranks of each communicator
  for (const int rank : ranks_) {
    for (int index = 0; index < kJournals; ++index) {
      ++here[book_.JournalOf(rank, index).communicator.load(std::memory_order_acquire)];
    }
  }
  std::set<std::uint64_t> spoken_for;
  for (std::size_t i = 0; i < told_.size(); ++i) {
    Told& told = told_[i];
    const Journal& journal =
        book_.JournalOf(ranks_[i / kJournals], static_cast<int>(i % static_cast<std::size_t>(kJournals)));
    const auto [heading, damage] = ReadHeading(journal, book_.ranks);
    if (damage != nullptr) continue;  // the auditor says it
    const std::uint64_t communicator = heading ? heading->communicator : 0;
    if (communicator != told.communicator) {
      if (told.any) TellFreed(told, out);
      told = {};
      told.communicator = communicator;
    }
    if (communicator == 0 || heading->size <= here[communicator]) continue;
    told.member = {ranks_[i / kJournals], heading->rank};
    if (spoken_for.insert(communicator).second) TellProgress(journal, *heading, told, out);
    TellRest(journal, *heading, told, out);
  }
  asked_ = 0;
  std::erase_if(out, [this](const Excerpt& excerpt) { return !MakesSense(excerpt, book_.ranks); });
  return out;
}

void Reporter::TellFreed(const Told& told, std::vector<Excerpt>& out) {
  Excerpt excerpt;
  excerpt.communicator = told.communicator;
  excerpt.members = {told.member};
  excerpt.freed = true;
  out.push_back(std::move(excerpt));
}

Excerpt& Reporter::Add(const Heading& heading, Told& told, std::vector<Excerpt>& out) {
  told.any = true;
  Excerpt& excerpt = out.emplace_back();
  excerpt.communicator = told.communicator;
  excerpt.name = heading.name;
  excerpt.size = heading.size;
  excerpt.members = {told.member};
  if (told.resting) excerpt.rest = told.last;
  return excerpt;
}

// For all ranks of the host, which its agent compares.
void Reporter::TellProgress(const Journal& journal, const Heading& heading, Told& told,
                            std::vector<Excerpt>& out) {
  const std::uint64_t checkpoint = LastCheckpoint(journal);
  if (checkpoint > told.checkpoint) {
    AddCheckpoints(journal, told.checkpoint, checkpoint, Add(heading, told, out));
    told.checkpoint = checkpoint;
  }
  if (asked_ == told.communicator) {
    AddCalls(journal, heading.started, kEntries, Add(heading, told, out));
  }
}

void Reporter::TellRest(const Journal& journal, const Heading& heading, Told& told,
                        std::vector<Excerpt>& out) {
  const Rest now{heading.started, heading.ended};
  if (now != told.last) {
    told.last = now;
    told.looks = 0;
    if (std::exchange(told.resting, false)) Add(heading, told, out);  // it calls on
    return;
  }
  if (told.resting || ++told.looks < kRestLooks) return;
  Excerpt::Seen last;
  if (now.started > 0 && !Read(journal, now.started, &last.call, &last.chain)) return;  // it goes on just now
  told.resting = true;
  for (Excerpt& other : out) {
    const bool alike = other.communicator == told.communicator && other.rest == now &&
                       (now.started == 0 || (!other.calls.empty() && other.calls.back().chain == last.chain));
    if (!alike) continue;
    told.any = true;
    return other.members.push_back(told.member);
  }
  AddCalls(journal, now.started, kLastCalls, Add(heading, told, out));
}

namespace {

Journal* JournalFor(const Book& book, const Excerpt& excerpt, const Excerpt::Member& member) {
  for (int index = 0; index < kJournals; ++index) {
    Journal& journal = book.JournalOf(member.world_rank, index);
    if (journal.communicator.load(std::memory_order_relaxed) == excerpt.communicator) return &journal;
  }
  if (excerpt.freed) return nullptr;
  return OpenJournal(book, member.world_rank, excerpt.communicator, excerpt.name, member.rank, excerpt.size);
}

}  // namespace

bool MakesSense(const Excerpt& excerpt, int world_size) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;  // calls, which nobody makes
  const auto is_number = [](std::uint64_t number) { return number > 0 && number < kMost; };
  const int size = excerpt.freed ? world_size : excerpt.size;  // what is freed has no size any more
  const auto fits = [&](const Excerpt::Member& member) {
    return member.world_rank >= 0 && member.world_rank < world_size && member.rank >= 0 && member.rank < size;
  };
  return excerpt.communicator != 0 && size > 0 && size <= world_size &&
         excerpt.name.size() < kJournalNameBytes && std::ranges::all_of(excerpt.members, fits) &&
         (!excerpt.rest || (excerpt.rest->started < kMost && excerpt.rest->ended < kMost)) &&
         excerpt.calls.size() <= kEntries && excerpt.checkpoints.size() <= kCheckpoints &&
         std::ranges::all_of(excerpt.calls, is_number, &Excerpt::Seen::number) &&
         std::ranges::all_of(excerpt.checkpoints, [&](const auto& checkpoint) {
           return is_number(checkpoint.first) && checkpoint.first % kCheckpointEvery == 0;
         });
}

void Enter(const Book& book, const std::vector<int>& here, const Excerpt& excerpt) {
  if (!MakesSense(excerpt, book.ranks)) return;
  for (const Excerpt::Member& member : excerpt.members) {
    if (std::ranges::find(here, member.world_rank) != here.end()) continue;
    Journal* const journal = JournalFor(book, excerpt, member);
    if (journal == nullptr) continue;
    if (excerpt.freed) {
      journal->communicator.store(0, std::memory_order_release);
      continue;
    }
    for (const auto& [number, chain] : excerpt.checkpoints) WriteCheckpoint(*journal, number, chain);
    for (const Excerpt::Seen& seen : excerpt.calls) Write(*journal, seen.number, seen.call, seen.chain);
    if (excerpt.rest) {
      journal->ended.store(excerpt.rest->ended, std::memory_order_release);
      journal->started.store(excerpt.rest->started, std::memory_order_release);
    }
    journal->moving.store(!excerpt.rest, std::memory_order_release);
  }
}

}  // namespace dtrun::comm
