#include "addresses.h"

#include <gtest/gtest.h>

#include "dtrun/plugin.hpp"

namespace dtrun::gloo_plugin {
namespace {

TEST(Addresses, ComeOutAsTheyWentIn) {
  const std::vector<std::string> all = {std::string("\x02\x00\x9c\x40\x7f\x00\x00\x01", 8),
                                        std::string("\x02\x00\xff\x41\x7f\x00\x00\x01", 8),
                                        std::string("\x02\x00\x9c\x00\x7f\x00\x00\x01", 8)};
  const std::string packed = PackAddresses(all);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(UnpackAddress(packed, i), all[i]);
}

TEST(Addresses, TakeOnlyTheBytesThatDiffer) {
  std::vector<std::string> all(128, std::string(136, 'a'));
  for (std::size_t i = 0; i < all.size(); ++i) all[i][7] = static_cast<char>(i);
  EXPECT_EQ(PackAddresses(all).size(), 2 + 136 + 1 + 128u);
}

TEST(Addresses, MayAllBeTheSame) {
  const std::string packed = PackAddresses({"abc", "abc"});
  EXPECT_EQ(UnpackAddress(packed, 1), "abc");
}

TEST(Addresses, ThatAreCutShortAreRefused) {
  const std::string packed = PackAddresses({"abc", "abd"});
  for (std::size_t length = 0; length < packed.size(); ++length) {
    EXPECT_THROW(UnpackAddress(packed.substr(0, length), 1), sdk::Failure) << length;
  }
  EXPECT_THROW(UnpackAddress(packed, 2), sdk::Failure);
}

TEST(ListenAddress, IsOneForEachRankOnLoopbackOnly) {
  const interfaces::Interface loopback{"lo", "127.0.0.1", true, true, false};
  EXPECT_EQ(ListenAddress(loopback, 0), "127.1.0.0");
  EXPECT_EQ(ListenAddress(loopback, 259), "127.1.1.3");
  EXPECT_EQ(ListenAddress(loopback, 1 << 16), "127.0.0.1");
  EXPECT_EQ(ListenAddress({"eth0", "10.0.0.5", false, true, false}, 1), "10.0.0.5");
}

}  // namespace
}  // namespace dtrun::gloo_plugin
