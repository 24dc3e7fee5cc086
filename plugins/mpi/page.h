// A page of memory that the processes of a communicator share when all live on one host.
//
// MPI knows neither timeouts nor who is missing. So ranks meet here before they enter an MPI
// collective: nobody enters before all have come, and who waits can give up. entry_barrier.h has
// the rules. The memory is an anonymous file that has no name: nothing is left after a kill.
//
// Owned by the entry barrier of its communicator; what is atomic, any thread of any rank reads and writes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace dtrun::mpi_plugin {

// What became of a rank.
enum class Fate : std::uint32_t { kMember = 0, kLeft, kFailed, kAborted };

inline constexpr std::size_t kCacheLine = 64;

// Written by one rank, read by all.
struct alignas(kCacheLine) PageSlot {
  std::atomic<std::uint64_t> call{0};         // the last collective that this rank has come to
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
  alignas(kCacheLine) std::atomic<std::uint32_t> departures{0};  // slots whose fate is decided
  std::uint64_t nonce = 0;
};

// One mapping; unmapped by the destructor.
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

}  // namespace dtrun::mpi_plugin
