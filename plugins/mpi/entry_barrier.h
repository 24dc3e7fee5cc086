// Where ranks of one host wait for each other before a collective of MPI.
//
// Every rank arrives at call 1, 2, 3 … Once the last has arrived, all must enter; before
// that, a rank that waits may still go back. So a call that some rank skips ends at its deadline,
// by name, and no thread is lost in MPI. Costs one exclusive access to one cache line.
//
// One thread at a time uses Enter, Ready and GoBack of a rank; the rest: any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "dtrun/plugin.hpp"
#include "dtrun/plugin/signature.hpp"

namespace dtrun::mpi_plugin {

// What became of a rank.
enum class Fate : std::uint32_t { kMember = 0, kLeft, kFailed, kAborted };

inline constexpr std::size_t kCacheLine = 64;

// Written by one rank, read by all.
struct alignas(kCacheLine) PageSlot {
  std::atomic<std::uint64_t> call{0};         // the last collective that this rank has entered
  std::atomic<std::uint64_t> signature[3]{};  // of that, an sdk::Signature
  std::atomic<Fate> fate{Fate::kMember};
  // Written before `fate` leaves kMember.
  std::int32_t culprit = -1;  // the rank that this one lost, if that is why
  char reason[176] = "";
};

struct PageHeader {
  alignas(kCacheLine) std::atomic<std::uint64_t> entries{0};  // entry_barrier.cc packs it
  alignas(kCacheLine) std::atomic<std::uint32_t> sleepers{0};
  std::atomic<std::uint32_t> wakeups{0};                         // a futex
  alignas(kCacheLine) std::atomic<std::uint32_t> departures{0};  // slots with a decided fate
  std::uint64_t nonce = 0;
};

// A page of memory that the processes of a communicator share when all live on one host: one mapping,
// unmapped by the destructor. It is an anonymous file without a name, so nothing is left after a kill. Owned
// by the entry barrier of its communicator; any thread of any rank reads and writes what is atomic.
class Page {
 public:
  // For `size` ranks. The maker tells the others where it is.
  static Page Make(int size);
  // Opens the maker's page; `address` is what Address() gave there. Throws sdk::Failure.
  static Page Open(const std::string& address, int size);

  Page(Page&& other) noexcept;
  Page& operator=(Page&& other) noexcept;
  ~Page();

  std::string Address() const;
  PageHeader& header() const { return *static_cast<PageHeader*>(memory_); }
  PageSlot& slot(int rank) const;

 private:
  Page(int file, std::size_t bytes) : file_(file), bytes_(bytes) {}
  void Map();

  int file_;  // the maker's; -1 elsewhere
  void* memory_ = nullptr;
  std::size_t bytes_;
};

class EntryBarrier {
 public:
  EntryBarrier(Page page, int rank, int size) : page_(std::move(page)), rank_(rank), size_(size) {}

  // Arrives at the call; true when this rank is the last. Throws when another rank came with
  // another call: then this rank has not come.
  bool Enter(std::uint64_t call, const sdk::Signature& signature);
  // Whether all have come.
  bool Ready(std::uint64_t call) const;
  // False: too late, all have come.
  bool GoBack(std::uint64_t call);
  // Sleeps until someone wakes all, at most until `until`.
  void Sleep(std::uint64_t call, std::chrono::steady_clock::time_point until);
  // Wakes all who sleep.
  void Wake();

  // Announces that this rank comes no more. The first fate stays.
  void Depart(Fate fate, const std::string& reason, int culprit = -1);
  bool anyone_departed() const { return page_.header().departures.load(std::memory_order_acquire) != 0; }
  struct Departure {
    int rank;
    Fate fate;
    std::string reason;
    int culprit;  // the rank that it lost, -1 when it has another reason
  };
  // Another rank that departed; failures first.
  std::optional<Departure> FindDeparture() const;
  Fate FateOf(int rank) const { return page_.slot(rank).fate.load(std::memory_order_acquire); }

  // The call that a rank has reached last.
  std::uint64_t CallOf(int rank) const { return page_.slot(rank).call.load(std::memory_order_acquire); }
  sdk::Signature SignatureOf(int rank) const;

 private:
  [[noreturn]] void ThrowDisagreement(std::uint64_t call, const sdk::Signature& signature) const;

  Page page_;
  const int rank_;
  const int size_;
};

}  // namespace dtrun::mpi_plugin
