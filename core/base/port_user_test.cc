#include "core/base/port_user.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "core/base/fd.h"

namespace dtrun {
namespace {

using ::testing::HasSubstr;

TEST(PortUser, NamesTheProgramThatListens) {
  UniqueFd socket;
  int port = 0;
  do {  // the kernel may give a port that it still remembers for another address
    socket = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    ASSERT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port = ntohs(address.sin_port);
  } while (OnlyFading(port));
  EXPECT_EQ(ProgramListeningOn(port), "");
  EXPECT_THAT(PortInUse(port).text, HasSubstr("a socket that does not listen yet"));
  EXPECT_FALSE(OnlyFading(port));
  ASSERT_EQ(::listen(socket.get(), 1), 0);
  EXPECT_EQ(ProgramListeningOn(port), program_invocation_short_name);
  EXPECT_THAT(PortInUse(port).text, HasSubstr(std::string("(") + program_invocation_short_name + ")"));
  EXPECT_FALSE(OnlyFading(port));
}

}  // namespace
}  // namespace dtrun
