#include "core/comm/recorder/recorder.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/thread.h"
#include "core/comm/operation.h"

namespace dtrun::comm {
namespace {

using Words = std::array<std::uint64_t, 3>;
static_assert(sizeof(Words) == sizeof(Call));

// Put together in registers: a word loaded from memory that was written in parts waits until all
// stores before it are done.
Words WordsOf(const Call& call) {
  const std::uint64_t what = call.kind | call.dtype << 8 | call.reduce << 16;
  const std::uint64_t root = static_cast<std::uint32_t>(call.root);
  return {what | root << 32, call.count, call.shape};
}

Call CallFrom(const Words& words) {
  Call call;
  call.kind = static_cast<std::uint8_t>(words[0]);
  call.dtype = static_cast<std::uint8_t>(words[0] >> 8);
  call.reduce = static_cast<std::uint8_t>(words[0] >> 16);
  call.root = static_cast<std::int32_t>(words[0] >> 32);
  call.count = words[1];
  call.shape = words[2];
  return call;
}

// Mixes one word into a digest; from MurmurHash3's finaliser.
std::uint64_t Mix(std::uint64_t digest, std::uint64_t word) {
  digest ^= word * 0x9e3779b97f4a7c15u;
  digest = (digest ^ (digest >> 33)) * 0xff51afd7ed558ccdu;
  return digest ^ (digest >> 33);
}

}  // namespace

void Begin(Journal& journal, std::uint64_t number, const Call& call) {
  Entry& entry = journal.entries[number % kEntries];
  const std::uint64_t before = journal.entries[(number - 1) % kEntries].chain.load(std::memory_order_relaxed);
  const Words words = WordsOf(call);
  entry.number.store(0, std::memory_order_release);  // no reader mixes the old with the new
  std::atomic_thread_fence(std::memory_order_release);
  std::uint64_t chain = number == 1 ? 0 : before;
  for (std::size_t i = 0; i < words.size(); ++i) {
    entry.words[i].store(words[i], std::memory_order_relaxed);
    chain = Mix(chain, words[i]);
  }
  entry.chain.store(chain, std::memory_order_relaxed);
  entry.number.store(number, std::memory_order_release);
  journal.started.store(number, std::memory_order_release);
}

void End(Journal& journal, std::uint64_t number) {
  if (number > journal.ended.load(std::memory_order_relaxed)) {
    journal.ended.store(number, std::memory_order_release);
  }
}

bool Read(const Journal& journal, std::uint64_t number, Call* call, std::uint64_t* chain) {
  const Entry& entry = journal.entries[number % kEntries];
  if (entry.number.load(std::memory_order_acquire) != number) return false;
  Words words;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = entry.words[i].load(std::memory_order_relaxed);
  *chain = entry.chain.load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (entry.number.load(std::memory_order_relaxed) != number) return false;
  *call = CallFrom(words);
  return true;
}

std::uint64_t NameDigest(std::string_view name) {
  std::uint64_t digest = 0;
  for (const char letter : name) digest = Mix(digest, static_cast<unsigned char>(letter));
  return digest | 1;
}

Result<std::unique_ptr<Recorder>> Recorder::Open(const std::string& path, int rank) {
  Result<BookMapping> mapping = BookMapping::Open(path);
  if (!mapping) return std::move(mapping).error();
  if (rank < 0 || rank >= mapping->book()->ranks) {
    return Error{DTRUN_INTERNAL, fmt::format("the flight recorder has no pages for rank {}", rank)};
  }
  return std::unique_ptr<Recorder>(new Recorder(*std::move(mapping), rank));
}

Recorder::Recorder(BookMapping mapping, int rank) : mapping_(std::move(mapping)), rank_(rank) {
  listener_ = StartThread("dtrun-recorder", [this] { Listen(); });
}

Recorder::~Recorder() {
  stop_ = true;
  // Other ranks sleep on the same word; they look, find nothing, and sleep again.
  (void)syscall(SYS_futex, &mapping_.book()->alarm, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
  listener_.join();
}

Journal* Recorder::Claim(const std::string& name, int rank, int size) {
  const std::lock_guard lock(mutex_);
  for (int index = 0; index < kJournals; ++index) {
    Journal& journal = JournalAt(mapping_.book(), rank_, index);
    if (journal.communicator.load(std::memory_order_relaxed) != 0) continue;
    journal.started = 0;
    journal.ended = 0;
    for (Entry& entry : journal.entries) entry.number = 0;
    journal.rank = rank;
    journal.size = size;
    const std::size_t length = std::min(name.size(), kJournalNameBytes - 1);
    std::memcpy(journal.name, name.data(), length);
    journal.name[length] = '\0';
    journal.communicator.store(NameDigest(name), std::memory_order_release);
    return &journal;
  }
  return nullptr;
}

void Recorder::Release(Journal* journal) {
  if (journal == nullptr) return;
  const std::lock_guard lock(mutex_);
  journal->communicator.store(0, std::memory_order_release);
}

void Recorder::Watch(const void* owner, const std::string& name, OnMismatch callback) {
  const std::lock_guard lock(mutex_);
  watched_[owner] = {NameDigest(name), std::move(callback)};
}

void Recorder::Unwatch(const void* owner) {
  const std::lock_guard lock(mutex_);
  watched_.erase(owner);
}

void Recorder::Listen() {
  BookHead& book = *mapping_.book();
  while (!stop_) {
    if (book.alarm.load(std::memory_order_acquire) == 0) {
      // A wake-up may come between the look at stop_ and the sleep; the limit makes up for it.
      const timespec limit{0, 200'000'000};
      (void)syscall(SYS_futex, &book.alarm, FUTEX_WAIT, 0, &limit, nullptr, 0);
      continue;
    }
    const Finding& finding = book.finding;
    const Error error{DTRUN_MISMATCH, finding.text, finding.first == rank_ ? finding.second : finding.first};
    const std::lock_guard lock(mutex_);
    for (const auto& [owner, watched] : watched_) {
      if (watched.communicator == finding.communicator.load()) watched.callback(error);
    }
    return;
  }
}

std::string Recorder::Whereabouts(const Journal& journal, std::uint64_t number) const {
  const std::uint64_t communicator = journal.communicator.load();
  std::string behind, others;
  for (int rank = 0; rank < mapping_.book()->ranks; ++rank) {
    for (int index = 0; index < kJournals; ++index) {
      const Journal& theirs = JournalAt(mapping_.book(), rank, index);
      if (&theirs == &journal || theirs.communicator.load(std::memory_order_acquire) != communicator)
        continue;
      const std::uint64_t started = theirs.started.load(std::memory_order_acquire);
      std::string text;
      Call call;
      std::uint64_t chain = 0;
      if (started == 0) {
        text = fmt::format("rank {} has called nothing yet", theirs.rank);
      } else if (theirs.ended.load() >= started) {
        text = fmt::format("rank {} has called nothing after #{}", theirs.rank, started);
      } else if (Read(theirs, started, &call, &chain)) {
        text = fmt::format("rank {} is in #{}, {}", theirs.rank, started, CallText(call));
      }
      std::string& list = started < number ? behind : others;
      if (!text.empty()) list += (list.empty() ? "" : "; ") + text;
    }
  }
  return behind.empty() ? others : behind;
}

}  // namespace dtrun::comm
