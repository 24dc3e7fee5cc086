#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "resources.h"

namespace dtrun::ucx_plugin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Optional;
using testing::ThrowsMessage;

const std::vector<Resource> kPlain = {{"tcp", "eth0", true}, {"posix", "memory", false}};
const std::vector<Resource> kWithGpu = {
    {"tcp", "eth0", true}, {"cuda_copy", "cuda", false}, {"cuda_ipc", "cuda", false}};

std::optional<std::string> Off(const std::optional<std::string>& transports) {
  return ChoosePeers(kP2pOff, transports, {}, kPlain).transports;
}

TEST(ChoosePeers, OffTakesCudaIpcOutOfTheList) {
  EXPECT_THAT(Off({}), Optional(std::string("^cuda_ipc")));
  EXPECT_THAT(Off("all"), Optional(std::string("^cuda_ipc")));
  EXPECT_THAT(Off("^tcp"), Optional(std::string("^tcp,cuda_ipc")));
  EXPECT_THAT(Off("^cuda"), Optional(std::string("^cuda")));
  EXPECT_THAT(Off("^cuda_ipc"), Optional(std::string("^cuda_ipc")));  // as ranks see it
  EXPECT_THAT(Off("tcp,self"), Optional(std::string("tcp,self")));
  EXPECT_EQ(ChoosePeers(kP2pOff, {}, {}, kPlain).for_programs, "off");
}

TEST(ChoosePeers, OffRefusesAListThatNamesIt) {
  for (const char* const list : {"tcp,cuda", "cuda_ipc", "tcp,\\cuda_ipc"}) {
    EXPECT_THAT([&] { Off(list); },
                ThrowsMessage<sdk::Failure>(AllOf(HasSubstr("\"off\" contradicts"), HasSubstr(list))));
  }
}

TEST(ChoosePeers, OnNeedsIt) {
  const PeerChoice choice = ChoosePeers(kP2pOn, {}, {}, kWithGpu);
  EXPECT_THAT(choice.transports, Optional(std::string("all")));  // for all to see that it is decided
  EXPECT_EQ(choice.for_programs, "on");
  EXPECT_THAT(choice.fact, HasSubstr("cuda_ipc"));
  EXPECT_THAT([] { ChoosePeers(kP2pOn, {}, {}, kPlain); },
              ThrowsMessage<sdk::Failure>(HasSubstr("offers no cuda_ipc")));
  for (const char* const list : {"tcp,self", "^cuda", "^tcp,cuda_ipc"}) {
    EXPECT_THAT([&] { ChoosePeers(kP2pOn, list, {}, kWithGpu); },
                ThrowsMessage<sdk::Failure>(HasSubstr("\"on\" contradicts")));
  }
  EXPECT_THAT(ChoosePeers(kP2pOn, "tcp,cuda", {}, kWithGpu).transports, Optional(std::string("tcp,cuda")));
}

TEST(ChoosePeers, AutoFollowsTheEnvironmentAndForcesNothing) {
  EXPECT_FALSE(ChoosePeers(kP2pAuto, {}, {}, kPlain).transports);
  EXPECT_EQ(ChoosePeers(kP2pAuto, {}, {}, kPlain).fact, "");
  EXPECT_THAT(ChoosePeers(kP2pAuto, {}, {}, kWithGpu).fact, HasSubstr("not tried"));
  EXPECT_THAT(ChoosePeers(kP2pAuto, {}, "off", kWithGpu).transports, Optional(std::string("^cuda_ipc")));
  EXPECT_THAT(ChoosePeers(kP2pAuto, "tcp,cuda", "off", kWithGpu).transports,
              Optional(std::string("tcp,cuda")));
}

}  // namespace
}  // namespace dtrun::ucx_plugin
