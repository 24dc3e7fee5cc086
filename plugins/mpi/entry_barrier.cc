#include "entry_barrier.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <new>
#include <utility>

#include "dtrun/plugin.hpp"

namespace dtrun::mpi_plugin {
namespace {

// PageHeader::entries: 16 bits of the call's number, 16 of the number of ranks that have reached it, and
// the digest of what they came for.
struct Entries {
  std::uint16_t call;
  std::uint16_t come;
  std::uint32_t digest;

  static Entries Unpack(std::uint64_t word) {
    return {static_cast<std::uint16_t>(word >> 48), static_cast<std::uint16_t>(word >> 32),
            static_cast<std::uint32_t>(word)};
  }
  std::uint64_t Pack() const {
    return static_cast<std::uint64_t>(call) << 48 | static_cast<std::uint64_t>(come) << 32 | digest;
  }
};

std::uint16_t Short(std::uint64_t call) { return static_cast<std::uint16_t>(call); }

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t), "the wakeups is a futex");

long Futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, timeout, nullptr, 0);
}

using sdk::Failure;

std::size_t Bytes(int size) { return sizeof(PageHeader) + static_cast<std::size_t>(size) * sizeof(PageSlot); }

[[noreturn]] void ThrowErrno(const std::string& what) {
  const int code = errno;
  std::string text = what + ": " + std::strerror(code);
  rlimit files{};
  if (code == EMFILE && getrlimit(RLIMIT_NOFILE, &files) == 0)
    text += "; raise `ulimit -n`, which is " + std::to_string(files.rlim_cur);
  throw Failure(DTRUN_SYSTEM, text).Vendor("errno", code);
}

}  // namespace

bool EntryBarrier::Enter(std::uint64_t call, const sdk::Signature& signature) {
  PageSlot& own = page_.slot(rank_);
  const auto words = signature.Words();
  for (std::size_t i = 0; i < words.size(); ++i) own.signature[i].store(words[i], std::memory_order_relaxed);
  own.call.store(call, std::memory_order_release);

  const std::uint64_t hash = signature.Digest();
  const auto digest = static_cast<std::uint32_t>(hash ^ hash >> 32);
  std::atomic<std::uint64_t>& word = page_.header().entries;
  std::uint64_t seen = word.load(std::memory_order_acquire);
  for (;;) {
    Entries now = Entries::Unpack(seen);
    // The call before this one is complete, because this rank reached it.
    if (now.call != Short(call) || now.come == 0) now = {Short(call), 0, digest};
    if (now.digest != digest) ThrowDisagreement(call, signature);
    ++now.come;
    if (!word.compare_exchange_weak(seen, now.Pack())) continue;
    if (now.come < size_) return false;
    if (page_.header().sleepers.load() != 0) Wake();
    return true;
  }
}

bool EntryBarrier::Ready(std::uint64_t call) const {
  const Entries now = Entries::Unpack(page_.header().entries.load(std::memory_order_acquire));
  return now.call != Short(call) || now.come == size_;
}

bool EntryBarrier::GoBack(std::uint64_t call) {
  std::atomic<std::uint64_t>& word = page_.header().entries;
  std::uint64_t seen = word.load(std::memory_order_acquire);
  for (;;) {
    Entries now = Entries::Unpack(seen);
    if (now.call != Short(call) || now.come == size_) return false;
    --now.come;
    if (word.compare_exchange_weak(seen, now.Pack())) return true;
  }
}

