// What goes wrong around nccl: libraries, devices, versions, errors that NCCL reports.
#include "fake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "player.h"
#include "plugins/nccl/nccl_abi.h"

namespace dtrun::nccl_test {
namespace {

using conformance::AllreduceOp;
using conformance::kPatience;
using conformance::MakeOp;
using conformance::Outcome;
using conformance::Rank;
using conformance::Subject;
using conformance::ThreadKv;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// How rank `rank` of a world of one fails to join.
Outcome JoinAlone(const Subject& subject) {
  ThreadKv kv;
  Outcome outcome;
  EXPECT_EQ(subject.Join(&kv, 0, 1, kPatience, &outcome), nullptr);
  return outcome;
}

TEST(NcclLibrary, ThatIsTooOldIsRefusedWithBothVersionsAndItsPath) {
  const Fake fake;
  fake.nccl().version = 21403;
  EXPECT_THAT(RefusalOf(fake.Backend()),
              AllOf(HasSubstr("NCCL 2.14.3"), HasSubstr(FAKE_NCCL_FILE), HasSubstr("needed is 2.18.0")));
}

TEST(NcclLibrary, ThatLacksAFunctionIsRefusedByItsName) {
  const Fake fake;
  conformance::BackendUnderTest backend = fake.Backend();
  backend.options["library"] = BROKEN_NCCL_FILE;
  EXPECT_THAT(RefusalOf(backend), AllOf(HasSubstr("'ncclSend'"), HasSubstr(BROKEN_NCCL_FILE)));
}

TEST(NcclLibrary, ThatIsNotThereIsRefusedInTheLoadersWords) {
  const Fake fake;
  conformance::BackendUnderTest backend = fake.Backend();
  backend.options["library"] = "/nowhere/libnccl.so.2";
  EXPECT_THAT(RefusalOf(backend), AllOf(HasSubstr("/nowhere/libnccl.so.2"), HasSubstr("No such file"),
                                        HasSubstr("backend.nccl.library")));
}

TEST(NcclLibrary, OfTheProgramIsTakenBeforeAnyOther) {
  const Fake fake;  // loads it
  const Subject subject({NCCL_PLUGIN_FILE, {}});
  const Subject::Launch launch = subject.LaunchInfo(1);
  EXPECT_EQ(launch.facts.at("library"), "NCCL 2.28.9 (the program's own)");
  EXPECT_EQ(launch.facts.at("library_path"), FAKE_NCCL_FILE);
}

TEST(NcclLaunch, ReportsDeviceAndInterface) {
  const Fake fake;
  const Subject::Launch launch = Subject(fake.Backend()).LaunchInfo(1);
  EXPECT_EQ(launch.facts.at("device"), "1 CUDA device at 0000:01:00.0, driver for CUDA 13.0");
  EXPECT_EQ(launch.facts.at("interface"), "lo 127.0.0.1 (chosen by NCCL)");
  EXPECT_THAT(launch.env, IsEmpty());
}

TEST(NcclLaunch, TurnsOptionsIntoNcclsVariables) {
  const Fake fake;
  const Subject subject(
      fake.Backend({{"interface", "127.0.0.1"}, {"p2p", "off"}, {"shm", "on"}, {"rdma", "off"}}));
  const Subject::Launch launch = subject.LaunchInfo(2);
  EXPECT_THAT(launch.env, UnorderedElementsAre(Pair("NCCL_SOCKET_IFNAME", "=lo"),
                                               Pair("NCCL_P2P_DISABLE", "1"), Pair("NCCL_SHM_DISABLE", "0"),
                                               Pair("NCCL_IB_DISABLE", "1"), Pair("DTRUN_P2P", "off")));
  EXPECT_EQ(launch.facts.at("interface"), "lo 127.0.0.1");
}

TEST(NcclLaunch, WithoutAnInterfaceSaysWhyAndGoesOn) {
  const Fake fake;
  fake.nccl().id_result = nccl_plugin::nccl::kInvalidUsage;
  fake.nccl().Say("Bootstrap : no socket interface found");
  EXPECT_THAT(
      Subject(fake.Backend()).LaunchInfo(1).facts.at("interface"),
      AllOf(HasSubstr("none: "), HasSubstr("no socket interface found"), HasSubstr("`dtrun explain`")));
}

TEST(NcclDevice, ThatIsMissingIsAFactAtLaunchAndASentenceInARank) {
  const Fake fake;
  fake.cuda().device_error = 35;
  const Subject subject(fake.Backend());
  const auto sentence = AllOf(HasSubstr("this process has none: 'CUDA driver version is insufficient"),
                              HasSubstr("nvidia-smi"));
  EXPECT_THAT(subject.LaunchInfo(1).facts.at("device"), sentence);
  const Outcome outcome = JoinAlone(subject);
  EXPECT_EQ(outcome.code, DTRUN_FAILED_PRECONDITION);
  EXPECT_THAT(outcome.text, sentence);
}

TEST(NcclDevice, ThatOneRankLacksIsToldToTheOthers) {
  const Fake fake;
  const Subject subject(fake.Backend());
  ThreadKv kv;
  Outcome outcome;
  fake.cuda().device_count = 0;
  EXPECT_EQ(subject.Join(&kv, 1, 2, kPatience, &outcome), nullptr);
  fake.cuda().device_count = 1;
  EXPECT_EQ(subject.Join(&kv, 0, 2, kPatience, &outcome), nullptr);
  EXPECT_EQ(outcome.code, DTRUN_REMOTE_FAILURE);
  EXPECT_EQ(outcome.peer, 1);
  EXPECT_THAT(outcome.text, HasSubstr("rank 1 gave up: nccl moves the memory of CUDA devices"));
}

TEST(NcclConnection, WithoutPeerAccessFailsWithTheWayOut) {
  const Fake fake;
  fake.nccl().peer_access = false;
  const Subject subject(fake.Backend());
  const Outcome outcome = JoinAlone(subject);
  EXPECT_EQ(outcome.code, DTRUN_VENDOR);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("peer access is not supported"), HasSubstr("`dtrun explain`")));
  EXPECT_EQ(fake.nccl().comms, 0);

