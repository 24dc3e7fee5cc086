// Operations that are captured into graphs, and what must not disturb a capture.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "cuda_program.h"
#include "fake.h"
#include "player.h"

namespace dtrun::nccl_test {
namespace {

using conformance::AllreduceOp;
using conformance::Outcome;
using conformance::Rank;
using conformance::RecvOp;
using conformance::SendOp;
using ::testing::HasSubstr;

using Values = std::vector<float>;
constexpr std::size_t kValues = 100;

class NcclCapture : public ::testing::Test {
 protected:
  // One stream of a rank; gone when its work has ended.
  class Stream {
   public:
    explicit Stream(const CudaProgram& cuda) : cuda_(cuda), stream_(cuda.MakeStream()) {}
    ~Stream() {
      cuda_.Synchronize(stream_);
      cuda_.Destroy(stream_);
    }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    operator void*() const { return stream_; }

   private:
    const CudaProgram& cuda_;
    void* const stream_;
  };

  Outcome Detached(dtrun_backend_comm* comm, dtrun_op op, void* stream) const {
    op.flags |= DTRUN_OP_DETACHED;
    return player_.StartDetached(comm, op, stream);
  }

  const Fake fake_;
  const CudaProgram cuda_{FAKE_CUDART_FILE};
  const Player player_{fake_.Backend()};
};

TEST_F(NcclCapture, RunsWhatWasCapturedAtEachLaunch) {
  player_.Play(3, [&](Rank& rank, dtrun_backend_comm* comm) {
    const Stream stream(cuda_);
    Values data(kValues), sum(kValues);
    cuda_.BeginCapture(stream);
    dtrun_op op = AllreduceOp(data.data(), sum.data(), kValues, DTRUN_FLOAT32, DTRUN_PREMUL_SUM);
    op.scale = 0.5;
    op.sequence = 1;
    EXPECT_TRUE(Detached(comm, op, stream).ok());
    const auto graph = cuda_.EndCapture(stream);
    ASSERT_NE(graph, nullptr);
    EXPECT_EQ(sum, Values(kValues)) << "it has run while it was captured";
    for (int round = 1; round <= 3; ++round) {
      data.assign(kValues, static_cast<float>(round * (rank.rank() + 1)));
      graph->Launch(stream);
      cuda_.Synchronize(stream);
      EXPECT_EQ(sum, Values(kValues, static_cast<float>(round) * 3)) << "round " << round;
    }
    EXPECT_TRUE(rank.Barrier().ok());  // which is no part of it
  });
  EXPECT_EQ(fake_.nccl().reductions, 0);
}

TEST_F(NcclCapture, AddsNothingButTheOperation) {
  player_.Play(1, [&](Rank&, dtrun_backend_comm* comm) {
    const Stream stream(cuda_);
    float value = 1;
    cuda_.BeginCapture(stream);
    const int events = fake_.cuda().events, waits = fake_.cuda().host_waits;
    EXPECT_TRUE(Detached(comm, AllreduceOp(&value, &value, 1, DTRUN_FLOAT32, DTRUN_SUM), stream).ok());
    EXPECT_EQ(fake_.cuda().events, events);
    EXPECT_EQ(fake_.cuda().host_waits, waits);
    const auto graph = cuda_.EndCapture(stream);
    ASSERT_NE(graph, nullptr);
  });
}

// The first operations are launched by a thread of NCCL: the capture must not end before.
TEST_F(NcclCapture, TakesAnOperationThatConnects) {
  fake_.nccl().launch_polls = 5;
  player_.Play(2, [&](Rank&, dtrun_backend_comm* comm) {
    const Stream stream(cuda_);
    Values data(kValues, 1);
    cuda_.BeginCapture(stream);
    EXPECT_TRUE(
        Detached(comm, AllreduceOp(data.data(), data.data(), kValues, DTRUN_FLOAT32, DTRUN_SUM), stream)
            .ok());
    const auto graph = cuda_.EndCapture(stream);
    ASSERT_NE(graph, nullptr);
    graph->Launch(stream);
    cuda_.Synchronize(stream);
    EXPECT_EQ(data, Values(kValues, 2));
  });
}

TEST_F(NcclCapture, TakesAGroupOfMessages) {
  constexpr dtrun_group_params kMessageGroup{sizeof(dtrun_group_params), 0};
  player_.Play(2, [&](Rank& rank, dtrun_backend_comm* comm) {
    const Stream stream(cuda_);
    Values mine(kValues), theirs(kValues);
    cuda_.BeginCapture(stream);
    ASSERT_EQ(player_.table().group_begin(comm, &kMessageGroup, nullptr), DTRUN_OK);
    const int peer = 1 - rank.rank();
    EXPECT_TRUE(Detached(comm, SendOp(mine.data(), kValues, DTRUN_FLOAT32, peer, 0), stream).ok());
    EXPECT_TRUE(Detached(comm, RecvOp(theirs.data(), kValues, DTRUN_FLOAT32, peer, 0), stream).ok());
    ASSERT_EQ(player_.table().group_end(comm, &kMessageGroup, nullptr), DTRUN_OK);
    const auto graph = cuda_.EndCapture(stream);
    ASSERT_NE(graph, nullptr);
    for (int round = 1; round <= 2; ++round) {
      mine.assign(kValues, static_cast<float>(10 * round + rank.rank()));
      graph->Launch(stream);
      cuda_.Synchronize(stream);
      EXPECT_EQ(theirs, Values(kValues, static_cast<float>(10 * round + peer)));
    }
  });
}

TEST_F(NcclCapture, RefusesWhatNeedsMemoryAndGoesOn) {
  player_.Play(2, [&](Rank& rank, dtrun_backend_comm* comm) {
    const Stream stream(cuda_);
    Values data(kValues, 1), other(kValues);
    cuda_.BeginCapture(stream);
    dtrun_op op = AllreduceOp(data.data(), data.data(), kValues / 2, DTRUN_FLOAT32, 0);
    op.kind = DTRUN_ALLTOALL;
    const Outcome refusal = Detached(comm, op, stream);
    EXPECT_EQ(refusal.code, DTRUN_UNSUPPORTED);
    EXPECT_THAT(refusal.text, HasSubstr("in place, nccl needs a copy of the buffer"));
    op.recv = other.data();
    EXPECT_TRUE(Detached(comm, op, stream).ok());
    const auto graph = cuda_.EndCapture(stream);
    ASSERT_NE(graph, nullptr) << "what was refused has touched the stream";
    graph->Launch(stream);
    cuda_.Synchronize(stream);
    EXPECT_EQ(other, Values(kValues, 1));
    EXPECT_TRUE(rank.Barrier().ok());
  });
}

// By default CUDA forbids every thread to ask about events while one captures.
TEST_F(NcclCapture, IsNotInvalidatedByAThreadThatLooksAfterAnOperation) {
  player_.Play(1, [&](Rank&, dtrun_backend_comm* comm) {
    const Stream stream(cuda_), captured(cuda_);
    Values data(kValues, 1);
    const dtrun_op op = AllreduceOp(data.data(), data.data(), kValues, DTRUN_FLOAT32, DTRUN_SUM);
    fake_.cuda().delay_us = 20'000;
    const auto pending = player_.Start(comm, op, stream);
    ASSERT_NE(pending, nullptr);
    cuda_.BeginCapture(captured, cuda::kCaptureGlobal);
    std::thread watch([&] {
      while (player_.table().req_test(pending->get(), nullptr) == DTRUN_PENDING) std::this_thread::yield();
    });
    watch.join();
    EXPECT_EQ(player_.table().req_test(pending->get(), nullptr), DTRUN_OK);
    EXPECT_NE(cuda_.EndCapture(captured), nullptr);
  });
}

TEST_F(NcclCapture, CannotWaitForWhatWasStartedOutside) {
  player_.Play(1, [&](Rank& rank, dtrun_backend_comm* comm) {
    const Stream stream(cuda_), captured(cuda_);
    Values data(kValues, 1);
    const auto pending =
        player_.Start(comm, AllreduceOp(data.data(), data.data(), kValues, DTRUN_FLOAT32, DTRUN_SUM), stream);
    ASSERT_NE(pending, nullptr);
    cuda_.BeginCapture(captured);
    EXPECT_EQ(player_.OrderAfter(*pending, captured), DTRUN_UNSUPPORTED);
    EXPECT_EQ(cuda_.EndCapture(captured), nullptr);
    EXPECT_TRUE(rank.Barrier().ok());
  });
}

// What the cases above rely on.
TEST(FakeCapture, IsInvalidatedAsTheModesSay) {
  const Fake fake;
  const CudaProgram cuda(FAKE_CUDART_FILE);
  void* const stream = cuda.MakeStream();
  const auto survives = [&](int mode, bool elsewhere) {
    cuda.BeginCapture(stream, mode);
    const auto allocate = [&] {
      try {
        cuda.Free(cuda.Allocate(1));
      } catch (const std::runtime_error&) {  // it may not
      }
    };
    elsewhere ? std::thread(allocate).join() : allocate();
    return cuda.EndCapture(stream) != nullptr;
  };
  EXPECT_FALSE(survives(cuda::kCaptureGlobal, false));
  EXPECT_FALSE(survives(cuda::kCaptureGlobal, true));
  EXPECT_FALSE(survives(cuda::kCaptureThreadLocal, false));
  EXPECT_TRUE(survives(cuda::kCaptureThreadLocal, true));
  EXPECT_TRUE(survives(cuda::kCaptureRelaxed, false));
  cuda.Destroy(stream);
}

}  // namespace
}  // namespace dtrun::nccl_test
