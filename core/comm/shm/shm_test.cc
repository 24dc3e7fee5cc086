// The shared-memory engine: tests what is particular to it; the suite of all backends covers the rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>

#include "sdk/conformance/backend_suite.h"
#include "sdk/conformance/subject.h"

namespace dtrun::conformance {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const bool kRegistered = RegisterBackendSuite({.plugin = SHM_PLUGIN_FILE});

const Subject& Engine() {
  static const Subject engine({.plugin = SHM_PLUGIN_FILE});
  return engine;
}

// `change` makes the call of rank 2 differ; every rank must get both sides in its error.
void ExpectMismatch(const dtrun_op& op, const std::function<void(dtrun_op&)>& change, const std::string& ours,
                    const std::string& theirs) {
  Engine().Play(3, [&](Rank& rank) {
    std::vector<double> send(1 << 16, 1), recv(1 << 16);
    dtrun_op mine = op;
    if (rank.rank() == 2) change(mine);
    mine.send = send.data();
    mine.recv = recv.data();
    const Outcome outcome = rank.Do(mine);
    EXPECT_EQ(outcome.code, DTRUN_MISMATCH) << outcome;
    EXPECT_THAT(outcome.text, AllOf(HasSubstr("call 1 on 'world' differs"), HasSubstr("rank 0 calls " + ours),
                                    HasSubstr("rank 2 calls " + theirs)));
    EXPECT_EQ(rank.Barrier().code, DTRUN_MISMATCH);
  });
}

TEST(ShmContract, NamesEverythingThatMayDiffer) {
  for (const std::uint64_t count : {std::uint64_t{4}, std::uint64_t{60'000}}) {  // one line; several pieces
    const dtrun_op op = AllreduceOp(nullptr, nullptr, count, DTRUN_FLOAT32, DTRUN_SUM);
    const std::string ours = "allreduce (float32 x " + std::to_string(count) + ", sum)";
    ExpectMismatch(
        op, [](dtrun_op& o) { o.reduce = DTRUN_MAX; }, ours, "allreduce");
    ExpectMismatch(
        op, [](dtrun_op& o) { o.dtype = DTRUN_FLOAT64; }, ours, "allreduce (float64");
    ExpectMismatch(
        op, [](dtrun_op& o) { o.count -= 1; }, ours, "allreduce");
    ExpectMismatch(
        op, [](dtrun_op& o) { o.kind = DTRUN_REDUCE, o.root = 0; }, ours, "reduce");
    ExpectMismatch(
        op, [](dtrun_op& o) { o = MakeOp(DTRUN_BARRIER); }, ours, "barrier");
  }
}

// Only the root knows what it expects, and only the others what they give.
TEST(ShmContract, NamesCountsThatDoNotMeet) {
  Engine().Play(2, [](Rank& rank) {
    std::vector<float> send(10, 1), recv(20);
    const std::uint64_t counts[] = {3, 5};
    dtrun_op op = AllreduceOp(send.data(), recv.data(), rank.rank() == 0 ? 3 : 7, DTRUN_FLOAT32, 0);
    op.kind = DTRUN_GATHERV;
    op.root = 0;
    if (rank.rank() == 0) op.recv_counts = counts;
    const Outcome outcome = rank.Do(op);
    if (rank.rank() == 0) {
      EXPECT_EQ(outcome.code, DTRUN_MISMATCH) << outcome;
      EXPECT_THAT(outcome.text, HasSubstr("rank 0 expects 5 elements of rank 1, which gives 7"));
    }
  });
}

TEST(ShmContract, NamesMessagesThatDoNotMeet) {
  Engine().Play(2, [](Rank& rank) {
    std::vector<float> data(8, 1);
    if (rank.rank() == 0) {
      EXPECT_TRUE(rank.Do(SendOp(data.data(), 8, DTRUN_FLOAT32, 1, 5)).ok());
      return;
    }
    const Outcome outcome = rank.Do(RecvOp(data.data(), 7, DTRUN_FLOAT32, 0, 5));
    EXPECT_EQ(outcome.code, DTRUN_MISMATCH) << outcome;
    EXPECT_THAT(outcome.text, HasSubstr("rank 0 sends float32 x 8, rank 1 receives float32 x 7"));
  });
}

TEST(ShmContract, NamesTheSideOfAMessageThatDidNotCome) {
  for (const std::int32_t peer : std::initializer_list<std::int32_t>{1, DTRUN_ANY_SOURCE}) {
    Engine().Play(2, [peer](Rank& rank) {
      std::vector<float> data(8, 1);
      if (rank.rank() == 1) {
        EXPECT_TRUE(rank.Do(SendOp(data.data(), 8, DTRUN_FLOAT32, 0, 5)).ok());
        EXPECT_FALSE(rank.Barrier().ok());  // ends with the other's failure
        return;
      }
      dtrun_op recv = RecvOp(data.data(), 8, DTRUN_FLOAT32, peer, 6);
      recv.timeout_ns = 50'000'000;
      std::int32_t source = -1;
      if (peer == DTRUN_ANY_SOURCE) recv.source = &source;
      const Outcome outcome = rank.Do(recv);
      EXPECT_EQ(outcome.code, DTRUN_TIMEOUT) << outcome;
      EXPECT_THAT(outcome.text, HasSubstr(std::string(peer == 1 ? "rank 1 has not" : "no rank has") +
                                          " sent it; look who sends to rank 0 with that tag"));
    });
  }
}

// Some ranks' buffers are registered and others' are not, in every combination.
TEST(ShmRegions, MixWithPrivateBuffers) {
  constexpr std::size_t kCount = 300'001;
  for (int registered = 0; registered < 8; ++registered) {
    Engine().Play(3, [&](Rank& rank) {
      std::vector<float> own(kCount);
      const bool region = (registered >> rank.rank() & 1) != 0;
      void* const memory = region ? rank.Alloc(kCount * sizeof(float)) : own.data();
      auto* const data = static_cast<float*>(memory);
      std::fill_n(data, kCount, static_cast<float>(rank.rank() + 1));
      const Outcome sum = rank.Do(AllreduceOp(data, data, kCount, DTRUN_FLOAT32, DTRUN_SUM));
      EXPECT_TRUE(sum.ok()) << sum;
      EXPECT_EQ(std::count(data, data + kCount, 6.0f), static_cast<std::ptrdiff_t>(kCount));
      dtrun_op op = AllreduceOp(nullptr, data, kCount, DTRUN_FLOAT32, 0);
      op.kind = DTRUN_BROADCAST;
      op.root = 1;
      std::fill_n(data, kCount, static_cast<float>(rank.rank()));
      EXPECT_TRUE(rank.Do(op).ok());
      EXPECT_EQ(std::count(data, data + kCount, 1.0f), static_cast<std::ptrdiff_t>(kCount));
      if (region) rank.Free(memory);
    });
  }
}

// Mappings in this process that are a rank's buffers.
std::ptrdiff_t MappedBuffers() {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  std::ptrdiff_t count = 0;
  while (std::getline(maps, line)) count += line.find("dtrun-buffer") != std::string::npos;
  return count;
}

TEST(ShmRegions, LeaveNoMappingWithTheOthersOnceTheyAreFreed) {
  constexpr std::size_t kCount = 40'000;
  Engine().Play(2, [](Rank& rank) {
    for (int round = 0; round < 200; ++round) {
      auto* const data = static_cast<float*>(rank.Alloc(kCount * sizeof(float)));
      std::fill_n(data, kCount, 1.0f);
      const Outcome sum = rank.Do(AllreduceOp(data, data, kCount, DTRUN_FLOAT32, DTRUN_SUM));
      ASSERT_TRUE(sum.ok()) << sum;
      ASSERT_EQ(data[kCount - 1], 2.0f) << round;
      rank.Free(data);
    }
    EXPECT_TRUE(rank.Barrier().ok());
    EXPECT_LT(MappedBuffers(), 20);
    EXPECT_TRUE(rank.Barrier().ok());
  });
}

// What rank `from` gives to rank `to`.
float Gift(int from, int to) { return static_cast<float>(1 + from + 10 * to); }

// Reduce, and the operations with a part of the operand for every rank, in every combination.
TEST(ShmRegions, MixWithPrivateBuffersWhereEveryRankGetsAPart) {
  constexpr std::size_t kPart = 50'001, kAll = 3 * kPart;
  for (int registered = 0; registered < 8; ++registered) {
    Engine().Play(3, [&](Rank& rank) {
      std::vector<float> own(2 * kAll);
      const bool region = (registered >> rank.rank() & 1) != 0;
      void* const memory = region ? rank.Alloc(2 * kAll * sizeof(float)) : own.data();
      auto* const send = static_cast<float*>(memory);
      float* const recv = send + kAll;
      const int me = rank.rank();
      const auto part = [](float* base, int r) { return base + static_cast<std::size_t>(r) * kPart; };
      const auto expect = [&](const float* data, float value, const char* what) {
        EXPECT_EQ(std::count(data, data + kPart, value), static_cast<std::ptrdiff_t>(kPart))
            << what << " on rank " << me << ", registered " << registered;
      };
      const auto run = [&](std::int32_t kind, float* to, std::size_t count, std::int32_t root,
                           std::int32_t reduce) {
        for (int r = 0; r < 3; ++r) std::fill_n(part(send, r), kPart, Gift(me, r));
        dtrun_op op = AllreduceOp(send, to, count, DTRUN_FLOAT32, reduce);
        op.kind = kind;
        op.root = root;
        if (kind == DTRUN_SCATTER && me != root) op.send = nullptr;
        if (kind == DTRUN_REDUCE && me != root) op.recv = nullptr;
        const Outcome outcome = rank.Do(op);
        EXPECT_TRUE(outcome.ok()) << outcome;
      };
      const float sum = Gift(0, me) + Gift(1, me) + Gift(2, me);
      run(DTRUN_REDUCE_SCATTER, recv, kPart, -1, DTRUN_SUM);
      expect(recv, sum, "reduce_scatter");
      run(DTRUN_REDUCE_SCATTER, part(send, me), kPart, -1, DTRUN_SUM);
      expect(part(send, me), sum, "reduce_scatter in place");
      for (float* const to : {recv, send}) {
        run(DTRUN_ALLTOALL, to, kPart, -1, 0);
        for (int r = 0; r < 3; ++r) expect(part(to, r), Gift(r, me), to == send ? "in place" : "alltoall");
      }
      run(DTRUN_SCATTER, recv, kPart, 1, 0);
      expect(recv, Gift(1, me), "scatter");
      run(DTRUN_REDUCE, recv, kAll, 2, DTRUN_SUM);
      for (int r = 0; r < 3 && me == 2; ++r) {
        expect(part(recv, r), Gift(0, r) + Gift(1, r) + Gift(2, r), "reduce");
      }
      if (region) rank.Free(memory);
    });
  }
}

std::set<std::string> SharedFiles() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) names.insert(entry.path());
  return names;
}

TEST(ShmEngine, HasNoNameInTheFileSystem) {
  const std::set<std::string> before = SharedFiles();
  Engine().Play(2, [&](Rank& rank) {
    EXPECT_TRUE(rank.Barrier().ok());
    for (const std::string& name : SharedFiles()) {
      EXPECT_TRUE(before.contains(name) || name.find("dtrun") == std::string::npos) << name;
    }
    EXPECT_TRUE(rank.Barrier().ok());
  });
}

}  // namespace
}  // namespace dtrun::conformance
