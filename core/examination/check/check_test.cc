#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "core/base/fd.h"
#include "core/examination/check/checks.h"

namespace dtrun::examination {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;

auto Is(const std::string& topic, Level level, const std::string& what) {
  return AllOf(Field(&Check::topic, topic), Field(&Check::level, level),
               Field(&Check::what, HasSubstr(what)));
}

TEST(Checks, LookAtEverythingAndCureWhatIsNotRight) {
  Question question;
  question.checks = true;
  const Checks checks = CheckHost(question, {});
  for (const char* const topic :
       {"names", "network", "processors", "blas", "gpus", "rdma", "limits", "/dev/shm"}) {
    EXPECT_THAT(checks, Contains(Field(&Check::topic, topic))) << topic;
  }
  for (const Check& check : checks) EXPECT_EQ(check.cure.empty(), check.level == Level::kOk) << check.what;
}

TEST(Checks, ANameThatDoesNotResolveIsAWarning) {
  Question question;
  question.host_names = {"localhost", "user@no-such-host.invalid"};
  Checks checks;
  CheckNames(question, &checks);
  EXPECT_THAT(checks, Contains(Is("names", Level::kWarning, "'no-such-host.invalid' does not resolve")));
  EXPECT_THAT(checks, Contains(Is("names", Level::kOk, "1 of 2 hosts resolve")));
}

TEST(Checks, APortInUseIsAProblemOnHost0Only) {
  const UniqueFd taken(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!taken) GTEST_SKIP() << "no IPv6 here";
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  ASSERT_EQ(::bind(taken.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(taken.get(), 1), 0);
  socklen_t size = sizeof address;
  ASSERT_EQ(::getsockname(taken.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  Question question;
  question.master_port = ntohs(address.sin6_port);
  Checks checks;
  CheckPorts(question, &checks);
  EXPECT_THAT(checks, Contains(Is("ports", Level::kProblem, "is in use")));
  question.host = 1;
  checks.clear();
  CheckPorts(question, &checks);
  EXPECT_TRUE(checks.empty());
}

TEST(Checks, ABackendIsAProblemWhenTheJobNeedsIt) {
  Question question;
  question.backends = {{"nccl", "", "", "", true}, {"ucx", "", "", "", true}, {"mpi", "", "", "", false}};
  const std::vector<BackendAnswer> none = {{"nccl", "no GPU"}, {"ucx", "no libucp"}, {"mpi", "no libmpi"}};
  const Checks bad = CheckHost(question, none);
  EXPECT_THAT(bad, Contains(Is("backend nccl", Level::kProblem, "no GPU")));
  EXPECT_THAT(bad, Contains(Is("backend ucx", Level::kProblem, "no libucp")));
  EXPECT_THAT(bad, Contains(Is("backend mpi", Level::kOk, "no libmpi")));
  const Checks good =
      CheckHost(question, {{"nccl", "no GPU"}, {"ucx", "", "UCX 1.13"}, {"mpi", "no libmpi"}});
  EXPECT_THAT(good, Contains(Is("backend nccl", Level::kOk, "no GPU")));
  EXPECT_THAT(good, Contains(Is("backend ucx", Level::kOk, "UCX 1.13")));
}

TEST(Checks, GpusThatCannotReadEachOtherAreShown) {
  Question question;
  question.backends = {{"nccl", "", "", "", true}};
  BackendAnswer answer{"nccl", "", "NCCL 2"};
  answer.info.facts = {{"peer 0", "0000:01:00.0"},
                       {"peer 1", "0000:02:00.0"},
                       {"peer 0>1", "proven: 9 GB/s"},
                       {"peer 1>0", "proven: 9 GB/s"}};
  EXPECT_THAT(CheckHost(question, {answer}), Contains(Is("gpu peers", Level::kOk, "each of 2 GPUs")));
  answer.info.facts[2].second = "broken: the copy arrives corrupt";
  EXPECT_THAT(CheckHost(question, {answer}),
              Contains(Is("gpu peers", Level::kWarning,
                          "reads    GPU 0     GPU 1\nGPU 0    .         proven\nGPU 1    broken    .\n"
                          "GPU 1 of GPU 0: broken, the copy arrives corrupt")));
  answer.info.facts[2].second = answer.info.facts[3].second = "refused: the driver says that it cannot";
  EXPECT_THAT(CheckHost(question, {answer}), Contains(Is("gpu peers", Level::kOk, "refused")));
  answer.info.facts.resize(2);
  EXPECT_THAT(CheckHost(question, {answer}), Contains(Is("gpu peers", Level::kOk, "not tried")));
}

TEST(Checks, MoreRanksThanProcessorsAreAWarning) {
  Question question;
  question.local_ranks = 100000;
  Checks checks;
  CheckMachine(question, &checks);
  EXPECT_THAT(checks, Contains(Is("processors", Level::kWarning, "for 100000 ranks")));
}

}  // namespace
}  // namespace dtrun::examination
