#include "core/contract/recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "core/base/error_id.h"
#include "core/base/thread.h"
#include "core/contract/member_mark.h"
#include "core/contract/messages.h"
#include "core/contract/ring.h"

namespace dtrun::contract {
namespace {

// Time for the alarm to reach every host.
constexpr std::chrono::milliseconds kAllHear{100};

}  // namespace

Result<std::unique_ptr<Recorder>> Recorder::Open(const std::string& path, int rank, std::uint64_t turn) {
  // In another PID namespace the path may name anything, such as a pipe.
  const UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return Error::System(fmt::format("open the flight recorder '{}'", path), errno);
  return Open(fd.get(), path, rank, turn);
}

Result<std::unique_ptr<Recorder>> Recorder::Open(int fd, const std::string& name, int rank,
                                                 std::uint64_t turn) {
  Result<RecorderMapping> mapping = RecorderMapping::Open(fd, name, rank);
  if (!mapping) return std::move(mapping).error();
  // Of the turn before, with communicators of the same names.
  for (Ring& ring : mapping->recorder_memory().RingsOf(rank)) ring.communicator = ring.identity = 0;
  MemberMarks::Use(fd, rank);
  return std::unique_ptr<Recorder>(new Recorder(*std::move(mapping), rank, turn));
}

Recorder::Recorder(RecorderMapping mapping, int rank, std::uint64_t turn)
    : mapping_(std::move(mapping)), rank_(rank), turn_(turn) {
  listener_ = StartThread("dtrun-recorder", [this] { Listen(); });
}

Recorder::~Recorder() {
  stop_ = true;
  // Other ranks sleep on the same word; they wake, find nothing, and sleep again.
  (void)syscall(SYS_futex, &mapping_.recorder_memory().head->alarm, FUTEX_WAKE, INT32_MAX, nullptr, nullptr,
                0);
  listener_.join();
}

Ring* Recorder::Claim(const std::string& name, int rank, int size) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t communicator = NameDigest(name);
  return OpenRing(mapping_.recorder_memory(), rank_, communicator, name, rank, size,
                  IdentityOf(communicator, turn_, ++claimed_[communicator]));
}

void Recorder::Release(Ring* ring) {
  if (ring == nullptr) return;
  const std::lock_guard lock(mutex_);
  ring->communicator.store(0, std::memory_order_release);
}

void Recorder::Watch(const void* owner, const std::string& name, Alarm alarm) {
  const std::lock_guard lock(mutex_);
  watched_[owner] = {NameDigest(name), std::move(alarm)};
}

void Recorder::Unwatch(const void* owner, bool knows) {
  const std::lock_guard lock(mutex_);
  const auto watched = watched_.find(owner);
  if (knows && watched != watched_.end()) known_.insert(watched->second.communicator);
  watched_.erase(owner);
}

void Recorder::Listen() {
  const RecorderHead& recorder_memory = *mapping_.recorder_memory().head;
  while (!stop_) {
    if (recorder_memory.alarm.load(std::memory_order_acquire) == 0) {
      // A wake-up may fall between the check of stop_ and the sleep; the limit makes up for it.
      const timespec limit{0, 200'000'000};
      (void)syscall(SYS_futex, &recorder_memory.alarm, FUTEX_WAIT, 0, &limit, nullptr, 0);
      continue;
    }
    const Finding& finding = recorder_memory.finding;
    const std::string text(finding.text, ::strnlen(finding.text, sizeof finding.text));
    const Error error{DTRUN_MISMATCH,
                      text,
                      finding.first == rank_ ? finding.second : finding.first,
                      ErrorId::kCallsDiffer,
                      {finding.first, finding.second}};
    Tell(&Alarm::heard, error);
    if (finding.between_hosts != 0) std::this_thread::sleep_for(kAllHear);
    Tell(&Alarm::end, error);
    return;
  }
}

void Recorder::Tell(std::function<void(const Error&)> Alarm::*what, const Error& error) {
  const std::lock_guard lock(mutex_);
  if (known_.contains(mapping_.recorder_memory().head->finding.communicator.load())) return;
  for (const auto& [owner, watched] : watched_) {
    if (watched.communicator == mapping_.recorder_memory().head->finding.communicator.load())
      (watched.alarm.*what)(error);
  }
}

std::optional<Error> Recorder::Difference(const Ring& ring, const std::string& name,
                                          std::uint64_t number) const {
  const std::optional<Remembered> mine = Read(ring, number);
  if (!mine) return std::nullopt;
  for (const Ring* const theirs : OthersOf(ring, true)) {
    const std::optional<Remembered> other = Read(*theirs, number);
    if (!other || Alike(other->call, mine->call)) continue;
    // Its rank may have turned it into another communicator's meanwhile.
    if (theirs->identity.load() != ring.identity.load() &&
        theirs->communicator.load() != ring.communicator.load())
      continue;
    std::pair first(ring.rank, CallText(mine->call, DeviceOf(ring)));
    std::pair second(theirs->rank, CallText(other->call, DeviceOf(*theirs)));
    if (second.first < first.first) std::swap(first, second);
    const std::string difference = fmt::format("rank {} calls {}, rank {} calls {}", first.first,
                                               first.second, second.first, second.second);
    return Error{DTRUN_MISMATCH,
                 fmt::format("call {} on '{}' differs: {}", number, name, difference),
                 theirs->rank,
                 ErrorId::kCallsDiffer,
                 {first.first, second.first},
                 {{"communicator", name}, {"difference", difference}}};
  }
  return std::nullopt;
}

