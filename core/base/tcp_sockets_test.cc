#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/port_user.h"

namespace dtrun {
namespace {

constexpr char kHeading[] =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

TEST(ParseTcpSockets, ReadsListenersAndConnections) {
  const auto sockets = ParseTcpSockets(
      std::string(kHeading) +
      "   0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 41 1 0\n"
      "   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 42 1 0\n");
  ASSERT_EQ(sockets.size(), 2u);
  EXPECT_TRUE(sockets[0].listens);
  EXPECT_EQ(sockets[0].local_port, 8080);
  EXPECT_EQ(sockets[0].inode, 41u);
  EXPECT_FALSE(sockets[1].listens);
  EXPECT_EQ(sockets[1].remote_port, 50000);
  EXPECT_EQ(sockets[1].over.count(), 0);
}

TEST(ParseTcpSockets, GivesBothEndsOfAConnectionTheSameTextInBothFamilies) {
  const auto server =
      ParseTcpSockets(std::string(kHeading) +
                      "   0: 0000000000000000FFFF00000100007F:1F90 0000000000000000FFFF00000100007F:C350 01 "
                      "00000000:00000000 00:00000000 00000000     0        0 7 1 0\n");
  const auto client = ParseTcpSockets(
      std::string(kHeading) +
      "   0: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 8 1 0\n");
  ASSERT_EQ(server.size(), 1u);
  ASSERT_EQ(client.size(), 1u);
  EXPECT_EQ(server[0].local, client[0].remote);
  EXPECT_EQ(server[0].remote, client[0].local);
}

TEST(ParseTcpSockets, KnowsSinceWhenAConnectionIsOver) {
  const auto sockets = ParseTcpSockets(  // 0x0FA0 hundredths of a second are left of a minute
      std::string(kHeading) +
      "   0: 0100007F:1F90 0100007F:C350 06 00000000:00000000 03:00000FA0 00000000     0        0 0 3 0\n");
  ASSERT_EQ(sockets.size(), 1u);
  EXPECT_EQ(sockets[0].over, std::chrono::seconds(20));
}

TEST(ParseTcpSockets, LeavesOutWhatMakesNoSense) {
  EXPECT_THAT(ParseTcpSockets(""), ::testing::IsEmpty());
  EXPECT_THAT(ParseTcpSockets(std::string(kHeading) + "   0: here there 01\nx\n"), ::testing::IsEmpty());
}

TEST(TcpSocketsSeenBy, NobodySeesNothing) { EXPECT_THAT(TcpSocketsSeenBy(-1), ::testing::IsEmpty()); }

}  // namespace
}  // namespace dtrun
