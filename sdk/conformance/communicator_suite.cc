// Several communicators at once, subsets of ranks, groups of operations, memory from the backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <thread>

#include "process_state.h"
#include "suite.h"
#include "trial.h"

namespace dtrun::conformance {
namespace {

void TheyDoNotMix(const Subject& subject) {
  subject.Play(2, [](Rank& first) {
    const auto second = first.Further("second", {0, 1});
    ASSERT_NE(second, nullptr);
    std::vector<float> a(100, 1);
    std::vector<float> b(100, 10);
    const dtrun_op op_a = AllreduceOp(a.data(), a.data(), 100, DTRUN_FLOAT32, DTRUN_SUM);
    const dtrun_op op_b = AllreduceOp(b.data(), b.data(), 100, DTRUN_FLOAT32, DTRUN_SUM);
    // The ranks start them in opposite order.
    const auto one = first.rank() == 0 ? first.Start(op_a) : second->Start(op_b);
    const auto two = first.rank() == 0 ? second->Start(op_b) : first.Start(op_a);
    EXPECT_TRUE(one->Wait().ok());
    EXPECT_TRUE(two->Wait().ok());
    EXPECT_EQ(a, std::vector<float>(100, 2));
    EXPECT_EQ(b, std::vector<float>(100, 20));
  });
}

// Messages of the same tags in two communicators of the same ranks, received in the other order.
void TheirTagsDoNotMix(const Subject& subject) {
  static constexpr std::uint32_t kTags[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff};
  subject.Play(2, [](Rank& first) {
    const auto second = first.Further("second", {1, 0});
    ASSERT_NE(second, nullptr);
    Rank* const both[] = {&first, second.get()};
    std::vector<std::unique_ptr<Pending>> sending;
    std::int32_t sent[2][std::size(kTags)];
    for (std::size_t i = 0; i < std::size(kTags); ++i) {
      for (const std::size_t of : {0u, 1u}) {
        sent[of][i] = static_cast<std::int32_t>(100 * of + 10 * i) + first.rank();
        sending.push_back(
            both[of]->Start(SendOp(&sent[of][i], 1, DTRUN_INT32, 1 - both[of]->rank(), kTags[i])));
      }
    }
    for (std::size_t i = std::size(kTags); i-- > 0;) {
      for (const std::size_t of : {1u, 0u}) {
        std::int32_t got = -1;
        const Outcome outcome = both[of]->Do(RecvOp(&got, 1, DTRUN_INT32, 1 - both[of]->rank(), kTags[i]));
        EXPECT_TRUE(outcome.ok()) << outcome;
        EXPECT_EQ(got, static_cast<std::int32_t>(100 * of + 10 * i) + 1 - first.rank())
            << "tag " << kTags[i] << " of communicator " << of << " (B20)";
      }
    }
    for (const auto& one : sending) EXPECT_TRUE(one == nullptr || one->Wait().ok());
  });
}

// Each thread has a communicator of its own and never waits for the other thread.
void TwoThreadsUseOneEach(const Subject& subject) {
  subject.Play(3, [](Rank& first) {
    const auto second = first.Further("second", {0, 1, 2});
    ASSERT_NE(second, nullptr);
    const auto calls = [](Rank& rank, std::uint32_t flags) {
      for (std::uint64_t round = 0; round < 40; ++round) {
        Trial trial{DTRUN_ALLREDUCE, TypeOf(DTRUN_FLOAT32), DTRUN_SUM, round * 997, round % 2 == 0};
        trial.flags = flags;
        Attempt(rank, trial);
      }
    };
    std::thread other([&] { calls(*second, DTRUN_OP_BLOCKING); });
    calls(first, 0);
    other.join();
  });
}

// Ranks 0 and 2 of three have one of their own, in the opposite order.
void SubsetsWorkBesideTheWhole(const Subject& subject) {
  subject.Play(3, [](Rank& all) {
    std::unique_ptr<Rank> pair;
    if (all.rank() != 1) pair = all.Further("pair", {2, 0});
    for (const std::int32_t kind : {DTRUN_ALLREDUCE, DTRUN_BROADCAST, DTRUN_ALLGATHER}) {
      if (pair) Attempt(*pair, {kind, TypeOf(DTRUN_INT32), DTRUN_SUM, 1003});
      Attempt(all, {kind, TypeOf(DTRUN_INT32), DTRUN_SUM, 1003});
    }
    if (pair) {
      std::int32_t value = all.rank();
      const Outcome outcome = pair->rank() == 0 ? pair->Do(SendOp(&value, 1, DTRUN_INT32, 1, 4))
                                                : pair->Do(RecvOp(&value, 1, DTRUN_INT32, 0, 4));
      EXPECT_TRUE(outcome.ok()) << outcome;
      EXPECT_EQ(value, 2);
    }
    pair.reset();  // its end does not touch the whole
    EXPECT_TRUE(all.Barrier().ok());
  });
}

// How many descriptors communicators of `size` ranks, which have done nothing yet, have opened together.
std::size_t DescriptorsOf(const Subject& subject, int size) {
  const std::size_t before = ProcessState::Now().files.size();
  std::size_t made = before;
  subject.Play(size, [&](Rank& rank) {
    rank.Meet("made");
    if (rank.rank() == 0) made = ProcessState::Now().files.size();
    rank.Meet("counted");
  });
  return made - std::min(made, before);
}

// The first world may open what the library keeps. One descriptor for each rank beside those that it agrees
// through: to listen.
void RanksConnectWhenTheyTalk(const Subject& subject, int size) {
  if ((subject.Caps().features & DTRUN_CAP_LAZY_CONNECT) == 0)
    GTEST_SKIP() << "the backend connects in comm_create";
  if (!subject.InOneProcess()) GTEST_SKIP() << "the ranks are in processes of their own";
  const auto ranks = static_cast<std::size_t>(size);
  DescriptorsOf(subject, 1);
  const std::size_t alone = DescriptorsOf(subject, 1);
  const auto others = static_cast<std::size_t>(std::ceil(std::log2(size)));
  EXPECT_LE(DescriptorsOf(subject, size), ranks * (alone + others + 1))
      << "descriptors that " << size << " ranks open, of which one alone opens " << alone
      << ": a rank connects to more than log2(size) others";
}

void GroupsCompleteAsAWhole(const Subject& subject) {
  if (subject.table().group_begin == nullptr) GTEST_SKIP() << "the backend has no groups";
  subject.Play(3, [](Rank& rank) {
    constexpr std::size_t kCount = 300'000;
    const int next = (rank.rank() + 1) % 3;
    const int last = (rank.rank() + 2) % 3;
    for (int round = 0; round < 5; ++round) {
      const std::vector<std::int32_t> sent(kCount, rank.rank());
      std::vector<std::int32_t> got(kCount, -1);
      std::vector<float> sum(kCount, 1);
      ASSERT_TRUE(rank.GroupBegin().ok());
      std::vector<std::unique_ptr<Pending>> pending;
      // All send first; outside a group a backend might wait for the receiver here.
      pending.push_back(rank.Start(SendOp(sent.data(), kCount, DTRUN_INT32, next, 1)));
      pending.push_back(rank.Start(RecvOp(got.data(), kCount, DTRUN_INT32, last, 1)));
      pending.push_back(rank.Start(AllreduceOp(sum.data(), sum.data(), kCount, DTRUN_FLOAT32, DTRUN_SUM)));
      ASSERT_TRUE(rank.GroupEnd().ok());
      for (const auto& one : pending) EXPECT_TRUE(one->Wait().ok());
      EXPECT_EQ(got, std::vector<std::int32_t>(kCount, last));
      EXPECT_EQ(sum, std::vector<float>(kCount, 3));
    }
    ASSERT_TRUE(rank.GroupBegin().ok());  // an empty one
    ASSERT_TRUE(rank.GroupEnd().ok());
    EXPECT_TRUE(rank.Barrier().ok());
  });
}

void NoTimeLimitIsAllowed(const Subject& subject) {
  subject.PlayWithoutJoining(2, [&](dtrun_kv* kv, int rank) {
    Outcome outcome;
    const auto joined = subject.Join(kv, rank, 2, kNoLimit, &outcome);
    ASSERT_NE(joined, nullptr) << "with timeout_ns -1, which is no limit: " << outcome;
    MakeSomeCalls(subject, *joined);
  });
}

void MemoryIsAlignedZeroedAndUsable(const Subject& subject) {
  if (subject.table().mem_alloc == nullptr) GTEST_SKIP() << "the backend has no memory of its own";
  subject.Play(3, [](Rank& rank) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{1003}, std::size_t{700'003}}) {
      auto* const data = static_cast<float*>(rank.Alloc(count * sizeof(float)));
      ASSERT_NE(data, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 64, 0u);
      EXPECT_EQ(std::count(data, data + count, 0.0f), static_cast<std::ptrdiff_t>(count));
      std::fill(data, data + count, 2.0f);
      EXPECT_TRUE(rank.Do(AllreduceOp(data, data, count, DTRUN_FLOAT32, DTRUN_SUM)).ok());
      EXPECT_EQ(std::count(data, data + count, 6.0f), static_cast<std::ptrdiff_t>(count));
      // One buffer of it beside one of the program, and by another rank's choice the reverse.
      std::vector<float> own(count, 1);
      const bool from = rank.rank() == 1;
      std::fill(data, data + count, 1.0f);
      EXPECT_TRUE(rank.Do(AllreduceOp(from ? data : own.data(), from ? own.data() : data, count,
                                      DTRUN_FLOAT32, DTRUN_SUM))
                      .ok());
      float* const result = from ? own.data() : data;
      EXPECT_EQ(std::count(result, result + count, 3.0f), static_cast<std::ptrdiff_t>(count));
      rank.Free(data);
    }
  });
}

// Whole, at its ends, and beside memory that is not registered.
void RegisteredMemoryIsLikeOther(const Subject& subject) {
  if (subject.table().mem_register == nullptr) GTEST_SKIP() << "the backend registers no memory";
  subject.Play(3, [&](Rank& rank) {
    for (const std::size_t count : {std::size_t{3}, std::size_t{1003}, std::size_t{700'003}}) {
      std::vector<float> data(count + 2, 1);
      float* const inner = data.data() + 1;
      for (int round = 0; round < 2; ++round) {
        const Outcome registered = rank.Register(inner, count * sizeof(float));
        ASSERT_TRUE(registered.ok()) << registered;
        EXPECT_EQ(data, std::vector<float>(count + 2, 1)) << "registration changes the memory";
        // The registered part, then across both of its ends.
        EXPECT_TRUE(rank.Do(AllreduceOp(inner, inner, count, DTRUN_FLOAT32, DTRUN_SUM)).ok());
        EXPECT_EQ(std::count(inner, inner + count, 3.0f), static_cast<std::ptrdiff_t>(count));
        std::fill(data.begin(), data.end(), 1.0f);
        std::vector<float> other(count + 2);
        EXPECT_TRUE(
            rank.Do(AllreduceOp(data.data(), other.data(), count + 2, DTRUN_FLOAT32, DTRUN_SUM)).ok());
        EXPECT_EQ(other, std::vector<float>(count + 2, 3));
        const int next = (rank.rank() + 1) % 3;
        const int before = (rank.rank() + 2) % 3;
        const auto sent = rank.Start(SendOp(inner, count, DTRUN_FLOAT32, next, 1));
        EXPECT_TRUE(rank.Do(RecvOp(other.data(), count, DTRUN_FLOAT32, before, 1)).ok());
        EXPECT_TRUE(sent->Wait().ok());
        EXPECT_EQ(other[count - 1], 1.0f);
        rank.Deregister(inner);
      }
      EXPECT_TRUE(rank.Do(AllreduceOp(inner, inner, count, DTRUN_FLOAT32, DTRUN_SUM)).ok());
    }
    std::vector<float> aborted(8);
    if (subject.table().comm_abort == nullptr) return;
    EXPECT_TRUE(rank.Barrier().ok());
    const Outcome kept = rank.Register(aborted.data(), 16);
    EXPECT_TRUE(kept.ok()) << kept;
    rank.Abort("enough");
    const Outcome after = rank.Register(aborted.data() + 4, 16);
    EXPECT_TRUE(after.ok() || after.code == DTRUN_ABORTED) << after;
    if (after.ok()) rank.Deregister(aborted.data() + 4);
    rank.Deregister(aborted.data());
  });
}

}  // namespace

void AddCommunicatorCases(const BackendUnderTest& backend) {
  AddCase("Communicators", "DoNotMix", "B20", backend, TheyDoNotMix);
  AddCase("Communicators", "KeepTheirTagsApart", "B20, M1", backend, TheirTagsDoNotMix);
  AddCase("Communicators", "WorkInTwoThreadsAtOnce", "T3, B20", backend, TwoThreadsUseOneEach);
  AddCase("Communicators", "OfSomeRanksWorkBesideThatOfAll", "B20, B21", backend, SubsetsWorkBesideTheWhole);
  AddCase("Communicators", "ConnectWhenRanksTalk", "B28", backend,
          [size = backend.most_ranks == 0 || backend.most_ranks >= 7 ? 7 : 4](const Subject& subject) {
            RanksConnectWhenTheyTalk(subject, size);
          });
  AddCase("Groups", "CompleteAsAWhole", "B22", backend, GroupsCompleteAsAWhole);
  AddCase("Communicators", "MayBeMadeWithoutATimeLimit", "B17", backend, NoTimeLimitIsAllowed);
  AddCase("Memory", "IsAlignedZeroedAndUsable", "B23", backend, MemoryIsAlignedZeroedAndUsable);
  AddCase("Memory", "MayBeRegistered", "B27", backend, RegisteredMemoryIsLikeOther);
}

}  // namespace dtrun::conformance
