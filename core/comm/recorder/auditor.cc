#include "core/comm/recorder/auditor.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/comm/recorder/recorder.h"

namespace dtrun::comm {
namespace {

constexpr std::uint64_t kHistory = 16;  // calls of each communicator that History shows

struct Seen {
  Call call;
  std::uint64_t chain = 0;
};

std::optional<Seen> At(const Journal& journal, std::uint64_t number) {
  Seen seen;
  if (!Read(journal, number, &seen.call, &seen.chain)) return std::nullopt;
  return seen;
}

}  // namespace

std::optional<std::string> Auditor::Audit() {
  if (rung_) return std::nullopt;
  std::map<std::uint64_t, std::vector<Member>> communicators;
  for (int rank = 0; rank < book_->ranks; ++rank) {
    for (int index = 0; index < kJournals; ++index) {
      const Journal& journal = JournalAt(book_, rank, index);
      const std::uint64_t communicator = journal.communicator.load(std::memory_order_acquire);
      if (communicator != 0) communicators[communicator].push_back({rank, &journal});
    }
  }
  for (const auto& [communicator, members] : communicators) {
    for (std::size_t i = 1; i < members.size(); ++i) {
      const auto text = Compare(members[0], members[i]);
      if (!text) continue;
      Ring(communicator, members[0].world_rank, members[i].world_rank, *text);
      return text;
    }
  }
  return std::nullopt;
}

// The last call that both have begun and both remember tells whether all before it agree.
std::optional<std::string> Auditor::Compare(const Member& first, const Member& second) {
  const std::uint64_t last = std::min(first.journal->started.load(std::memory_order_acquire),
                                      second.journal->started.load(std::memory_order_acquire));
  if (last == 0) return std::nullopt;
  const auto a = At(*first.journal, last);
  const auto b = At(*second.journal, last);
  if (!a || !b || a->chain == b->chain) return std::nullopt;
  // Somewhere up to here; the first that both remember, if it is not older.
  const std::uint64_t oldest = last > kEntries ? last - kEntries + 1 : 1;
  for (std::uint64_t number = oldest; number <= last; ++number) {
    const auto x = At(*first.journal, number);
    const auto y = At(*second.journal, number);
    if (!x || !y || x->call == y->call) continue;
    return fmt::format("call {} on '{}' differs: rank {} calls {}, rank {} calls {}", number,
                       first.journal->name, first.journal->rank, CallText(x->call), second.journal->rank,
                       CallText(y->call));
  }
  return fmt::format(
      "the calls on '{}' up to number {} differ between rank {} and rank {}; the difference is "
      "older than the {} calls that are remembered",
      first.journal->name, last, first.journal->rank, second.journal->rank, kEntries);
}

void Auditor::Ring(std::uint64_t communicator, int first, int second, const std::string& text) {
  rung_ = true;
  Finding& finding = book_->finding;
  const std::size_t length = std::min(text.size(), sizeof finding.text - 1);
  std::memcpy(finding.text, text.data(), length);
  finding.text[length] = '\0';
  finding.first = first;
  finding.second = second;
  finding.communicator.store(communicator);
  book_->alarm.store(1, std::memory_order_release);
  (void)syscall(SYS_futex, &book_->alarm, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

std::string Auditor::History() const {
  std::string text;
  for (int rank = 0; rank < book_->ranks; ++rank) {
    for (int index = 0; index < kJournals; ++index) {
      const Journal& journal = JournalAt(book_, rank, index);
      const std::uint64_t started = journal.started.load(std::memory_order_acquire);
      if (started == 0 || journal.name[0] == '\0') continue;
      const std::uint64_t ended = journal.ended.load();
      text += fmt::format(
          "rank {} of the world, rank {} of '{}': began {} calls, {}\n", rank, journal.rank, journal.name,
          started,
          ended >= started ? "all are over" : fmt::format("the last known to be over is #{}", ended));
      for (std::uint64_t number = started > kHistory ? started - kHistory + 1 : 1; number <= started;
           ++number) {
        if (const auto seen = At(journal, number)) {
          text += fmt::format("  #{}{} {}\n", number, number > ended ? " *" : "", CallText(seen->call));
        }
      }
    }
  }
  return text;
}

}  // namespace dtrun::comm