void EntryBarrier::Sleep(std::uint64_t call, std::chrono::steady_clock::time_point until) {
  PageHeader& header = page_.header();
  const std::uint32_t heard = header.wakeups.load();
  header.sleepers.fetch_add(1);
  // The last to come looks for sleepers after it came, so one of the two sees the other.
  const auto left = until - std::chrono::steady_clock::now();
  if (!Ready(call) && left.count() > 0) {
    const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
    const timespec timeout{static_cast<time_t>(nanoseconds / 1'000'000'000),
                           static_cast<long>(nanoseconds % 1'000'000'000)};
    Futex(header.wakeups, FUTEX_WAIT, heard, &timeout);
  }
  header.sleepers.fetch_sub(1);
}

void EntryBarrier::Wake() {
  page_.header().wakeups.fetch_add(1);
  Futex(page_.header().wakeups, FUTEX_WAKE, INT_MAX, nullptr);
}

void EntryBarrier::Depart(Fate fate, const std::string& reason, int culprit) {
  PageSlot& own = page_.slot(rank_);
  if (own.fate.load() != Fate::kMember) return;
  const std::size_t length = std::min(reason.size(), sizeof own.reason - 1);
  std::memcpy(own.reason, reason.data(), length);
  own.reason[length] = '\0';
  own.culprit = culprit;
  own.fate.store(fate, std::memory_order_release);
  page_.header().departures.fetch_add(1);
  Wake();
}

std::optional<EntryBarrier::Departure> EntryBarrier::FindDeparture() const {
  std::optional<Departure> found;
  if (!anyone_departed()) return found;
  for (int rank = 0; rank < size_; ++rank) {
    const Fate fate = FateOf(rank);
    if (rank == rank_ || fate == Fate::kMember) continue;
    if (fate != Fate::kLeft) return Departure{rank, fate, page_.slot(rank).reason, page_.slot(rank).culprit};
    if (!found) found = Departure{rank, fate, "", -1};
  }
  return found;
}

sdk::Signature EntryBarrier::SignatureOf(int rank) const {
  sdk::SignatureWords words;
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = page_.slot(rank).signature[i].load(std::memory_order_relaxed);
  }
  return sdk::Signature::OfWords(words);
}

void EntryBarrier::ThrowDisagreement(std::uint64_t call, const sdk::Signature& signature) const {
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_ || CallOf(rank) != call || SignatureOf(rank) == signature) continue;
    throw sdk::Failure(DTRUN_INVALID_ARGUMENT,
                       "collective " + std::to_string(call) + " is " + SignatureText(signature) +
                           " on rank " + std::to_string(rank_) + " and " + SignatureText(SignatureOf(rank)) +
                           " on rank " + std::to_string(rank) +
                           "; all ranks must make the same calls in the same order",
                       rank);
  }
  throw sdk::Failure(DTRUN_INVALID_ARGUMENT, "collective " + std::to_string(call) + ", " +
                                                 SignatureText(signature) + " on rank " +
                                                 std::to_string(rank_) + ", is another on another rank");
}

void Page::Map() {
  void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (memory == MAP_FAILED) ThrowErrno("map the page that ranks meet in");
  memory_ = memory;
}

Page Page::Make(int size) {
  Page page(memfd_create("dtrun-mpi", MFD_CLOEXEC), Bytes(size));
  if (page.file_ < 0) ThrowErrno("make the page that ranks meet in");
  rlimit limit{};
  const bool fits = getrlimit(RLIMIT_FSIZE, &limit) != 0 || page.bytes_ <= limit.rlim_cur;  // else SIGXFSZ
  if (!fits) errno = EFBIG;
  if (!fits || ftruncate(page.file_, static_cast<off_t>(page.bytes_)) != 0)
    ThrowErrno("size the page that ranks meet in");
  page.Map();
  auto* const header = new (page.memory_) PageHeader;
  for (int rank = 0; rank < size; ++rank) new (&page.slot(rank)) PageSlot;
  if (getrandom(&header->nonce, sizeof header->nonce, 0) != sizeof header->nonce) ThrowErrno("draw a number");
  return page;
}

Page Page::Open(const std::string& address, int size) {
  const std::size_t space = address.find(' ');
  if (space == std::string::npos)
    throw Failure(DTRUN_INTERNAL, "'" + address + "' is not an address of a page");
  const std::string path = address.substr(0, space);
  Page page(open(path.c_str(), O_RDWR | O_CLOEXEC), Bytes(size));
  if (page.file_ < 0) ThrowErrno("open '" + path + "'");
  // A process number means another process in another container.
  if (lseek(page.file_, 0, SEEK_END) != static_cast<off_t>(page.bytes_))
    throw Failure(DTRUN_FAILED_PRECONDITION, "'" + path + "' is something else here");
  page.Map();
  close(std::exchange(page.file_, -1));
  if (std::to_string(page.header().nonce) != address.substr(space + 1))
    throw Failure(DTRUN_FAILED_PRECONDITION, "'" + path + "' is another page here");
  return page;
}

Page::Page(Page&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      memory_(std::exchange(other.memory_, nullptr)),
      bytes_(other.bytes_) {}

Page& Page::operator=(Page&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Page::~Page() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
  if (file_ >= 0) close(file_);
}

std::string Page::Address() const {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_) + " " +
         std::to_string(header().nonce);
}

PageSlot& Page::slot(int rank) const {
  auto* const first = reinterpret_cast<PageSlot*>(static_cast<char*>(memory_) + sizeof(PageHeader));
  return first[rank];
}

}  // namespace dtrun::mpi_plugin
