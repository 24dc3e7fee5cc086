#include <gtest/gtest.h>

#include "core/protocol/dialer.h"

namespace dtrun::protocol {
namespace {

TEST(Trouble, NamesTheAddressesWithOneReasonTogether) {
  Trouble trouble;
  EXPECT_EQ(trouble.Line(), "");
  EXPECT_FALSE(trouble.TakeNews());
  trouble.Note("10.5.0.1:4000", "no answer");
  trouble.Note("10.6.0.1:4000", "Connection refused");
  trouble.Note("10.7.0.1:4000", "no answer");
  trouble.NoteName("node0", "'node0' does not resolve: not yet");
  EXPECT_EQ(
      trouble.Line(),
      "cannot reach 10.5.0.1:4000, 10.7.0.1:4000: no answer; 10.6.0.1:4000: Connection refused; 'node0' "
      "does not resolve: not yet");
  for (int i = 0; i < 200; ++i) trouble.Note("192.168.0." + std::to_string(i) + ":4000", "no answer");
  EXPECT_TRUE(
      trouble.Line().starts_with("cannot reach 10.5.0.1:4000, 10.7.0.1:4000, 192.168.0.0:4000, "
                                 "192.168.0.1:4000 and 198 more: no answer; "));
}

TEST(Trouble, TellsEachLineOnce) {
  Trouble trouble;
  trouble.Note("a", "no answer");
  EXPECT_TRUE(trouble.TakeNews());
  EXPECT_FALSE(trouble.TakeNews());
  trouble.Note("a", "Connection refused");
  EXPECT_TRUE(trouble.TakeNews());
  EXPECT_EQ(trouble.told(), "cannot reach a: Connection refused");
  trouble.Note("a", "no answer");
  EXPECT_FALSE(trouble.TakeNews());
  int told = 0;
  for (int i = 0; i < 1000; ++i) {
    trouble.Note("a", std::to_string(i));
    told += trouble.TakeNews() ? 1 : 0;
  }
  EXPECT_LT(told, 100);
}

}  // namespace
}  // namespace dtrun::protocol
