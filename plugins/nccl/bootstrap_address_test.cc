#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstring>

#include "handle.h"

namespace dtrun::nccl_plugin {
namespace {

template <class Address>
nccl::UniqueId IdWith(const Address& address) {
  nccl::UniqueId id{};
  std::memset(id.internal, 0x51, 8);
  std::memcpy(id.internal + 8, &address, sizeof address);
  return id;
}

TEST(BootstrapAddress, IsReadAfterTheMagic) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(47601);
  inet_pton(AF_INET, "192.0.2.2", &address.sin_addr);
  const auto read = ReadBootstrapAddress(IdWith(address));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->Text(), "192.0.2.2:47601");
  EXPECT_FALSE(read->loopback);
}

TEST(BootstrapAddress, KnowsLoopbackInBothFamilies) {
  sockaddr_in four{};
  four.sin_family = AF_INET;
  inet_pton(AF_INET, "127.0.1.1", &four.sin_addr);
  EXPECT_TRUE(ReadBootstrapAddress(IdWith(four))->loopback);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(80);
  inet_pton(AF_INET6, "::1", &six.sin6_addr);
  EXPECT_TRUE(ReadBootstrapAddress(IdWith(six))->loopback);
  EXPECT_EQ(ReadBootstrapAddress(IdWith(six))->Text(), "[::1]:80");
}

TEST(BootstrapAddress, IsUnknownInAnIdOfAnotherForm) {
  nccl::UniqueId id{};
  EXPECT_FALSE(ReadBootstrapAddress(id));
  std::memset(id.internal, 0xab, sizeof id.internal);
  EXPECT_FALSE(ReadBootstrapAddress(id));
}

}  // namespace
}  // namespace dtrun::nccl_plugin
