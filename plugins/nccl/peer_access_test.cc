// The trial runs here over the fake CUDA runtime, in a real child process.
#include "peer_access.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "plugins/nccl/testing/fake_control.h"

namespace dtrun::nccl_plugin {
namespace {

using nccl_fake::PeerFault;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using State = PeerPair::State;

class PeerAccess : public ::testing::Test {
 protected:
  PeerAccess() {
    void* const image = dlopen(FAKE_CUDART_FILE, RTLD_NOW | RTLD_LOCAL);
    fake_ = reinterpret_cast<nccl_fake::CudaControl* (*)()>(dlsym(image, "dtrun_fake_cuda"))();
    fake_->device_count = 2;
    cache_ = std::filesystem::temp_directory_path() / ("peer_access_test." + std::to_string(getpid()));
  }
  ~PeerAccess() override {
    fake_->Reset();
    std::filesystem::remove_all(cache_);
  }
  PeerReport Ask(std::chrono::nanoseconds limit = std::chrono::seconds(60),
                 std::chrono::nanoseconds copy_limit = std::chrono::seconds(60)) const {
    return AskPeers(
        {.cuda_library = FAKE_CUDART_FILE, .cache = cache_, .limit = limit, .copy_limit = copy_limit});
  }

  nccl_fake::CudaControl* fake_;
  std::filesystem::path cache_;
};

TEST_F(PeerAccess, IsProvenByACopy) {
  const PeerReport report = Ask();
  EXPECT_EQ(report.trouble, "");
  ASSERT_THAT(report.pairs, SizeIs(2));
  for (const PeerPair& pair : report.pairs) {
    EXPECT_EQ(pair.state, State::kProven) << pair.reason;
    EXPECT_GT(pair.bytes_per_second, 0);
  }
  EXPECT_TRUE(Judge(report).usable);
}

TEST_F(PeerAccess, IsNotTriedTwiceInOneBoot) {
  EXPECT_FALSE(Ask().cached);
  fake_->SetPeer(0, 1, PeerFault::kHang);
  const PeerReport again = Ask();
  EXPECT_TRUE(again.cached);
  EXPECT_THAT(again.pairs, SizeIs(2));
  EXPECT_THAT(Judge(again).reason, HasSubstr("found earlier"));
  fake_->device_count = 3;  // another machine
  fake_->SetPeer(0, 1, PeerFault::kNone);
  EXPECT_FALSE(Ask().cached);
}

TEST_F(PeerAccess, ThatIsClaimedAndFailsIsBroken) {
  fake_->SetPeer(0, 1, PeerFault::kUnsupported);
  const PeerVerdict verdict = Judge(Ask());
  EXPECT_FALSE(verdict.usable);
  EXPECT_THAT(verdict.reason, HasSubstr("GPU 1 (0000:02:00.0) cannot read GPU 0 (0000:01:00.0)"));
  EXPECT_THAT(verdict.reason, HasSubstr("peer access is not supported between these two devices"));
}

TEST_F(PeerAccess, ThatCorruptsIsBroken) {
  fake_->SetPeer(1, 0, PeerFault::kCorrupt);
  const PeerVerdict verdict = Judge(Ask());
  EXPECT_FALSE(verdict.usable);
  EXPECT_THAT(verdict.reason,
              HasSubstr("GPU 0 (0000:01:00.0) cannot read GPU 1 (0000:02:00.0): the copy arrives corrupt"));
}

TEST_F(PeerAccess, ThatCrawlsIsBroken) {
  fake_->SetPeer(0, 1, PeerFault::kSlow);
  const PeerReport report = Ask();
  ASSERT_THAT(report.pairs, SizeIs(2));
  EXPECT_EQ(report.pairs[0].state, State::kBroken);
  EXPECT_THAT(report.pairs[0].reason, HasSubstr("through the host"));
}

TEST_F(PeerAccess, ThatHangsIsBrokenAndEndedAtTheDeadline) {
  fake_->SetPeer(0, 1, PeerFault::kHang);
  const PeerVerdict verdict = Judge(Ask(std::chrono::seconds(3)));
  EXPECT_FALSE(verdict.usable);
  EXPECT_THAT(verdict.reason, HasSubstr("the copy did not end within 3 s"));
}

TEST_F(PeerAccess, ThatHangsIsEndedAtTheDeadlineOfOneCopy) {
  fake_->SetPeer(0, 1, PeerFault::kHang);
  const PeerReport report = Ask(std::chrono::seconds(60), std::chrono::seconds(1));
  ASSERT_THAT(report.pairs, SizeIs(1));
  EXPECT_EQ(VerdictText(report.pairs[0]), "broken: the copy did not end within 1 s");
}

TEST_F(PeerAccess, ThatKillsTheProcessIsBroken) {
  fake_->SetPeer(0, 1, PeerFault::kCrash);
  EXPECT_THAT(Judge(Ask()).reason, HasSubstr("the copy was killed: Aborted"));
}

TEST_F(PeerAccess, OneWayOnlyIsNotUsed) {
  fake_->SetPeer(0, 1, PeerFault::kRefused);
  const PeerVerdict verdict = Judge(Ask());
  EXPECT_FALSE(verdict.usable);
  EXPECT_THAT(verdict.reason, HasSubstr("the driver says that it cannot, though the other way it can"));
}

TEST_F(PeerAccess, ThatNvmlDeniesIsNotTried) {
  ASSERT_NE(dlopen(FAKE_NVML_FILE, RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
  setenv("DTRUN_FAKE_NVML_P2P", "4", 1);
  const PeerReport report = Ask();
  unsetenv("DTRUN_FAKE_NVML_P2P");
  ASSERT_THAT(report.pairs, SizeIs(2));
  EXPECT_EQ(report.pairs[0].state, State::kRefused);
  EXPECT_EQ(report.pairs[0].reason, "NVML says that it is disabled in the driver's settings");
}

TEST_F(PeerAccess, NeedsTwoDevices) {
  fake_->device_count = 1;
  EXPECT_EQ(Judge(Ask()).reason, "no peers");
  fake_->device_error = 35;
  const PeerReport none = Ask();
  EXPECT_TRUE(none.devices.empty());
  EXPECT_EQ(none.trouble, "");
}

TEST(PeerReport, OfATrialThatEndedBeforeTheFirstCopyIsTrouble) {
  const PeerReport report = ReadReport("device 0 a\ndevice 1 b\nopening 0\n", "did not end within 5 s");
  EXPECT_EQ(report.trouble, "the trial did not end within 5 s while it opened the GPUs");
}

}  // namespace
}  // namespace dtrun::nccl_plugin
