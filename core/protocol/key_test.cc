#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "core/protocol/tls.h"

namespace dtrun::protocol {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Key, IsTheBytesThatTheDigitsSay) {
  Result<Key> key = Key::FromHex("00fF" + std::string(60, '1'));
  ASSERT_TRUE(key) << key.error().text;
  EXPECT_EQ(key->data()[0], 0x00);
  EXPECT_EQ(key->data()[1], 0xff);
  EXPECT_EQ(key->data()[31], 0x11);
}

TEST(Key, RefusesAnotherLengthWithoutQuotingIt) {
  Result<Key> key = Key::FromHex("abcdef");
  ASSERT_FALSE(key);
  EXPECT_THAT(key.error().text, HasSubstr("has 6 characters; it is 64 hexadecimal digits"));
  EXPECT_THAT(key.error().text, Not(HasSubstr("abcdef")));
}

TEST(Key, SaysWhereADigitIsNone) {
  Result<Key> key = Key::FromHex(std::string(62, '0') + "0x");
  ASSERT_FALSE(key);
  EXPECT_THAT(key.error().text, HasSubstr("character 63 or 64"));
}

TEST(Key, OfAJobIsAnHmacOfTheSharedOne) {
  // Printed by `printf a | openssl dgst -sha256 -mac hmac -macopt hexkey:00…`.
  const Key shared = *Key::FromHex(std::string(64, '0'));
  EXPECT_EQ(shared.For("a").data()[0], 0x96);
  EXPECT_NE(std::memcmp(shared.For("a").data(), shared.For("b").data(), Key::kBytes), 0);
  EXPECT_NE(std::memcmp(shared.For("").data(), shared.data(), Key::kBytes), 0);
}

TEST(Key, OfATextIsItsSha256) {
  const Key key = Key::FromText("abc");  // example of FIPS 180-4
  EXPECT_EQ(key.data()[0], 0xba);
  EXPECT_EQ(key.data()[31], 0xad);
}

}  // namespace
}  // namespace dtrun::protocol
