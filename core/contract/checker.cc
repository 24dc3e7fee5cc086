#include "core/contract/checker.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "core/base/text.h"
#include "core/contract/messages.h"
#include "core/contract/ring.h"

namespace dtrun::contract {
namespace {

constexpr int kChecksUntilDamaged = 3;  // that find a rank's pages damaged
constexpr std::uint64_t kHistory = 16;  // calls of each communicator that History shows

// Calls that do not all agree: those after `agreed`, up to `last`.
struct CallSpan {
  std::uint64_t agreed = 0;
  std::uint64_t last = 0;
};

// Compares the last call that both have begun and both remember, which covers all calls before it; without
// one, the last checkpoint. Empty if they agree, or if there is no such call yet.
std::optional<CallSpan> DifferingSpan(const Ring& first, const Ring& second, std::uint64_t last) {
  bool differ = false;
  if (const auto a = Read(first, last), b = Read(second, last); last > 0 && a && b) {
    if (a->chain == b->chain) return std::nullopt;
    differ = true;
  }
  for (std::uint64_t number = std::min(LastCheckpoint(first), LastCheckpoint(second)); number > 0;
       number -= kCheckpointEvery) {
    const auto a = ReadCheckpoint(first, number);
    const auto b = ReadCheckpoint(second, number);
    if (!a || !b) break;
    if (*a == *b) return differ ? std::optional(CallSpan{number, last}) : std::nullopt;
    differ = true;
    last = number;
  }
  return differ ? std::optional(CallSpan{0, last}) : std::nullopt;
}

// The first call up to `last` that both remember and that differs.
std::optional<std::uint64_t> FirstDifferingCall(const Ring& first, const Ring& second, std::uint64_t last) {
  std::optional<std::uint64_t> found;
  for (const Entry& entry : first.entries) {
    const std::uint64_t number = entry.number.load(std::memory_order_acquire);
    if (number == 0 || number > last || (found && number > *found)) continue;
    const auto a = Read(first, number);
    const auto b = Read(second, number);
    if (a && b && !Alike(a->call, b->call)) found = number;
  }
  return found;
}

}  // namespace

void RaiseAlarm(const RecorderMemory& recorder_memory, const Difference& difference) {
  Finding& finding = recorder_memory.head->finding;
  const std::string text = Printable(difference.text);  // it may come from another host
  const std::size_t length = std::min(text.size(), sizeof finding.text - 1);
  std::memcpy(finding.text, text.data(), length);
  finding.text[length] = '\0';
  finding.first = difference.first;
  finding.second = difference.second;
  finding.between_hosts = difference.between_hosts ? 1 : 0;
  finding.communicator.store(difference.communicator);
  recorder_memory.head->alarm.store(1, std::memory_order_release);
  (void)syscall(SYS_futex, &recorder_memory.head->alarm, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

std::optional<Difference> Checker::Check() {
  for (Damaged& damaged : damaged_) damaged.why = nullptr;
  std::optional<Difference> difference = CompareAll();
  for (std::size_t rank = 0; rank < damaged_.size(); ++rank) {
    Damaged& damaged = damaged_[rank];
    damaged.checks = damaged.why == nullptr ? 0 : damaged.checks + 1;
    if (damaged.left_out || damaged.checks < kChecksUntilDamaged) continue;
    damaged.left_out = true;
    news_.push_back(
        {static_cast<int>(rank),
         fmt::format("the pages of rank {} in the flight recorder were overwritten: {}", rank, damaged.why)});
  }
  return difference;
}

std::vector<Damage> Checker::TakeDamage() { return std::exchange(news_, {}); }

std::optional<Difference> Checker::CompareAll() {
  std::optional<Difference> found;
  std::map<std::uint64_t, Member> firsts;  // of each communicator
  std::map<std::uint64_t, std::vector<Member>> with_messages;
  for (int rank = 0; rank < recorder_memory_.ranks; ++rank) {
    if (damaged_[static_cast<std::size_t>(rank)].left_out) continue;
    for (Member& member : MembersOf(rank)) {
      const auto [first, is_new] = firsts.try_emplace(member.heading.communicator, member);
      if (!is_new && !found) {
        found = Compare(first->second, member);
        if (!first->second.current() || !member.current()) found.reset();
      }
      if (HasMessages(*member.ring)) with_messages[member.heading.communicator].push_back(member);
    }
  }
  for (auto at = with_messages.begin(); !found && at != with_messages.end(); ++at)
    found = CompareMessages(at->second);
  return found;
}

std::optional<Difference> Checker::CompareMessages(const std::vector<Member>& members) {
  std::map<int, const Member*> by_rank;  // in the communicator
  for (const Member& member : members) by_rank.emplace(member.heading.rank, &member);
  for (const Member& from : members) {
    const auto differs = DifferingMessage(*from.ring, from.heading.name, [&](int rank) {
      const auto to = by_rank.find(rank);
      return to == by_rank.end() || to->second->ring == from.ring ? nullptr : to->second->ring;
    });
    if (!differs) continue;
    const Member& to = *by_rank.at(differs->to);
    if (!from.current() || !to.current()) continue;
    return Difference{from.heading.communicator, from.world_rank, to.world_rank, differs->text, true};
  }
  return std::nullopt;
}

std::vector<Checker::Member> Checker::MembersOf(int rank) {
  std::vector<Member> members;
  for (const Ring& ring : recorder_memory_.RingsOf(rank)) {
    HeadingRead read = ReadHeading(ring, recorder_memory_.ranks);
    const bool twice = read.heading && std::ranges::any_of(members, [&](const Member& other) {
                         return other.heading.communicator == read.heading->communicator;
                       });
    if (twice && read.heading->communicator != 0) read.damage = "two rings record one communicator";
    if (read.damage != nullptr) {
      damaged_[static_cast<std::size_t>(rank)].why = read.damage;
      return {};
    }
    if (read.heading && read.heading->communicator != 0) {
      members.push_back({rank, &ring, *std::move(read.heading)});
    }
  }
  return members;
}

bool Checker::EitherDamaged(const Member& first, const Member& second) {
  bool any = false;
  for (const Member* member : {&first, &second}) {
    const char* const why = DamageIn(*member->ring, member->heading);
    if (why == nullptr) continue;
    damaged_[static_cast<std::size_t>(member->world_rank)].why = why;
    any = true;
  }
  return any;
}

std::optional<Difference> Checker::Compare(const Member& first, const Member& second) {
  const std::uint64_t last = std::min(first.heading.started, second.heading.started);
  const std::optional<CallSpan> span = DifferingSpan(*first.ring, *second.ring, last);
  if (!span || EitherDamaged(first, second)) return std::nullopt;
  Difference difference{first.heading.communicator, first.world_rank, second.world_rank, {}};
  if (const auto number = FirstDifferingCall(*first.ring, *second.ring, span->last)) {
    const auto x = Read(*first.ring, *number);
    const auto y = Read(*second.ring, *number);
    if (x && y) {
      const auto x_before = Read(*first.ring, *number - 1);
      const auto y_before = Read(*second.ring, *number - 1);
      difference.exact = *number == 1 || (x_before && y_before && x_before->chain == y_before->chain);
      difference.text =
          fmt::format("call {} on '{}' differs: rank {} calls {}, rank {} calls {}", *number,
                      first.heading.name, first.heading.rank, CallText(x->call, DeviceOf(*first.ring)),
                      second.heading.rank, CallText(y->call, DeviceOf(*second.ring)));
      return difference;
    }
  }
  difference.text = fmt::format(
      "the calls {} to {} on '{}' differ between rank {} and rank {}; the difference is older than "
      "the {} calls that are remembered",
      span->agreed + 1, span->last, first.heading.name, first.heading.rank, second.heading.rank, kEntries);
  return difference;
}

std::string Checker::History(int rank) const {
  std::string text;
  for (const Ring& ring : recorder_memory_.RingsOf(rank)) {
    const auto [heading, damage] = ReadHeading(ring, recorder_memory_.ranks);
    if (damage != nullptr) {
      return fmt::format("rank {} of the world: its pages in the flight recorder were overwritten: {}\n",
                         rank, damage);
    }
    if (!heading || heading->started == 0) continue;
    const std::uint64_t started = heading->started, ended = heading->ended;
    text += fmt::format(
        "rank {} of the world, rank {} of '{}': began {} calls, {}\n", rank, heading->rank, heading->name,
        started, ended >= started ? "all are over" : fmt::format("the last known to be over is #{}", ended));
    for (std::uint64_t left = std::min(started, kHistory); left > 0; --left) {
      const std::uint64_t number = started - left + 1;
      if (const auto seen = Read(ring, number)) {
        text += fmt::format("  #{}{} {}\n", number, number > ended ? " *" : "",
                            CallText(seen->call, DeviceOf(ring)));
      }
    }
  }
  return text;
}

}  // namespace dtrun::contract
