#include "core/hosts/this_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::hosts {
namespace {

using ::testing::Not;

TEST(Machine, KnowsItselfUnderItsNamesAndAddresses) {
  EXPECT_TRUE(IsThisMachine("localhost"));
  EXPECT_TRUE(IsThisMachine("127.0.0.1"));
  EXPECT_TRUE(IsThisMachine(HostName()));
  EXPECT_TRUE(IsThisMachine("somebody@" + HostName()));
  EXPECT_FALSE(IsThisMachine("surely-another-host"));
  EXPECT_FALSE(IsThisMachine("192.0.2.1"));
  EXPECT_EQ(MachineIdentity(), MachineIdentity());
}

TEST(Machine, KnowsTheAddressesOfItsInterfaces) {
  EXPECT_TRUE(IsOwnAddress("127.0.0.1"));
  EXPECT_FALSE(IsOwnAddress("127.0.0.2"));
  EXPECT_FALSE(IsOwnAddress("localhost"));
  EXPECT_FALSE(IsOwnAddress("192.0.2.1"));
}

TEST(Machine, KnowsWhatTheNameServiceLeadsHere) {
  for (const std::string& host :
       {std::string("localhost"), std::string("127.3.2.1"), std::string("::1"), HostName()}) {
    EXPECT_TRUE(LeadsHere(host)) << host;
  }
  EXPECT_FALSE(LeadsHere("192.0.2.1"));
  EXPECT_FALSE(LeadsHere("2001:db8::1"));
  EXPECT_FALSE(LeadsHere(""));
}

TEST(Machine, FindsTheAddressThatLeadsToAPeer) {
  EXPECT_EQ(AddressTowards("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(AddressTowards("no-number"), "");
  EXPECT_THAT(OwnAddresses(), Not(::testing::Contains("127.0.0.1")));
}

}  // namespace
}  // namespace dtrun::hosts
