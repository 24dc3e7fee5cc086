#include "core/comm/recorder/auditor.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "core/comm/recorder/journal.h"

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

// Calls that do not all agree: those after `agreed`, to `last`.
struct Span {
  std::uint64_t agreed = 0;
  std::uint64_t last = 0;
};

// The last call that both have begun and both remember tells whether all before it agree; else the last
// checkpoint does. Nothing when they agree, or when there is no such call yet.
std::optional<Span> DifferingSpan(const Journal& first, const Journal& second) {
  std::uint64_t last =
      std::min(first.started.load(std::memory_order_acquire), second.started.load(std::memory_order_acquire));
  bool differ = false;
  if (const auto a = At(first, last), b = At(second, last); last > 0 && a && b) {
    if (a->chain == b->chain) return std::nullopt;
    differ = true;
  }
  for (std::uint64_t number = std::min(LastCheckpoint(first), LastCheckpoint(second)); number > 0;
       number -= kCheckpointEvery) {
    const auto a = ReadCheckpoint(first, number);
    const auto b = ReadCheckpoint(second, number);
    if (!a || !b) break;
    if (*a == *b) return differ ? std::optional(Span{number, last}) : std::nullopt;
    differ = true;
    last = number;
  }
  return differ ? std::optional(Span{0, last}) : std::nullopt;
}

// The first call up to `last` that both remember and that is not the same.
std::optional<std::uint64_t> FirstDifferingCall(const Journal& first, const Journal& second,
                                                std::uint64_t last) {
  std::optional<std::uint64_t> found;
  for (const Entry& entry : first.entries) {
    const std::uint64_t number = entry.number.load(std::memory_order_acquire);
    if (number == 0 || number > last || (found && number > *found)) continue;
    const auto a = At(first, number);
    const auto b = At(second, number);
    if (a && b && !(a->call == b->call)) found = number;
  }
  return found;
}

}  // namespace

void Ring(BookHead* book, const Difference& difference) {
  Finding& finding = book->finding;
  const std::size_t length = std::min(difference.text.size(), sizeof finding.text - 1);
  std::memcpy(finding.text, difference.text.data(), length);
  finding.text[length] = '\0';
  finding.first = difference.first;
  finding.second = difference.second;
  finding.between_hosts = difference.between_hosts ? 1 : 0;
  finding.communicator.store(difference.communicator);
  book->alarm.store(1, std::memory_order_release);
  (void)syscall(SYS_futex, &book->alarm, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

std::optional<Difference> Auditor::Audit() const {
  std::map<std::uint64_t, Member> firsts;  // of each communicator
  for (int rank = 0; rank < book_->ranks; ++rank) {
    for (int index = 0; index < kJournals; ++index) {
      const Journal& journal = JournalAt(book_, rank, index);
      const std::uint64_t communicator = journal.communicator.load(std::memory_order_acquire);
      if (communicator == 0) continue;
      const auto [first, is_new] = firsts.emplace(communicator, Member{rank, &journal});
      if (is_new) continue;
      if (auto difference = Compare(first->second, {rank, &journal})) return difference;
    }
  }
  return std::nullopt;
}

std::optional<Difference> Auditor::Compare(const Member& first, const Member& second) {
  const std::optional<Span> span = DifferingSpan(*first.journal, *second.journal);
  if (!span) return std::nullopt;
  Difference difference{first.journal->communicator, first.world_rank, second.world_rank, {}};
  if (const auto number = FirstDifferingCall(*first.journal, *second.journal, span->last)) {
    const auto x = At(*first.journal, *number);
    const auto y = At(*second.journal, *number);
    if (x && y) {
      const auto x_before = At(*first.journal, *number - 1);
      const auto y_before = At(*second.journal, *number - 1);
      difference.exact = *number == 1 || (x_before && y_before && x_before->chain == y_before->chain);
      difference.text = fmt::format("call {} on '{}' differs: rank {} calls {}, rank {} calls {}", *number,
                                    first.journal->name, first.journal->rank, CallText(x->call),
                                    second.journal->rank, CallText(y->call));
      return difference;
    }
  }
  difference.text = fmt::format(
      "the calls {} to {} on '{}' differ between rank {} and rank {}; the difference is older than "
      "the {} calls that are remembered",
      span->agreed + 1, span->last, first.journal->name, first.journal->rank, second.journal->rank, kEntries);
  return difference;
}

std::string Auditor::History(int rank) const {
  std::string text;
  for (int index = 0; index < kJournals; ++index) {
    const Journal& journal = JournalAt(book_, rank, index);
    const std::uint64_t started = journal.started.load(std::memory_order_acquire);
    if (started == 0 || journal.name[0] == '\0') continue;
    const std::uint64_t ended = journal.ended.load();
    text += fmt::format(
        "rank {} of the world, rank {} of '{}': began {} calls, {}\n", rank, journal.rank, journal.name,
        started, ended >= started ? "all are over" : fmt::format("the last known to be over is #{}", ended));
    for (std::uint64_t number = started > kHistory ? started - kHistory + 1 : 1; number <= started;
         ++number) {
      if (const auto seen = At(journal, number)) {
        text += fmt::format("  #{}{} {}\n", number, number > ended ? " *" : "", CallText(seen->call));
      }
    }
  }
  return text;
}

}  // namespace dtrun::comm
