// Memory that the plugin gives out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fake.h"
#include "player.h"

namespace dtrun::nccl_test {
namespace {

using conformance::AllreduceOp;
using conformance::Outcome;
using conformance::Rank;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uint64_t kElements = 1000;
constexpr std::uint64_t kMemoryBytes = kElements * sizeof(float);

// How an allocation of device 0 ends; a success is in `out`.
Outcome AllocateHere(const Player& player, dtrun_backend_comm* comm, std::uint64_t bytes, void** out) {
  dtrun_mem_params params;
  DTRUN_INIT(params);
  params.bytes = bytes;
  params.alignment = 256;
  params.device_kind = DTRUN_DEVICE_CUDA;
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  const dtrun_status status = player.table().mem_alloc(comm, &params, out, &error);
  return status == DTRUN_OK ? Outcome{} : Outcome{status, error.peer, error.message};
}

// Sums in it on two ranks; `while_there` runs on each before it is freed.
void SumInIt(const Fake& fake, const std::function<void()>& while_there) {
  const Player player(fake.Backend());
  player.Play(2, [&](Rank& rank, dtrun_backend_comm* comm) {
    void* memory = nullptr;
    ASSERT_TRUE(AllocateHere(player, comm, kMemoryBytes, &memory).ok());
    auto* const data = static_cast<float*>(memory);
    EXPECT_EQ(std::count(data, data + kElements, 0.0F), static_cast<std::ptrdiff_t>(kElements))
        << "it is not clear";
    std::fill_n(data, kElements, static_cast<float>(rank.rank() + 1));
    EXPECT_TRUE(rank.Do(AllreduceOp(data, data, kElements, DTRUN_FLOAT32, DTRUN_SUM)).ok());
    EXPECT_EQ(std::count(data, data + kElements, 3.0F), static_cast<std::ptrdiff_t>(kElements));
    rank.Meet("summed");
    if (rank.rank() == 0) while_there();
    rank.Meet("looked");
    player.table().mem_free(comm, memory);
  });
}

TEST(NcclMemory, IsNcclsOwnAndRegistered) {
  const Fake fake;
  SumInIt(fake, [&] {
    EXPECT_EQ(fake.nccl().blocks, 2);
    EXPECT_EQ(fake.nccl().registrations, 2);
  });
  EXPECT_EQ(fake.nccl().blocks, 0);
  EXPECT_EQ(fake.nccl().registrations, 0);
}

TEST(NcclMemory, IsTheRuntimesWhereNcclHasNone) {
  const auto neither = [](const Fake& fake) {
    SumInIt(fake, [&] {
      EXPECT_EQ(fake.nccl().blocks, 0);
      EXPECT_EQ(fake.nccl().registrations, 0);
    });
  };
  neither(Fake(LEAN_NCCL_FILE));
  const Fake old;
  old.nccl().version = nccl_plugin::nccl::Version(2, 18, 6);
  neither(old);
}

TEST(NcclMemory, ServesWhereNcclCannotAllocateOrRegister) {
  const Fake fake;
  fake.nccl().memory_result = nccl_plugin::nccl::kUnhandledCudaError;
  SumInIt(fake, [&] { EXPECT_EQ(fake.nccl().registrations, 2) << "that of the runtime can be registered"; });
  fake.nccl().memory_result = 0;
  fake.nccl().register_result = nccl_plugin::nccl::kInvalidUsage;
  SumInIt(fake, [&] { EXPECT_EQ(fake.nccl().blocks, 2); });
  EXPECT_EQ(fake.nccl().blocks, 0);
}

TEST(NcclMemory, ThatIsShortIsNamed) {
  const Fake fake;
  const Player player(fake.Backend());
  player.Play(1, [&](Rank& rank, dtrun_backend_comm* comm) {
    fake.cuda().device_bytes_left = 1000;
    void* memory = nullptr;
    const Outcome outcome = AllocateHere(player, comm, 4096, &memory);
    EXPECT_EQ(outcome.code, DTRUN_OUT_OF_MEMORY);
    EXPECT_THAT(outcome.text, AllOf(HasSubstr("cannot allocate 4096 bytes of the device: 'out of memory'"),
                                    HasSubstr("nvidia-smi")));
    fake.cuda().device_bytes_left = -1;
    EXPECT_TRUE(rank.Barrier().ok()) << "and the communicator goes on";
  });
}

TEST(NcclMemory, OfTheProgramIsRegistered) {
  const Fake fake;
  const Player player(fake.Backend());
  player.Play(1, [&](Rank& rank, dtrun_backend_comm* comm) {
    float values[64] = {};
    dtrun_mem_params params;
    DTRUN_INIT(params);
    params.bytes = sizeof values;
    params.device_kind = DTRUN_DEVICE_CUDA;
    dtrun_error error;
    DTRUN_ERROR_INIT(error);
    EXPECT_EQ(player.table().mem_register(comm, &params, values, &error), DTRUN_OK) << error.message;
    EXPECT_EQ(fake.nccl().registrations, 1);
    EXPECT_TRUE(rank.Do(AllreduceOp(values, values, 64, DTRUN_FLOAT32, DTRUN_SUM)).ok());
    player.table().mem_deregister(comm, values);
    EXPECT_EQ(fake.nccl().registrations, 0);
    fake.nccl().register_result = nccl_plugin::nccl::kInvalidUsage;
    EXPECT_EQ(player.table().mem_register(comm, &params, values, &error), DTRUN_VENDOR);
    EXPECT_TRUE(rank.Barrier().ok());
    player.table().mem_deregister(comm, values);
  });
}

TEST(NcclMemory, GoesWithTheCommunicatorAlsoAfterAnAbort) {
  const Fake fake;
  const Player player(fake.Backend());
  player.Play(1, [&](Rank& rank, dtrun_backend_comm* comm) {
    void* kept = nullptr;
    void* freed = nullptr;
    ASSERT_TRUE(AllocateHere(player, comm, kMemoryBytes, &kept).ok());
    ASSERT_TRUE(AllocateHere(player, comm, kMemoryBytes, &freed).ok());
    rank.Abort("enough");
    player.table().mem_free(comm, freed);
    EXPECT_EQ(AllocateHere(player, comm, kMemoryBytes, &freed).code, DTRUN_ABORTED);
  });
  EXPECT_EQ(fake.nccl().blocks, 0);
}

}  // namespace
}  // namespace dtrun::nccl_test
