// Memory of devices, over a UCX that looks as if it was built with CUDA (testing/fake_ucx.cc): its device's
// memory faults when a processor touches it. Not run on a GPU.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "sdk/conformance/subject.h"
#include "testing/fake_cuda.h"

namespace dtrun::conformance {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Before the plugin looks for UCX.
void* const kUcx = dlopen(FAKE_UCX, RTLD_NOW | RTLD_GLOBAL);

template <class Function>
auto* Control(const char* name) {
  return reinterpret_cast<Function*>(dlsym(kUcx, name));
}
int Count(const char* name) { return Control<int()>(name)(); }

Subject Ucx(const std::map<std::string, std::string>& options = {}) {
  return Subject({UCX_PLUGIN_FILE, options});
}

// Elements on the device.
class Elements {
 public:
  Elements(std::size_t count, std::int32_t first)
      : count_(count), memory_(fake_cuda_alloc(count * 4 + 4096)) {
    std::iota(host(), host() + count, first);
  }
  std::int32_t* data() const { return reinterpret_cast<std::int32_t*>(memory_); }
  std::int32_t* host() const { return reinterpret_cast<std::int32_t*>(fake_cuda_alias(memory_)); }
  std::vector<std::int32_t> Values() const { return {host(), host() + count_}; }

 private:
  const std::size_t count_;
  char* const memory_;
};

std::vector<std::int32_t> From(std::int32_t first, std::size_t count) {
  std::vector<std::int32_t> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

class UcxDevices : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(kUcx, nullptr) << dlerror();
    Control<void(bool)>("fake_ucx_moves_cuda")(true);
  }
  void TearDown() override {
    EXPECT_EQ(Count("fake_ucx_faults"), 0) << "memory of another type than said, or a thread without context";
    EXPECT_EQ(Count("fake_ucx_registered"), 0);
    EXPECT_EQ(fake_cuda_current(), nullptr);
  }
};

bool Supports(const Subject& subject, std::int32_t kind, std::int32_t device_kind) {
  dtrun_support_query query;
  DTRUN_INIT(query);
  query.kind = kind;
  query.dtype = DTRUN_FLOAT32;
  query.reduce = kind == DTRUN_ALLREDUCE || kind == DTRUN_REDUCE ? DTRUN_SUM : 0;
  query.device_kind = device_kind;
  query.device_index = device_kind == DTRUN_DEVICE_HOST ? -1 : 0;
  return subject.table().query_support(subject.instance(), &query, nullptr) == DTRUN_OK;
}

TEST_F(UcxDevices, AreClaimedWhereUcxMovesTheirMemory) {
  const Subject subject = Ucx();
  const dtrun_backend_caps caps = subject.Caps();
  EXPECT_EQ(caps.device_kinds, 1u << DTRUN_DEVICE_HOST | 1u << DTRUN_DEVICE_CUDA);
  EXPECT_NE(caps.features & DTRUN_CAP_NO_STREAM, 0u);
  EXPECT_THAT(subject.LaunchInfo(1).facts.at("device"), StartsWith("direct (UCX with cuda)"));
  for (const std::int32_t kind : {DTRUN_SEND, DTRUN_RECV, DTRUN_BROADCAST, DTRUN_ALLGATHER, DTRUN_ALLGATHERV,
                                  DTRUN_GATHER, DTRUN_GATHERV, DTRUN_SCATTER, DTRUN_SCATTERV})
    EXPECT_TRUE(Supports(subject, kind, DTRUN_DEVICE_CUDA)) << kind;
  for (const std::int32_t kind :
       {DTRUN_ALLREDUCE, DTRUN_REDUCE, DTRUN_REDUCE_SCATTER, DTRUN_ALLTOALL, DTRUN_ALLTOALLV}) {
    EXPECT_FALSE(Supports(subject, kind, DTRUN_DEVICE_CUDA)) << kind;
    EXPECT_TRUE(Supports(subject, kind, DTRUN_DEVICE_HOST)) << kind;
  }
}

TEST_F(UcxDevices, AreNotClaimedOtherwise) {
  const Subject staged = Ucx({{"device_memory", "staged"}});
  EXPECT_EQ(staged.Caps().device_kinds, 1u << DTRUN_DEVICE_HOST);
  EXPECT_EQ(staged.Caps().features & DTRUN_CAP_NO_STREAM, 0u);
  EXPECT_EQ(staged.LaunchInfo(1).facts.at("device"), "staged, as backend.options.device_memory says");
  Control<void(bool)>("fake_ucx_moves_cuda")(false);
  const Subject without = Ucx({{"transports", "tcp,self"}});
  EXPECT_EQ(without.Caps().device_kinds, 1u << DTRUN_DEVICE_HOST);
  EXPECT_THAT(without.LaunchInfo(1).facts.at("device"), HasSubstr("the transports 'tcp,self' leave out"));
}

constexpr std::size_t kCounts[] = {1, 5000, 1 << 20};

TEST_F(UcxDevices, ExchangeMessages) {
  const int before = Count("fake_ucx_device_messages");
  Ucx().Play(2, [](Rank& rank) {
    for (const std::size_t count : kCounts) {
      const int other = 1 - rank.rank();
      const Elements sent(count, rank.rank());
      const Elements got(count, -7);
      const auto recv = rank.Start(RecvOp(got.data(), count, DTRUN_INT32, other, 1));
      EXPECT_TRUE(rank.Do(SendOp(sent.data(), count, DTRUN_INT32, other, 1)).ok());
      EXPECT_TRUE(recv->Wait().ok());
      EXPECT_EQ(got.Values(), From(other, count));
      // From the device into the host's memory.
      std::vector<std::int32_t> host(count);
      const auto send = rank.Start(SendOp(sent.data(), count, DTRUN_INT32, other, 2));
      EXPECT_TRUE(rank.Do(RecvOp(host.data(), count, DTRUN_INT32, other, 2)).ok());
      EXPECT_TRUE(send->Wait().ok());
      EXPECT_EQ(host, From(other, count));
      EXPECT_EQ(fake_cuda_current(), nullptr) << "a context stays on the caller's thread";
    }
  });
  EXPECT_EQ(Count("fake_ucx_device_messages") - before, 2 * 3 * 3);
}