  // What the option's variable does in a rank.
  ASSERT_EQ(setenv("NCCL_P2P_DISABLE", "1", 1), 0);
  Subject(fake.Backend({{"p2p", "off"}})).Play(2, [](Rank& rank) { EXPECT_TRUE(rank.Barrier().ok()); });
  unsetenv("NCCL_P2P_DISABLE");
}

TEST(NcclConnection, OverLoopbackIsRefusedWhenThereAreOtherHosts) {
  const Fake fake;
  const Player player(fake.Backend());
  ThreadKv kv;
  Outcome outcome;
  EXPECT_EQ(player.Join(&kv, 0, 1, 2, &outcome), nullptr);
  EXPECT_EQ(outcome.code, DTRUN_FAILED_PRECONDITION);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("127.0.0.1:4711"), HasSubstr("backend.nccl.interface")));
  fake.nccl().loopback = false;
  ThreadKv fresh;
  dtrun_backend_comm* const comm = player.Join(&fresh, 0, 1, 2, &outcome);
  ASSERT_NE(comm, nullptr) << outcome;
  player.table().comm_destroy(comm);
}

TEST(NcclOperations, ThatAreStuckTimeOutOnAllRanks) {
  const Fake fake;
  const Subject subject(fake.Backend());
  subject.Play(2, [&](Rank& rank) {
    EXPECT_TRUE(rank.Barrier().ok());
    fake.nccl().stuck = true;
    dtrun_op op = MakeOp(DTRUN_BARRIER);
    op.timeout_ns = 400'000'000;
    const Outcome outcome = rank.Do(op);
    // Either this rank's own deadline, or the other's, which came first and was announced.
    EXPECT_TRUE(outcome.code == DTRUN_TIMEOUT || outcome.code == DTRUN_REMOTE_FAILURE) << outcome;
    EXPECT_THAT(outcome.text, HasSubstr("did not end within"));
  });
}

TEST(NcclOperations, FailWithWhatNcclFoundOutMeanwhile) {
  const Fake fake;
  const Subject subject(fake.Backend());
  fake.nccl().Say("socketProgress: Connection closed by remote peer 10.0.0.7<4711>");
  subject.Play(2, [&](Rank& rank) {
    EXPECT_TRUE(rank.Barrier().ok());
    if (rank.rank() == 1) return;  // and the device has not heard of that
    fake.nccl().async_error = nccl_plugin::nccl::kRemoteError;
    const Outcome outcome = rank.Barrier();
    EXPECT_EQ(outcome.code, DTRUN_REMOTE_FAILURE) << outcome;
    EXPECT_EQ(rank.Barrier().text, outcome.text);
  });
  EXPECT_EQ(fake.nccl().comms, 0);
}

TEST(NcclOperations, ThatNcclRefusesFailTheCommunicator) {
  const Fake fake;
  const Subject subject(fake.Backend());
  subject.Play(1, [&](Rank& rank) {
    fake.nccl().launch_result = nccl_plugin::nccl::kInternalError;
    fake.nccl().Say("the ring is broken");
    Outcome refusal;
    EXPECT_EQ(rank.Start(MakeOp(DTRUN_BARRIER), &refusal), nullptr);
    EXPECT_EQ(refusal.code, DTRUN_VENDOR);
    EXPECT_THAT(refusal.text, AllOf(HasSubstr("cannot start barrier 1"), HasSubstr("'the ring is broken'")));
    fake.nccl().launch_result = 0;
    EXPECT_EQ(rank.Barrier().text, refusal.text);
  });
}

TEST(NcclOperations, FailWithTheDevice) {
  const Fake fake;
  const Subject subject(fake.Backend());
  subject.Play(1, [&](Rank& rank) {
    fake.cuda().event_error = 700;
    const Outcome outcome = rank.Barrier();
    EXPECT_EQ(outcome.code, DTRUN_VENDOR);
    EXPECT_THAT(outcome.text, HasSubstr("an illegal memory access was encountered"));
  });
}

}  // namespace
}  // namespace dtrun::nccl_test
