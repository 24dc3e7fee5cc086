#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "core/comm/testing/fake_devices.h"
#include "core/comm/testing/fixture.h"
#include "core/comm/testing/local_spaces.h"

namespace dtrun::comm {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OnDevices : public testing::CommunicatorTest {
 protected:
  OnDevices() {
    fake_.caps.device_kinds = 1u << DTRUN_DEVICE_HOST | 1u << DTRUN_DEVICE_CUDA;
    devices_.carrier.mem_alloc = nullptr;
    devices_.carrier.mem_free = nullptr;
    devices_.carrier.req_wait_stream = [](dtrun_request*, const dtrun_stream*, dtrun_error*) -> dtrun_status {
      ++stream_waits_;
      return DTRUN_OK;
    };
    devices_.memory = {{a_, 0}, {b_, 0}};
    stream_waits_ = 0;
  }
  Making AMaking() override {
    Making making = CommunicatorTest::AMaking();
    making.devices = &devices_;
    return making;
  }
  static dtrun_stream Stream(std::int32_t kind = DTRUN_DEVICE_CUDA, std::int32_t index = 0) {
    dtrun_stream stream;
    DTRUN_INIT(stream);
    stream.device_kind = kind;
    stream.device_index = index;
    return stream;
  }
  dtrun_status On(const dtrun_stream& stream, dtrun_op op, dtrun_work** work = nullptr) {
    DTRUN_ERROR_INIT(error_);
    return Comm().StartOnStream(op, stream, work, &error_);
  }
  std::size_t Released() {
    const std::lock_guard lock(fake_.mutex);
    return static_cast<std::size_t>(fake_.released);
  }
  void AwaitReleased(std::size_t count) {
    while (Released() < count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  testing::FakeDevices devices_;
  static inline std::atomic<int> stream_waits_ = 0;
};

TEST_F(OnDevices, CountWithTheHostsCallsAndAreLetGoWhenTheyEnd) {
  fake_.complete_at_once = false;
  EXPECT_EQ(On(Stream(), Op()), DTRUN_OK) << error_.message;  // no thread waits
  EXPECT_EQ(fake_.created.size(), 2u) << "the host's communicator and the device's";
  fake_.complete_at_once = true;
  devices_.memory.clear();
  EXPECT_EQ(Run(Op()), DTRUN_OK) << error_.message;
  EXPECT_EQ(fake_.ops.at(0).sequence, 2u) << "the first connects";
  EXPECT_EQ(fake_.ops.at(1).sequence, 3u);
  EXPECT_EQ(Released(), 1u) << "the first still runs";
  fake_.Complete(0);
  AwaitReleased(2);
}

TEST_F(OnDevices, AFailureThatNoCallAsksForEndsTheCommunicator) {
  fake_.complete_at_once = false;
  EXPECT_EQ(On(Stream(), Op()), DTRUN_OK) << error_.message;
  fake_.Complete(0, DTRUN_REMOTE_FAILURE, "rank 1 is gone", 1);
  while (Comm().Usable().ok()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(On(Stream(), Op()), DTRUN_REMOTE_FAILURE);
  EXPECT_THAT(error_.message, HasSubstr("rank 1 is gone"));
  const std::lock_guard lock(reports_mutex_);
  EXPECT_THAT(reports_, ElementsAre("comm.peer_failed of 1"));
}

// Its streams go on, but the program may wait for something else.
TEST_F(OnDevices, WhoseFailureTheProgramDoesNotComeToHearOfTellIt) {
  std::promise<std::string> ended;
  Making making = AMaking();
  making.timeout = std::chrono::milliseconds(5);
  making.unheard = [&](const std::string& what) { ended.set_value(what); };
  comm_ = std::move(dtrun_comm::Create(std::move(making))).value();
  fake_.complete_at_once = false;
  dtrun_op op = Op();
  op.timeout_ns = -1;
  ASSERT_EQ(On(Stream(), op), DTRUN_OK) << error_.message;
  fake_.Complete(0, DTRUN_REMOTE_FAILURE, "rank 1 is gone", 1);
  EXPECT_THAT(
      ended.get_future().get(),
      AllOf(HasSubstr("rank 1 is gone"), HasSubstr("rank 0 has made no call on 'world' in the 5ms since")));
}

TEST_F(OnDevices, WhatIsOrderedBeforeAStreamIsReleasedWithoutAWait) {
  fake_.complete_at_once = false;
  dtrun_work* work = nullptr;
  ASSERT_EQ(On(Stream(), Op(), &work), DTRUN_OK) << error_.message;
  EXPECT_EQ(Comm().WaitOnStream(*work, Stream(), &error_), DTRUN_OK) << error_.message;
  EXPECT_EQ(stream_waits_, 1);
  Comm().Release(work);  // would hang here
  fake_.Complete(0);
  AwaitReleased(1);
}

TEST_F(OnDevices, RunToTheirEndBeforeTheCommunicatorGoes) {
  fake_.complete_at_once = false;
  ASSERT_EQ(On(Stream(), Op()), DTRUN_OK) << error_.message;
  std::thread late([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    fake_.Complete(0);
  });
  comm_.reset();
  late.join();
  EXPECT_EQ(fake_.aborts, 0) << "a stream's work is not cut off by the end of the program";
  EXPECT_EQ(fake_.destroyed, 2);
}

TEST_F(OnDevices, ADeadlineThatPassesIsAFailureWithoutAnybodyWaiting) {
  fake_.complete_at_once = false;
  Making making = AMaking();
  making.timeout = std::chrono::milliseconds(5);
  making.patience = std::chrono::milliseconds(5);
  comm_ = std::move(dtrun_comm::Create(std::move(making))).value();
  ASSERT_EQ(On(Stream(), Op()), DTRUN_OK) << error_.message;
  while (Comm().Usable().ok()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(On(Stream(), Op()), DTRUN_TIMEOUT);
  EXPECT_GT(fake_.aborts, 0);
}

TEST_F(OnDevices, RefuseBuffersThatAreNotTheStreams) {
  devices_.memory = {{a_, 1}};
  EXPECT_EQ(On(Stream(), Op()), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("the send buffer"));
  EXPECT_THAT(error_.message, HasSubstr("on cuda 1, and the stream on cuda 0"));
  devices_.memory = {{a_, 0}};
  EXPECT_EQ(On(Stream(), Op()), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("the recv buffer"));
  EXPECT_THAT(error_.message, HasSubstr("host memory, and the stream is of cuda 0"));
  EXPECT_TRUE(fake_.ops.empty());
  devices_.memory = {{a_, 0}};
  EXPECT_EQ(Run(Op()), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("is on cuda 0; give the call a stream of it"));
  devices_.memory = {{a_, 0}, {b_, -1}};  // moved by the library
  EXPECT_EQ(On(Stream(), Op()), DTRUN_OK) << error_.message;
}

TEST_F(OnDevices, RefuseAnotherDeviceAndOneThatIsNotThere) {
  EXPECT_EQ(On(Stream(DTRUN_DEVICE_CUDA, 2), Op()), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("there is no cuda 2: this process has 2 of them, from 0"));
  EXPECT_THAT(error_.message, HasSubstr("; use the index of one of these"));
  EXPECT_EQ(On(Stream(DTRUN_DEVICE_ROCM), Op()), DTRUN_UNSUPPORTED);
  EXPECT_EQ(On(Stream(99), Op()), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(On(Stream(), Op()), DTRUN_OK) << error_.message;
  EXPECT_EQ(On(Stream(DTRUN_DEVICE_CUDA, 1), Op()), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("'world' is connected to cuda 0"));
}

TEST_F(OnDevices, AreNotTheHost) {
  DTRUN_ERROR_INIT(error_);
  EXPECT_EQ(CodeOf(Comm().devices().Connect(DTRUN_DEVICE_HOST, 0)), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message,
              HasSubstr("device_kind is DTRUN_DEVICE_HOST, but host memory needs no connection"));
  EXPECT_EQ(CodeOf(Comm().devices().Connect(63, 0)), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("device_kind is 63; expected DTRUN_DEVICE_CUDA (1), "));
}

TEST_F(OnDevices, AStreamWaitsForNoWorkOfTheHostEvenIfItHasEnded) {
  for (const bool ended : {true, false}) {
    fake_.complete_at_once = ended;
    dtrun_work* const work = Begin();
    EXPECT_EQ(Comm().WaitOnStream(*work, Stream(), &error_), DTRUN_INVALID_ARGUMENT) << ended;
    EXPECT_THAT(error_.message, HasSubstr("moves host memory, which no stream waits for; use work_wait"));
    if (!ended) fake_.Complete(fake_.requests.size() - 1);
    Comm().Release(work);
  }
}

TEST_F(OnDevices, OfWhichTheProcessSeesSomeAreCountedAmongThose) {
  ASSERT_EQ(::setenv("CUDA_VISIBLE_DEVICES", "MIG-1111,MIG-2222", 1), 0);
  EXPECT_EQ(On(Stream(DTRUN_DEVICE_CUDA, 2), Op()), DTRUN_INVALID_ARGUMENT);
  ASSERT_EQ(::unsetenv("CUDA_VISIBLE_DEVICES"), 0);
  EXPECT_THAT(error_.message,
              HasSubstr("has 2 of them, from 0 (CUDA_VISIBLE_DEVICES=MIG-1111,MIG-2222); use"));
}

TEST_F(OnDevices, AMessageBeforeAllAreConnectedIsRefused) {
  EXPECT_EQ(On(Stream(), Op(DTRUN_SEND)), DTRUN_FAILED_PRECONDITION);
  EXPECT_THAT(error_.message, HasSubstr("call connect on all first"));
  EXPECT_EQ(CodeOf(Comm().devices().Connect(DTRUN_DEVICE_CUDA, 0)), DTRUN_OK) << error_.message;
  EXPECT_EQ(On(Stream(), Op(DTRUN_SEND)), DTRUN_OK) << error_.message;
}

TEST_F(OnDevices, ConnectingHasANumberThatARefusalKeeps) {
  EXPECT_EQ(On(Stream(DTRUN_DEVICE_CUDA, 2), Op()), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(Comm().devices().Connect(DTRUN_DEVICE_CUDA, 0)), DTRUN_OK) << error_.message;
  EXPECT_EQ(CodeOf(Comm().devices().Connect(DTRUN_DEVICE_CUDA, 0)), DTRUN_OK) << "which calls nothing";
  EXPECT_EQ(On(Stream(), Op()), DTRUN_OK) << error_.message;
  EXPECT_EQ(fake_.ops.at(0).sequence, 3u);
}

TEST_F(OnDevices, OnACapturedStreamAreDetachedOrRefused) {
  devices_.capturing = true;
  EXPECT_EQ(On(Stream(), Op()), DTRUN_UNSUPPORTED);
  EXPECT_THAT(error_.message, HasSubstr("being captured into a graph"));
  fake_.caps.features |= DTRUN_CAP_CAPTURE | DTRUN_CAP_DETACHED;
  comm_.reset();
  EXPECT_EQ(On(Stream(), Op()), DTRUN_OK) << error_.message;
  EXPECT_EQ(fake_.ops.back().flags, static_cast<std::uint32_t>(DTRUN_OP_DETACHED));
  dtrun_work* work = nullptr;
  EXPECT_EQ(On(Stream(), Op(), &work), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("give NULL for work"));
}

TEST_F(OnDevices, GroupsHoldBothKindsOfMemory) {
  fake_.complete_at_once = false;
  ASSERT_EQ(CodeOf(Comm().devices().Connect(DTRUN_DEVICE_CUDA, 0)), DTRUN_OK) << error_.message;
  ASSERT_EQ(Comm().GroupBegin(&error_), DTRUN_OK);
  EXPECT_EQ(On(Stream(), Op()), DTRUN_OK) << error_.message;
  EXPECT_EQ(On(Stream(), Op(DTRUN_SEND)), DTRUN_OK) << error_.message;
  EXPECT_EQ(Comm().GroupEnd(nullptr, &error_), DTRUN_OK) << error_.message;  // its stream waits, not the host
  EXPECT_EQ(fake_.group_begins, 1);
  EXPECT_EQ(fake_.group_ends, 1);
  fake_.Complete(1);
  fake_.Complete(0);
  AwaitReleased(2);
}

TEST_F(OnDevices, MemoryComesFromTheDeviceWhereTheBackendHasNone) {
  EXPECT_EQ(CodeOf(Comm().memory().AllocateOn(64, DTRUN_DEVICE_CUDA, 0)), DTRUN_FAILED_PRECONDITION);
  ASSERT_EQ(CodeOf(Comm().devices().Connect(DTRUN_DEVICE_CUDA, 0)), DTRUN_OK) << error_.message;
  const auto made = Comm().memory().AllocateOn(64, DTRUN_DEVICE_CUDA, 0);
  ASSERT_TRUE(made.ok()) << made.error().text;
  void* const memory = *made;
  EXPECT_EQ(devices_.allocated, 1);
  Comm().memory().Free(memory);
  EXPECT_EQ(devices_.allocated, 0);
}

TEST_F(OnDevices, RanksThatMoveOtherMemoryAreNamed) {
  testing::LocalSpaces spaces;
  const auto kv = spaces.Space("device/");
  ASSERT_TRUE(kv->Set("route/1", "0 rocm memory by nccl").ok());
  Making making = AMaking();
  making.rank = 1;
  making.device_kv = kv.get();
  comm_ = std::move(dtrun_comm::Create(std::move(making))).value();
  EXPECT_EQ(On(Stream(), Op()), DTRUN_MISMATCH);
  EXPECT_THAT(error_.message,
              HasSubstr("rank 0 moves rocm memory by nccl, and rank 1 moves cuda memory by fake"));
  EXPECT_EQ(Run(Op()), DTRUN_MISMATCH) << "the others are on their way";
  comm_.reset();
}

}  // namespace
}  // namespace dtrun::comm
