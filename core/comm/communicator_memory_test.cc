#include <gmock/gmock.h>

#include <algorithm>

#include "core/comm/testing/fixture.h"

namespace dtrun::comm {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

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
    const auto made = Comm().memory().Allocate(bytes);
    if (made.ok()) memory_ = *made;
    return CodeOf(made);
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
      Comm().memory().Free(memory_);
      EXPECT_THAT(fake_.memory, IsEmpty());
    }
  }
}

TEST_F(Memory, LeavesForeignMemoryAlone) {
  float mine = 1;
  ASSERT_EQ(Allocate(8), DTRUN_OK);
  Comm().memory().Free(&mine);
  EXPECT_EQ(fake_.memory.size(), 1u);
  Comm().memory().Free(memory_);
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
  EXPECT_THAT(error_.message, HasSubstr("alloc of 100 bytes on 'world': the fake says no"));
  EXPECT_EQ(Comm().Abort("enough", nullptr), DTRUN_OK);
  EXPECT_EQ(Allocate(100), DTRUN_ABORTED);
}

class Registration : public Memory {
 protected:
  dtrun_status Register(std::size_t from, std::uint64_t bytes, std::int32_t kind = DTRUN_DEVICE_HOST) {
    DTRUN_ERROR_INIT(error_);
    return CodeOf(Comm().memory().Register(mine_ + from, bytes, kind, kind == DTRUN_DEVICE_HOST ? -1 : 0));
  }
  char mine_[64] = {};
};

TEST_F(Registration, IsTheBackendsUntilItIsTakenBack) {
  ASSERT_EQ(Register(8, 16), DTRUN_OK) << error_.message;
  ASSERT_EQ(fake_.registered.size(), 1u);
  EXPECT_EQ(fake_.registered[0].first, mine_ + 8);
  EXPECT_EQ(fake_.registered[0].second.bytes, 16u);
  EXPECT_EQ(fake_.registered[0].second.alignment, 0u);
  EXPECT_EQ(fake_.registered[0].second.device_index, -1);
  Comm().memory().Deregister(mine_);  // not the registered address
  EXPECT_EQ(fake_.registered.size(), 1u);
  Comm().memory().Deregister(mine_ + 8);
  Comm().memory().Deregister(mine_ + 8);
  EXPECT_THAT(fake_.registered, IsEmpty());
  ASSERT_EQ(Register(8, 16), DTRUN_OK) << error_.message;
  comm_.reset();
  EXPECT_THAT(fake_.registered, IsEmpty()) << "it ends with its communicator";
}

TEST_F(Registration, NeverOverlaps) {
  ASSERT_EQ(Register(16, 16), DTRUN_OK);
  for (const auto& [from, bytes] : {std::pair{16, 16}, {8, 9}, {8, 40}, {31, 1}, {20, 2}}) {
    EXPECT_EQ(Register(static_cast<std::size_t>(from), static_cast<std::uint64_t>(bytes)),
              DTRUN_INVALID_ARGUMENT)
        << from;
    EXPECT_THAT(error_.message, HasSubstr("overlap the 16 bytes at"));
  }
  EXPECT_EQ(Register(8, 8), DTRUN_OK) << error_.message;
  EXPECT_EQ(Register(32, 8), DTRUN_OK) << error_.message;
  EXPECT_EQ(fake_.registered.size(), 3u);
}

TEST_F(Registration, NeedsNothingOfTheBackend) {
  full_ = false;
  EXPECT_EQ(Register(0, 8), DTRUN_OK) << error_.message;
  Comm().memory().Deregister(mine_);
}

TEST_F(Registration, SaysWhatIsWrong) {
  EXPECT_EQ(Register(0, 0), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("register: 0 bytes at 0x"));
  EXPECT_EQ(Register(0, UINT64_MAX), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(Register(0, 8, DTRUN_DEVICE_CUDA), DTRUN_FAILED_PRECONDITION);
  EXPECT_THAT(error_.message, HasSubstr("not connected to a device yet"));
  for (const std::int32_t kind : {-1, 4, 31, 63, 99}) {
    EXPECT_EQ(Register(0, 8, kind), DTRUN_INVALID_ARGUMENT);
    EXPECT_THAT(error_.message, StartsWith("register: device_kind is " + std::to_string(kind)));
  }
  fake_.enqueue_status = DTRUN_OUT_OF_MEMORY;
  EXPECT_EQ(Register(0, 8), DTRUN_OUT_OF_MEMORY);
  EXPECT_THAT(error_.message, HasSubstr("on 'world': the fake says no"));
  fake_.enqueue_status = DTRUN_OK;
  EXPECT_EQ(Register(0, 8), DTRUN_OK) << "a registration that failed is none";
}

}  // namespace
}  // namespace dtrun::comm
