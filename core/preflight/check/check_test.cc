#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "core/base/fd.h"
#include "core/preflight/check/checks.h"

namespace dtrun::preflight {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;

auto Is(const std::string& topic, Level level, const std::string& what) {
  return AllOf(Field(&Check::topic, topic), Field(&Check::level, level),
               Field(&Check::what, HasSubstr(what)));
}

TEST(Checks, LookAtEverythingAndFixWhatIsNotRight) {
  Request request;
  request.checks = true;
  const Checks checks = CheckHost(request, {});
  for (const char* const topic :
       {"names", "network", "processors", "blas", "gpus", "rdma", "limits", "/dev/shm"}) {
    EXPECT_THAT(checks, Contains(Field(&Check::topic, topic))) << topic;
  }
  for (const Check& check : checks) EXPECT_EQ(check.fix.empty(), check.level == Level::kOk) << check.what;
}

TEST(Checks, ANameThatDoesNotResolveIsAWarning) {
  Request request;
  request.host_names = {"localhost", "user@no-such-host.invalid"};
  Checks checks;
  CheckNames(request, &checks);
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
  Request request;
  request.master_port = ntohs(address.sin6_port);
  Checks checks;
  CheckPorts(request, &checks);
  EXPECT_THAT(checks, Contains(Is("ports", Level::kProblem, "is in use")));
  request.host = 1;
  checks.clear();
  CheckPorts(request, &checks);
  EXPECT_TRUE(checks.empty());
}

TEST(Checks, ABackendIsAProblemWhenTheJobNeedsIt) {
  Request request;
  request.backends = {{"nccl", "", "", "", true}, {"ucx", "", "", "", true}, {"mpi", "", "", "", false}};
  const std::vector<BackendAnswer> none = {{"nccl", "no GPU"}, {"ucx", "no libucp"}, {"mpi", "no libmpi"}};
  const Checks bad = CheckHost(request, none);
  EXPECT_THAT(bad, Contains(Is("backend nccl", Level::kProblem, "no GPU")));
  EXPECT_THAT(bad, Contains(Is("backend ucx", Level::kProblem, "no libucp")));
  EXPECT_THAT(bad, Contains(Is("backend mpi", Level::kNotHere, "no libmpi")));
  const Checks good = CheckHost(request, {{"nccl", "no GPU"}, {"ucx", "", "UCX 1.13"}, {"mpi", "no libmpi"}});
  EXPECT_THAT(good, Contains(Is("backend nccl", Level::kNotHere, "no GPU")));
  EXPECT_THAT(good, Contains(Is("backend ucx", Level::kOk, "UCX 1.13")));
}

TEST(Checks, GpusThatCannotReadEachOtherAreShown) {
  Request request;
  request.backends = {{"nccl", "", "", "", true}};
  BackendAnswer answer{"nccl", "", "NCCL 2"};
  answer.info.facts = {{"peer 0", "0000:01:00.0"},
                       {"peer 1", "0000:02:00.0"},
                       {"peer 0>1", "proven: 9 GB/s"},
                       {"peer 1>0", "proven: 9 GB/s"}};
  EXPECT_THAT(CheckHost(request, {answer}), Contains(Is("gpu peers", Level::kOk, "each of 2 GPUs")));
  answer.info.facts[2].second = "broken: the copy arrives corrupt";
  answer.info.facts.emplace_back("agree FAST_PATH", "off");
  answer.info.env = {{"FAST_PATH", "off"}, {"OTHER", "off"}};
  EXPECT_THAT(CheckHost(request, {answer}),
              Contains(Is("gpu peers", Level::kWarning,
                          "reads    GPU 0     GPU 1\nGPU 0    .         proven\nGPU 1    broken    .\n"
                          "GPU 1 of GPU 0: broken, the copy arrives corrupt")));
  EXPECT_THAT(
      CheckHost(request, {answer}),
      Contains(Field(&Check::fix, "look at IOMMU, ACS and driver; until then ranks see FAST_PATH=off")));
  answer.info.facts[2].second = answer.info.facts[3].second = "refused: the driver says that it cannot";
  EXPECT_THAT(CheckHost(request, {answer}), Contains(Is("gpu peers", Level::kOk, "refused")));
  answer.info.facts.resize(2);
  EXPECT_THAT(CheckHost(request, {answer}), Contains(Is("gpu peers", Level::kOk, "not tried")));
}

TEST(Checks, MoreRanksThanProcessorsAreAWarning) {
  Request request;
  request.local_ranks = 100000;
  Checks checks;
  CheckMachine(request, &checks);
  EXPECT_THAT(checks, Contains(Is("processors", Level::kWarning, "for 100000 ranks")));
}

}  // namespace
}  // namespace dtrun::preflight
