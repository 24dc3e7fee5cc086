#include <gmock/gmock.h>

#include <algorithm>

#include "core/comm/testing/fixture.h"

namespace dtrun::comm {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Memory : public testing::CommunicatorTest {
 protected:
  Making AMaking() override {
    Making making = CommunicatorTest::AMaking();
    if (full_) making.backend = testing::Fake::FullTable();
    return making;
  }
  dtrun_status Allocate(std::uint64_t bytes) {
    DTRUN_ERROR_INIT(error_);
    memory_ = nullptr;
    return Comm().Allocate(bytes, &memory_, &error_);
  }
  bool full_ = true;
  void* memory_ = nullptr;
};

TEST_F(Memory, IsAlignedAndZeroedWithAndWithoutTheBackends) {
  for (const bool full : {true, false}) {
    full_ = full;
    comm_.reset();
    for (const std::uint64_t bytes : {0, 1, 64, 1000}) {
      ASSERT_EQ(Allocate(bytes), DTRUN_OK) << error_.message;
      ASSERT_NE(memory_, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory_) % 64, 0u);
      const char* first = static_cast<const char*>(memory_);
      EXPECT_TRUE(std::all_of(first, first + bytes, [](char c) { return c == 0; }));
      EXPECT_EQ(fake_.memory.size(), full ? 1u : 0u);
      Comm().Free(memory_);
      EXPECT_THAT(fake_.memory, IsEmpty());
    }
  }
}

TEST_F(Memory, LeavesForeignMemoryAlone) {
  float mine = 1;
  ASSERT_EQ(Allocate(8), DTRUN_OK);
  Comm().Free(&mine);
  EXPECT_EQ(fake_.memory.size(), 1u);
  Comm().Free(memory_);
}

TEST_F(Memory, GoesWithItsCommunicator) {
  ASSERT_EQ(Allocate(8), DTRUN_OK);
  ASSERT_EQ(Allocate(8), DTRUN_OK);
  EXPECT_EQ(fake_.memory.size(), 2u);
  comm_.reset();
  EXPECT_THAT(fake_.memory, IsEmpty());
}

TEST_F(Memory, IsRefusedInAbsurdAmounts) {
  EXPECT_EQ(Allocate(UINT64_MAX), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("18446744073709551615 bytes do not fit into memory"));
}

TEST_F(Memory, SaysWhyTheBackendHasNone) {
  fake_.enqueue_status = DTRUN_OUT_OF_MEMORY;
  EXPECT_EQ(Allocate(100), DTRUN_OUT_OF_MEMORY);
  EXPECT_THAT(error_.message, HasSubstr("dtrun_alloc of 100 bytes on 'world': the fake says no"));
  EXPECT_EQ(Comm().Abort("enough", nullptr), DTRUN_OK);
  EXPECT_EQ(Allocate(100), DTRUN_ABORTED);
}

}  // namespace
}  // namespace dtrun::comm
