// What calls and communicators leave in the memory that malloc gives out.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kv.h"
#include "suite.h"

namespace dtrun::conformance {
namespace {

constexpr char kOtherMalloc[] = "memory is counted where malloc is the C library's";

// Whether it is. mallinfo2 crashes where malloc is another's: a sanitizer's, jemalloc's.
bool HasOwnMalloc() {
  Dl_info of_malloc{}, of_mallinfo{};
  return ::dladdr(::dlsym(RTLD_DEFAULT, "malloc"), &of_malloc) != 0 &&
         ::dladdr(::dlsym(RTLD_DEFAULT, "mallinfo2"), &of_mallinfo) != 0 &&
         of_malloc.dli_fbase == of_mallinfo.dli_fbase;
}

// Bytes that all threads have allocated.
std::size_t Allocated() {
  const struct mallinfo2 now = mallinfo2();
  return now.uordblks + now.hblkhd;
}

// What the process grows by in a round of calls, the least of all but the first: libraries keep a pool now
// and then. Ends with the first round after which each rank has had one of less than `tolerated`. `word` is a
// letter.
template <class Calls>
std::ptrdiff_t LeastGrowth(Rank& rank, const std::string& word, std::ptrdiff_t tolerated, Calls&& calls) {
  constexpr int kMostRounds = 20;
  std::ptrdiff_t least = PTRDIFF_MAX;
  std::int64_t before_it = 0;  // how often ranks have found more than is tolerated
  for (int round = 0; round < kMostRounds && !testing::Test::HasFatalFailure(); ++round) {
    rank.Meet("b" + word + std::to_string(round));  // short words need least memory
    const std::size_t before = Allocated();
    calls(round);
    rank.Meet("a" + word + std::to_string(round));
    const auto grown = static_cast<std::ptrdiff_t>(Allocated()) - static_cast<std::ptrdiff_t>(before);
    if (round == 0) continue;
    least = std::min(least, grown);
    rank.Count("n" + word, least < tolerated ? 0 : 1);
    rank.Meet("n" + word + std::to_string(round));
    const std::int64_t now = rank.Count("n" + word, 0);
    rank.Meet("o" + word + std::to_string(round));
    if (std::exchange(before_it, now) == now) break;
  }
  return least;
}

constexpr int kMeasuredCalls = 1600;
// Bytes for all of them: half of a small one lost in every 16th call of both ranks. The suite's own words
// need 250, and what one thread frees of another's waits in the allocator's cache, at most 1 kB seen.
constexpr std::ptrdiff_t kTolerated = 3200;

void CallsNeedNoMoreMemory(const Subject& subject) {
  if (!HasOwnMalloc()) GTEST_SKIP() << kOtherMalloc;
  const dtrun_backend_caps caps = subject.Caps();
  subject.Play(2, [&](Rank& rank) {
    float value = 1;
    const auto repeat = [&](const dtrun_op& op) {
      for (int call = 0; call < kMeasuredCalls; ++call) {
        const Outcome outcome = rank.Do(op);
        ASSERT_TRUE(outcome.ok()) << outcome;
      }
    };
    const std::ptrdiff_t messages = LeastGrowth(rank, "m", kTolerated, [&](int) {
      repeat(rank.rank() == 0 ? SendOp(&value, 1, DTRUN_FLOAT32, 1, 0)
                              : RecvOp(&value, 1, DTRUN_FLOAT32, 0, 0));
    });
    EXPECT_LT(messages, kTolerated) << "bytes that the process grows by in " << kMeasuredCalls << " messages";
    if ((caps.features & DTRUN_CAP_ANY_SOURCE) != 0) {
      const std::ptrdiff_t any = LeastGrowth(rank, "s", kTolerated, [&](int) {
        repeat(rank.rank() == 0 ? SendOp(&value, 1, DTRUN_FLOAT32, 1, 0)
                                : RecvOp(&value, 1, DTRUN_FLOAT32, DTRUN_ANY_SOURCE, 0));
      });
      EXPECT_LT(any, kTolerated) << "bytes that the process grows by in " << kMeasuredCalls
                                 << " messages received from any source";
    }
    if (!Has(caps.ops, DTRUN_ALLREDUCE)) return;
    const std::ptrdiff_t calls = LeastGrowth(rank, "c", kTolerated, [&](int) {
      repeat(AllreduceOp(&value, &value, 1, DTRUN_FLOAT32, DTRUN_MAX));
    });
    EXPECT_LT(calls, kTolerated) << "bytes that the process grows by in " << kMeasuredCalls << " collectives";
    for (const std::int32_t kind : {DTRUN_ALLGATHERV, DTRUN_ALLTOALLV}) {
      if (!Has(caps.ops, kind)) continue;
      const std::ptrdiff_t grown = LeastGrowth(rank, "v" + std::to_string(kind), kTolerated, [&](int) {
        std::array<float, 2> sent = {1, 2}, got = {};
        const std::array<std::uint64_t, 2> counts = {1, 1};
        dtrun_op op = MakeOp(kind);
        op.send = sent.data();
        op.recv = got.data();
        op.count = 2;
        op.dtype = DTRUN_FLOAT32;
        op.recv_counts = counts.data();
        if (kind == DTRUN_ALLTOALLV) op.send_counts = counts.data();
        repeat(op);
      });
      EXPECT_LT(grown, kTolerated) << "bytes that the process grows by in " << kMeasuredCalls
                                   << (kind == DTRUN_ALLGATHERV ? " allgathervs" : " alltoallvs");
    }
  });
}

// Without what the suite's own key-value space keeps of them.
void CommunicatorsNeedNoMoreMemory(const Subject& subject) {
  if (!HasOwnMalloc()) GTEST_SKIP() << kOtherMalloc;
  if (!subject.InOneProcess()) GTEST_SKIP() << "the ranks are processes";
  constexpr int kCommunicators = 8;
  static constexpr std::ptrdiff_t kToleratedOfThem = 2000;
  ThreadKv space;
  subject.Play(2, [&](Rank& rank) {
    const std::ptrdiff_t grown = LeastGrowth(rank, "w", kToleratedOfThem, [&](int round) {
      for (int i = 0; i < kCommunicators; ++i) {
        PartKv part(&space, std::to_string(i) + "/", true);
        Outcome outcome;
        const auto another = subject.Join(&part, rank.rank(), 2, kPatience, &outcome);
        ASSERT_NE(another, nullptr) << outcome;
        MakeSomeCalls(subject, *another);
      }
      rank.Meet("c" + std::to_string(round));
      if (rank.rank() == 0) space.Clear();
    });
    EXPECT_LT(grown, kToleratedOfThem)
        << "bytes that the process grows by in " << kCommunicators << " communicators";
  });
}

// Of worlds without their other rank.
void FailedCreationsNeedNoMoreMemory(const Subject& subject) {
  if (!HasOwnMalloc()) GTEST_SKIP() << kOtherMalloc;
  if (!subject.InOneProcess()) GTEST_SKIP() << "the ranks are processes";
  constexpr int kCreations = 8;
  static constexpr std::ptrdiff_t kToleratedOfThem = 2000;
  constexpr std::chrono::milliseconds kShort(5);
  subject.Play(1, [&](Rank& rank) {
    const std::ptrdiff_t grown = LeastGrowth(rank, "f", kToleratedOfThem, [&](int) {
      for (int i = 0; i < kCreations; ++i) {
        ThreadKv space;
        Outcome outcome;
        EXPECT_EQ(subject.Join(&space, 0, 2, kShort, &outcome), nullptr);
      }
    });
    EXPECT_LT(grown, kToleratedOfThem) << "bytes that the process grows by in " << kCreations
                                       << " calls of comm_create in which the other rank does not come";
  });
}

// Messages that have most likely arrived before their receives come.
void EarlyMessagesNeedNoMoreMemory(const Subject& subject) {
  if (!HasOwnMalloc()) GTEST_SKIP() << kOtherMalloc;
  static constexpr std::size_t kBytes = 256 << 10;
  static constexpr int kMessages = 4;
  static constexpr std::ptrdiff_t kToleratedOfThem = kBytes / 2;
  subject.Play(2, [](Rank& rank) {
    std::vector<unsigned char> data(kBytes, 1);
    const std::ptrdiff_t grown = LeastGrowth(rank, "e", kToleratedOfThem, [&](int round) {
      std::vector<std::unique_ptr<Pending>> pending;
      if (rank.rank() == 1) {
        rank.Await("sent/" + std::to_string(round));
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      for (int message = 0; message < kMessages; ++message) {
        pending.push_back(rank.Start(rank.rank() == 0 ? SendOp(data.data(), kBytes, DTRUN_UINT8, 1, 0)
                                                      : RecvOp(data.data(), kBytes, DTRUN_UINT8, 0, 0)));
      }
      if (rank.rank() == 0) rank.Tell("sent/" + std::to_string(round));
      for (const auto& one : pending) EXPECT_TRUE(one->Wait().ok());
    });
    EXPECT_LT(grown, kToleratedOfThem)
        << "bytes that the process grows by in " << kMessages << " early messages of " << kBytes << " bytes";
  });
}

}  // namespace

void AddMemoryCases(const BackendUnderTest& backend) {
  AddCase("Plugin", "NeedsNoMoreMemoryForEachCall", "T13", backend, CallsNeedNoMoreMemory);
  AddCase("Plugin", "NeedsNoMoreMemoryForEachCommunicator", "T9", backend, CommunicatorsNeedNoMoreMemory);
  AddCase("Plugin", "NeedsNoMoreMemoryForCommunicatorsThatDidNotComeAbout", "T9", backend,
          FailedCreationsNeedNoMoreMemory);
  AddCase("Plugin", "NeedsNoMoreMemoryForEarlyMessages", "T13", backend, EarlyMessagesNeedNoMoreMemory);
}

}  // namespace dtrun::conformance
