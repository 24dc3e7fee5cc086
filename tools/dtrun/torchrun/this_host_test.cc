#include "tools/dtrun/torchrun/this_host.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

namespace dtrun::torchrun {
namespace {

TEST(IsThisHost, KnowsItsNamesAndLoopback) {
  std::array<char, 256> name{};
  ASSERT_EQ(::gethostname(name.data(), name.size() - 1), 0);
  const std::string own = name.data();
  for (const std::string& host :
       std::vector<std::string>{"localhost", "127.0.0.1", "127.3.2.1", "::1", own}) {
    EXPECT_TRUE(IsThisHost(host)) << host;
  }
}

TEST(IsThisHost, IsNotAnAddressOfDocumentationNorNonsense) {
  EXPECT_FALSE(IsThisHost("192.0.2.1"));
  EXPECT_FALSE(IsThisHost("2001:db8::1"));
  EXPECT_FALSE(IsThisHost(""));
}

}  // namespace
}  // namespace dtrun::torchrun