dtrun_op Moving(std::int32_t kind, const void* send, void* recv, std::uint64_t count,
                std::int32_t root = -1) {
  dtrun_op op = MakeOp(kind);
  op.dtype = DTRUN_INT32;
  op.send = send;
  op.recv = recv;
  op.count = count;
  op.root = root;
  return op;
}

TEST_F(UcxDevices, TakeCollectivesWithoutAProcessor) {
  for (const std::uint32_t flags : {0u, static_cast<std::uint32_t>(DTRUN_OP_BLOCKING)}) {
    Ucx().Play(3, [flags](Rank& rank) {
      const auto does = [&](dtrun_op op) {
        op.flags |= flags;
        const Outcome outcome = rank.Do(op);
        EXPECT_TRUE(outcome.ok()) << outcome;
      };
      for (const std::size_t count : kCounts) {
        const std::size_t own = static_cast<std::size_t>(rank.rank()) * count;
        const bool root = rank.rank() == 1;
        const auto first = static_cast<std::int32_t>(own);
        const Elements part(count, first);
        const Elements all(3 * count, -7);
        does(Moving(DTRUN_ALLGATHER, part.data(), all.data(), count));
        EXPECT_EQ(all.Values(), From(0, 3 * count));
        const Elements in_place(3 * count, 0);
        does(Moving(DTRUN_ALLGATHER, in_place.data() + own, in_place.data(), count));
        EXPECT_EQ(in_place.Values(), From(0, 3 * count));
        const Elements gathered(3 * count, -7);
        does(Moving(DTRUN_GATHER, part.data(), root ? gathered.data() : nullptr, count, 1));
        EXPECT_EQ(gathered.Values(), From(root ? 0 : -7, 3 * count));
        const Elements scattered(count, -7);
        does(Moving(DTRUN_SCATTER, root ? gathered.data() : nullptr, scattered.data(), count, 1));
        EXPECT_EQ(scattered.Values(), From(first, count));
        const Elements spread(count, root ? 42 : 0);
        does(Moving(DTRUN_BROADCAST, nullptr, spread.data(), count, 1));
        EXPECT_EQ(spread.Values(), From(42, count));
        // Beside them, the host's as ever.
        std::vector<std::int32_t> host(count, 1);
        does(AllreduceOp(host.data(), host.data(), count, DTRUN_INT32, DTRUN_SUM));
        EXPECT_EQ(host, std::vector<std::int32_t>(count, 3));
      }
    });
  }
}

// A rank without elements has no pointer that would say where the others' are.
TEST_F(UcxDevices, TakeUnevenPartsOfWhichSomeAreEmpty) {
  Ucx().Play(3, [](Rank& rank) {
    const std::uint64_t counts[] = {3, 0, 4000};
    const std::uint64_t offsets[] = {4000, 0, 0};
    const std::uint64_t mine = counts[rank.rank()];
    const Elements part(4000, rank.rank() * 10);
    const Elements all(4003, -7);
    for (const bool scatter : {false, true}) {
      dtrun_op op = Moving(scatter ? DTRUN_SCATTERV : DTRUN_GATHERV, nullptr, nullptr, mine, 0);
      const bool root = rank.rank() == 0;
      void* const whole = root ? all.data() : nullptr;
      void* const own = mine > 0 ? part.data() : nullptr;
      op.send = scatter ? whole : own;
      op.recv = scatter ? own : whole;
      if (root) (scatter ? op.send_counts : op.recv_counts) = counts;
      if (root) (scatter ? op.send_offsets : op.recv_offsets) = offsets;
      const Outcome outcome = rank.Do(op);
      EXPECT_TRUE(outcome.ok()) << outcome;
      std::vector<std::int32_t> expected = From(20, 4000);
      for (const std::int32_t value : From(0, 3)) expected.push_back(value);
      if (root) {
        EXPECT_EQ(all.Values(), expected);
      }
      if (!scatter) std::fill(part.host(), part.host() + 4000, -1);
    }
    const std::int32_t first = rank.rank() * 10;
    for (std::uint64_t i = 0; i < mine; ++i) ASSERT_EQ(part.host()[i], first + static_cast<std::int32_t>(i));
  });
}

TEST_F(UcxDevices, RegisterTheirMemory) {
  const int before = Count("fake_ucx_with_handle");
  Ucx().Play(2, [](Rank& rank) {
    constexpr std::size_t kCount = 1 << 20;
    const Elements sent(kCount, rank.rank());
    const Elements got(kCount, -7);
    EXPECT_TRUE(rank.Register(sent.data(), kCount * 4, DTRUN_DEVICE_CUDA).ok());
    const int other = 1 - rank.rank();
    const auto recv = rank.Start(RecvOp(got.data(), kCount, DTRUN_INT32, other, 1));
    EXPECT_TRUE(rank.Do(SendOp(sent.data(), kCount, DTRUN_INT32, other, 1)).ok());
    EXPECT_TRUE(recv->Wait().ok());
    EXPECT_EQ(got.Values(), From(other, kCount));
    if (rank.rank() == 0) rank.Deregister(sent.data());  // the other's ends with the communicator
  });
  EXPECT_EQ(Count("fake_ucx_with_handle") - before, 2) << "the sends, and no receive";
}

}  // namespace
}  // namespace dtrun::conformance