std::optional<Error> Recorder::AnyDifference(const Ring& ring, const std::string& name) const {
  for (const Ring* const theirs : OthersOf(ring, true)) {
    const std::uint64_t last = std::min(ring.started.load(), theirs->started.load());
    if (last == 0) continue;
    const std::optional<Remembered> mine = Read(ring, last), other = Read(*theirs, last);
    if (!mine || !other || mine->chain == other->chain) continue;
    for (std::uint64_t number = last > kEntries ? last - kEntries + 1 : 1; number <= last; ++number) {
      if (std::optional<Error> differs = Difference(ring, name, number)) return differs;
    }
  }
  return MessageDifference(ring, name);
}

namespace {

// Whether `other` is a ring of the communicator of `ring`. `left`: also if its rank has left that.
bool IsOfSame(const Ring& ring, const Ring& other, bool left) {
  const std::uint64_t now = other.communicator.load(std::memory_order_acquire),
                      identity = ring.identity.load();
  return now == ring.communicator.load() ||
         (left && now == 0 && identity != 0 && other.identity.load() == identity);
}

}  // namespace

std::vector<const Ring*> Recorder::OthersOf(const Ring& ring, bool left) const {
  std::vector<const Ring*> others;
  const RecorderMemory& memory = mapping_.recorder_memory();
  for (int rank = 0; rank < memory.ranks; ++rank) {
    if (rank == rank_) continue;
    for (const Ring& other : memory.RingsOf(rank)) {
      if (&other != &ring && IsOfSame(ring, other, left) && !other.moving.load(std::memory_order_acquire))
        others.push_back(&other);
    }
  }
  return others;
}

std::map<int, const Ring*> Recorder::RingsOf(const Ring& ring) const {
  std::map<int, const Ring*> rings;
  const RecorderMemory& memory = mapping_.recorder_memory();
  for (int rank = 0; rank < memory.ranks; ++rank) {
    for (const Ring& other : memory.RingsOf(rank)) {
      if (!IsOfSame(ring, other, true)) continue;
      if (const HeadingRead read = ReadHeading(other, memory.ranks); read.heading)
        rings.emplace(read.heading->rank, &other);
    }
  }
  return rings;
}

std::optional<Error> Recorder::MessageDifference(const Ring& ring, const std::string& name) const {
  const std::map<int, const Ring*> rings = RingsOf(ring);
  for (const auto& [rank, from] : rings) {
    const auto differs = DifferingMessage(*from, name, [&](int to) -> const Ring* {
      const auto found = rings.find(to);
      return found == rings.end() ? nullptr : found->second;
    });
    // A rank may have turned its ring into another communicator's meanwhile.
    if (!differs || !IsOfSame(ring, *from, true) || !IsOfSame(ring, *rings.at(differs->to), true)) continue;
    return Error{DTRUN_MISMATCH,
                 differs->text,
                 from == &ring ? differs->to : rank,
                 ErrorId::kCallsDiffer,
                 {differs->from, differs->to},
                 {{"communicator", name}}};
  }
  return std::nullopt;
}

std::string Recorder::Unreceived(const Ring& ring, int peer) const {
  const std::map<int, const Ring*> rings = RingsOf(ring);
  const auto from = rings.find(peer);
  return from == rings.end() ? "" : UnreceivedText(*from->second, ring);
}

Recorder::Places Recorder::Whereabouts(const Ring& ring, std::uint64_t number) const {
  std::string behind, others;
  std::vector<int> ranks;
  for (const Ring* const theirs : OthersOf(ring)) {
    const std::uint64_t started = theirs->started.load(std::memory_order_acquire);
    std::string text;
    if (started == 0) {
      text = fmt::format("rank {} has called no collective yet", theirs->rank);
    } else if (theirs->ended.load() >= started) {
      text = fmt::format("rank {} has called no collective after #{}", theirs->rank, started);
    } else if (const auto seen = Read(*theirs, started)) {
      text = fmt::format("rank {} is in #{}, {}", theirs->rank, started,
                         CallText(seen->call, DeviceOf(*theirs)));
    }
    std::string& list = started < number ? behind : others;
    if (started < number) ranks.push_back(theirs->rank);
    if (!text.empty()) list += (list.empty() ? "" : "; ") + text;
  }
  return {behind.empty() ? others : behind, std::move(ranks)};
}

}  // namespace dtrun::contract
