#include "core/base/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun {
namespace {

TEST(ParseEndpoint, ReadsEveryFormOfAHost) {
  const struct {
    const char* text;
    Endpoint endpoint;
  } cases[] = {
      {"node0", {"node0", {}}},
      {"node0:29400", {"node0", 29400}},
      {"10.0.0.1:1", {"10.0.0.1", 1}},
      {"fd00::2", {"fd00::2", {}}},
      {"2001:db8::1:2", {"2001:db8::1:2", {}}},
      {"::1", {"::1", {}}},
      {"fe80::1%eth0", {"fe80::1%eth0", {}}},
      {"[fd00::2]", {"fd00::2", {}}},
      {"[fe80::1%eth0]:65535", {"fe80::1%eth0", 65535}},
      {"me@node0:2", {"me@node0", 2}},
      {"me@[fd00::2]:2", {"me@fd00::2", 2}},
      {"me@fd00::2", {"me@fd00::2", {}}},
  };
  for (const auto& c : cases) {
    const auto endpoint = ParseEndpoint(c.text);
    ASSERT_TRUE(endpoint.ok()) << c.text << ": " << endpoint.error().text;
    EXPECT_EQ(*endpoint, c.endpoint) << c.text;
  }
}

TEST(ParseEndpoint, RefusesWhatIsNoHostAndPort) {
  for (const char* text :
       {"node0:", "node0:0", "node0:65536", "node0:5x", "node0:+1", "node0:000001", ":29400", "[fd00::2",
        "[fd00::2]1", "[fd00::2]:", "[node0]:1", "[]", "::::", "node0:1:2", "http://node0:29400"}) {
    const auto endpoint = ParseEndpoint(text);
    ASSERT_FALSE(endpoint.ok()) << text;
    EXPECT_THAT(endpoint.error().text, ::testing::HasSubstr("'")) << text;
  }
  EXPECT_EQ(ParseEndpoint("node0:0", 0)->port, 0);
}

TEST(EndpointText, HasBracketsAroundAnIpv6Address) {
  EXPECT_EQ(EndpointText("10.0.0.1", "80"), "10.0.0.1:80");
  EXPECT_EQ(EndpointText("fe80::1", "80"), "[fe80::1]:80");
  EXPECT_EQ(Bracketed("node0"), "node0");
}

}  // namespace
}  // namespace dtrun
