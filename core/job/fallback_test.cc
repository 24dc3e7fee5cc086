#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/failures/finding.h"
#include "core/job/joining_hosts.h"

namespace dtrun::job {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr const char* kError217 = "CUDA error: peer access is not supported between these two devices";
constexpr const char* kShmFull =
    "misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-x to 9637892 bytes";

bool Nothing(std::string_view) { return false; }

// One of two ranks has failed and printed `text`.
verdict::Facts FailedWith(const std::string& text) {
  verdict::Facts facts;
  facts.ranks.resize(2);
  for (int i = 0; i < 2; ++i) facts.ranks[static_cast<std::size_t>(i)].rank = i;
  facts.first_failed = 1;
  facts.ranks[1].ending = process::Ending{.code = 1};
  const auto findings = failures::FindFailures(text);
  if (!findings.empty()) facts.ranks[1].known = failures::LogFinding{*failures::Foremost(findings), {}, true};
  return facts;
}

plan::Plan NcclJob() {
  plan::Plan plan;
  plan.backend = "nccl";
  plan.processes.resize(2);
  return plan;
}

TEST(Fallback, LeavesPeerAccessFirst) {
  const auto fallback = NextFallback(FailedWith(kError217), NcclJob(), Nothing);
  ASSERT_TRUE(fallback);
  EXPECT_THAT(fallback->variables, ElementsAre(Pair("NCCL_P2P_DISABLE", "1"), Pair("UCX_TLS", "^cuda_ipc"),
                                               Pair("DTRUN_P2P", "off")));
  EXPECT_THAT(fallback->line, HasSubstr("rank 1: CUDA error 217"));
}

TEST(Fallback, LeavesHostMemoryNext) {
  const auto fallback = NextFallback(FailedWith(kShmFull), NcclJob(), Nothing);
  ASSERT_TRUE(fallback);
  EXPECT_THAT(fallback->variables, ElementsAre(Pair("NCCL_SHM_DISABLE", "1")));
}

TEST(Fallback, KeepsPeerAccessWhereOnlyHostMemoryIsDivided) {
  const auto fallback = NextFallback(
      FailedWith("NCCL WARN Error while attaching to shared memory segment /dev/shm/nccl-x (size 9637888)"),
      NcclJob(), Nothing);
  ASSERT_TRUE(fallback);
  EXPECT_THAT(fallback->variables, ElementsAre(Pair("NCCL_SHM_DISABLE", "1")));
}

TEST(Fallback, StaysWhereTheUserHasDecided) {
  EXPECT_FALSE(NextFallback(FailedWith(kError217), NcclJob(),
                            [](std::string_view name) { return name == "NCCL_P2P_DISABLE"; }));
  plan::Plan plan = NcclJob();
  plan.processes[0].env["NCCL_P2P_DISABLE"] = "0";
  EXPECT_FALSE(NextFallback(FailedWith(kError217), plan, Nothing));
}

TEST(Fallback, GoesForProgramsThatUseNcclThemselves) {
  plan::Plan plan = NcclJob();
  plan.backend = "none";
  EXPECT_TRUE(NextFallback(FailedWith(kError217), plan, Nothing));
}

TEST(Fallback, LeavesTheTransportsOfUcxThatTheUserGave) {
  plan::Plan plan = NcclJob();
  plan.processes[1].env["UCX_TLS"] = "tcp,self";
  const auto fallback = NextFallback(FailedWith(kError217), plan, Nothing);
  ASSERT_TRUE(fallback);
  EXPECT_THAT(fallback->variables, ElementsAre(Pair("NCCL_P2P_DISABLE", "1"), Pair("DTRUN_P2P", "off")));
}

TEST(Fallback, TakesCudaIpcFromUcx) {
  const std::string text = std::string("UCX  ERROR cuIpcOpenMemHandle() failed: ") +
                           "peer access is not supported between these two devices";
  plan::Plan plan = NcclJob();
  plan.processes[0].env["NCCL_P2P_DISABLE"] = "1";  // does not concern UCX
  const auto fallback = NextFallback(FailedWith(text), plan, Nothing);
  ASSERT_TRUE(fallback);
  EXPECT_THAT(fallback->variables, ElementsAre(Pair("UCX_TLS", "^cuda_ipc"), Pair("DTRUN_P2P", "off")));
  plan.processes[0].env["UCX_TLS"] = "all";  // p2p = "on"
  EXPECT_FALSE(NextFallback(FailedWith(text), plan, Nothing));
}

TEST(Fallback, IsForThatKindOfFailureOnly) {
  EXPECT_FALSE(NextFallback(FailedWith("Traceback: something else"), NcclJob(), Nothing));
  verdict::Facts interrupted = FailedWith(kError217);
  interrupted.interrupt = 2;
  EXPECT_FALSE(NextFallback(interrupted, NcclJob(), Nothing));
}

}  // namespace
}  // namespace dtrun::job
