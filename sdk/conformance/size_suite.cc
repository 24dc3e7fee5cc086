// Collectives of more elements than 31 bits count.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include "repeated_memory.h"
#include "suite.h"

namespace dtrun::conformance {
namespace {

constexpr std::uint64_t kHugeElements = (std::uint64_t{1} << 31) + 4097;  // of one byte
const nanoseconds kLongPatience = 9 * kPatience;                          // 2 GiB on a loaded machine

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Element i of `rank`: repeats with RepeatedMemory.
unsigned char At(int rank, std::size_t i) {
  return static_cast<unsigned char>(i * 7 + i / 251 + 100 * static_cast<std::size_t>(rank));
}

// Bytes that can still be had without swapping.
std::uint64_t AvailableMemory() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::uint64_t kib = 0;
  while (file >> name) {
    if (name == "MemAvailable:" && file >> kib) break;
  }
  return kib * 1024;
}

// Why the case would make no sense here; "" when it does.
std::string Obstacle() {
  constexpr std::uint64_t kNeeded = 4 * kHugeElements;  // results of two ranks, and as much for others
  if (kSanitized) return "a sanitizer looks at every byte, which takes minutes";
  return AvailableMemory() >= kNeeded ? "" : "needs 8 GiB of free memory (when rank 0 looked)";
}

// Rank 0 decides for both: what one of them has allocated, the other would not find available.
bool IsPossible(Rank& rank) {
  const bool possible = Obstacle().empty();
  if (rank.rank() == 0) {
    rank.Count("possible", possible ? 1 : 0);
    rank.Tell("decided");
  }
  rank.Await("decided");
  return rank.Count("possible", 0) == 1;
}

Outcome DoPatiently(Rank& rank, dtrun_op op) {
  op.timeout_ns = kLongPatience.count();
  Outcome refusal;
  const std::unique_ptr<Pending> pending = rank.Start(op, &refusal);
  return pending ? pending->Wait(kLongPatience) : refusal;
}

bool MovesThatMuch(const dtrun_backend_caps& caps) {
  return caps.max_bytes == 0 || caps.max_bytes >= kHugeElements;
}

void AllreduceCounts(const Subject& subject) {
  const dtrun_backend_caps caps = subject.Caps();
  if (!Has(caps.ops, DTRUN_ALLREDUCE) || !subject.Reduces(caps, DTRUN_UINT8, DTRUN_MAX)) {
    GTEST_SKIP() << "the backend does not offer it";
  }
  if (!MovesThatMuch(caps)) GTEST_SKIP() << "the backend moves at most " << caps.max_bytes << " bytes";
  subject.Play(2, [](Rank& rank) {
    if (!IsPossible(rank)) GTEST_SKIP() << Obstacle();
    const RepeatedMemory sent(kHugeElements);
    const RepeatedMemory wanted(kHugeElements);
    sent.Fill([&](std::size_t i) { return At(rank.rank(), i); });
    wanted.Fill([](std::size_t i) { return std::max(At(0, i), At(1, i)); });
    // Left uninitialised. Repeated memory would let partial results overwrite one another.
    const std::unique_ptr<unsigned char[]> got(new unsigned char[kHugeElements]);
    const Outcome outcome =
        DoPatiently(rank, AllreduceOp(sent.data(), got.get(), kHugeElements, DTRUN_UINT8, DTRUN_MAX));
    rank.Meet("arrived");  // a rank that leaves may end what a busy machine has not moved for 10 s (B21)
    ASSERT_TRUE(outcome.ok()) << outcome;
    EXPECT_EQ(std::memcmp(got.get(), wanted.data(), kHugeElements), 0) << "on rank " << rank.rank();
  });
}

void BroadcastCounts(const Subject& subject) {
  const dtrun_backend_caps caps = subject.Caps();
  if (!Has(caps.ops, DTRUN_BROADCAST)) GTEST_SKIP() << "the backend does not offer it";
  if (!MovesThatMuch(caps)) GTEST_SKIP() << "the backend moves at most " << caps.max_bytes << " bytes";
  subject.Play(2, [](Rank& rank) {
    if (!IsPossible(rank)) GTEST_SKIP() << Obstacle();
    const RepeatedMemory data(kHugeElements);
    if (rank.rank() == 1) data.Fill([](std::size_t i) { return At(1, i); });
    dtrun_op op = MakeOp(DTRUN_BROADCAST);
    op.send = op.recv = data.data();
    op.count = kHugeElements;
    op.dtype = DTRUN_UINT8;
    op.root = 1;
    const Outcome outcome = DoPatiently(rank, op);
    rank.Meet("arrived");
    ASSERT_TRUE(outcome.ok()) << outcome;
    EXPECT_EQ(data.Wrong([](std::size_t i) { return At(1, i); }), 0u) << "bytes on rank " << rank.rank();
  });
}

}  // namespace

void AddSizeCases(const BackendUnderTest& backend) {
  AddCase("Sizes", "AllreduceOfMoreThan2To31Elements", "B13", backend, AllreduceCounts);
  AddCase("Sizes", "BroadcastOfMoreThan2To31Elements", "B13", backend, BroadcastCounts);
}

}  // namespace dtrun::conformance
