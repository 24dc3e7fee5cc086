#include "core/node/user_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "core/plan/plan.h"

namespace dtrun::node {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class UserReportTest : public ::testing::Test {
 protected:
  UserReport Of(OwnStart own, std::vector<std::string> environment = {}) {
    return {std::move(own), std::move(environment),
            [this](const std::string& line) { said_.push_back(line); }};
  }

  static protocol::Prepare RanksOf(std::vector<std::string> argv, int count) {
    protocol::Prepare prepare;
    prepare.world_size = 4;
    for (int i = 0; i < count; ++i) {
      plan::Process process;
      process.rank = 2 + i;
      process.argv = argv;
      prepare.processes.push_back(process);
    }
    return prepare;
  }

  std::vector<std::string> said_;
};

TEST_F(UserReportTest, TellsWhereTheRootIsAndHowTheRanksOfThisNodeEnded) {
  UserReport report = Of({});
  report.Joining("node0", 29500);
  report.Joined("node0", "10.0.0.1:29500");
  EXPECT_THAT(report.Prepared(RanksOf({"python3", "-u", "train.py"}, 2)), IsEmpty());
  protocol::Start start;
  start.tokens[plan::kTokenRunDir] = "/runs/1";
  report.Started(start);
  report.Ended({.rank = 3, .ending = {.code = 1}});
  report.Ended({.rank = 2, .ending = {.signal = SIGTERM}, .signal_sent = SIGTERM});
  report.Over();
  EXPECT_THAT(said_,
              ElementsAre("joining the root at node0 port 29500",
                          "joined the root, node0 (10.0.0.1:29500); waiting for the job to start",
                          "started ranks 2, 3 of 4; the output is shown on the root, node0",
                          "rank 3 exited with code 1; rank 2 was stopped by dtrun; the verdict is on the "
                          "root, node0: on its stderr and in /runs/1/verdict.json"));
}

TEST_F(UserReportTest, NamesOptionsThatDifferFromTheRoot) {
  UserReport report = Of({{}, 0, {{"backend.name", "\"ucx\""}, {"job.ranks", "4"}, {"logs.dir", "\"a\""}}});
  protocol::Prepare prepare = RanksOf({"train"}, 1);
  prepare.options = {{"backend.name", "\"gloo\""}, {"job.ranks", "4"}, {"job.grace", "\"1s\""}};
  EXPECT_THAT(
      report.Prepared(prepare),
      ElementsAre("the job runs with the root's options: backend.name is \"ucx\" here, \"gloo\" on the "
                  "root; logs.dir is \"a\" here, not set on the root"));
}

TEST_F(UserReportTest, NamesWhatDiffersFromTheRootOnce) {
  UserReport report = Of({{"other.py", "b"}, 1}, {"NCCL_DEBUG=INFO", "HOME=/home/a", "OMP_NUM_THREADS=2"});
  protocol::Prepare prepare = RanksOf({"python3", "-u", "ok.py", "a"}, 2);
  prepare.environment = {"HOME=/home/b", "NCCL_SOCKET_IFNAME=eth0", "OMP_NUM_THREADS=4"};
  EXPECT_THAT(
      report.Prepared(prepare),
      ElementsAre("this node was started with `other.py b`; the root's command runs instead: "
                  "`python3 -u ok.py a`",
                  "this node was started for 1 rank; the root's command line gives it 2",
                  "ranks get the root's variables, which differ from this node's: NCCL_DEBUG=INFO here, "
                  "unset on the root; NCCL_SOCKET_IFNAME is unset here, eth0 on the root; "
                  "OMP_NUM_THREADS=2 here, 4 on the root"));
  EXPECT_THAT(report.Prepared(prepare), IsEmpty());
}

TEST_F(UserReportTest, TheSameCommandIsTheSameWhereverItsFileIs) {
  EXPECT_THAT(Of({{"./train.py", "--rank=${local_rank}"}, 2})
                  .Prepared(RanksOf({"/usr/bin/python3", "-u", "/home/a/train.py", "--rank=0"}, 2)),
              IsEmpty());
  EXPECT_THAT(
      Of({{"old.py", "x"}, 0}).Prepared(RanksOf({"python3", "-u", "old.py", "--local-rank=0", "x"}, 1)),
      IsEmpty());
}

}  // namespace
}  // namespace dtrun::node
