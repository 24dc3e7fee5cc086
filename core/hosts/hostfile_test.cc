#include "core/hosts/hostfile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::hosts {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Hosts = std::vector<HostSlots>;

std::string ErrorIn(std::string_view text) {
  const auto hosts = ParseHostfile(text, "hosts");
  return hosts.ok() ? "no error" : hosts.error().text;
}

TEST(ParseHostfile, ReadsOpenMpisForm) {
  EXPECT_EQ(
      *ParseHostfile("# cluster\nnode0 slots=4 max_slots=8\n\nnode1 slots = 2  # spare\nnode2 max-slots=3\n",
                     "hosts"),
      (Hosts{{"node0", 4}, {"node1", 2}, {"node2", 3}}));
}

TEST(ParseHostfile, ReadsDeepSpeedsAndHorovodsForm) {
  EXPECT_EQ(*ParseHostfile("worker-0 slots=2\r\nworker-1 slots=2\r\n", "hosts"),
            (Hosts{{"worker-0", 2}, {"worker-1", 2}}));
}

TEST(ParseHostfile, ReadsHydrasForm) {
  EXPECT_EQ(*ParseHostfile("node0:4\n[fe80::1]:2", "hosts"), (Hosts{{"node0", 4}, {"fe80::1", 2}}));
}

TEST(ParseHostfile, LeavesTheSlotsOfABareHostOpen) {
  EXPECT_EQ(*ParseHostfile("node0\n  node1\t\n", "hosts"), (Hosts{{"node0", {}}, {"node1", {}}}));
}

TEST(ParseHostfile, AddsUpRepeatedBareAndColonLines) {
  EXPECT_EQ(*ParseHostfile("node0\nnode1:2\nnode0\nnode1:3\nnode0\n", "hosts"),
            (Hosts{{"node0", 3}, {"node1", 5}}));
}

TEST(ParseHostfile, RefusesARepeatedHostWhoseLinesDoNotAddUp) {
  EXPECT_EQ(ErrorIn("a slots=2\nb slots=2\na slots=2\n"),
            "hosts:3:1: host 'a' is in line 1 already; give all its slots in one line");
  EXPECT_THAT(ErrorIn("a\n a slots=2\n"), StartsWith("hosts:2:2: host 'a' is in line 1"));
  EXPECT_THAT(ErrorIn("a:2\na\n"), StartsWith("hosts:2:1: host 'a' is in line 1"));
  EXPECT_THAT(ErrorIn("a:2\nA\n"), StartsWith("hosts:2:1: host 'a' is in line 1"));
  EXPECT_THAT(ErrorIn("a:4000\na:97\n"), HasSubstr("more than 4096 slots"));
}

TEST(ParseHostfile, PlacesWhatIsWrong) {
  EXPECT_EQ(ErrorIn("a slots=2\nb slts=2\n"), "hosts:2:3: unknown word 'slts'; did you mean 'slots'?");
  EXPECT_THAT(ErrorIn("a slots=two"), StartsWith("hosts:1:9: 'two' is not a number of slots"));
  EXPECT_THAT(ErrorIn("a slots=0"), HasSubstr("to run no rank there, leave the host out of the list"));
  EXPECT_THAT(ErrorIn("a slots="), StartsWith("hosts:1:9: '' is not a number of slots"));
  EXPECT_THAT(ErrorIn("a slots 2"), StartsWith("hosts:1:9: '=' expected after 'slots'"));
  EXPECT_THAT(ErrorIn("a b"), StartsWith("hosts:1:3: unknown word 'b'"));
  EXPECT_THAT(ErrorIn("a,b"),
              HasSubstr("a host's name has no ','; write --hosts a,b, or in a hostfile one host a line"));
  EXPECT_THAT(ErrorIn("a[01-02]"), HasSubstr("scontrol show hostnames 'a[01-02]' lists the names"));
  EXPECT_THAT(ErrorIn("  a;b"), StartsWith("hosts:1:3: a host's name has no ';'"));
  EXPECT_THAT(ErrorIn("a slots=2 slots=3"), StartsWith("hosts:1:11: 'slots' is given twice"));
  EXPECT_THAT(ErrorIn("a:2 slots=3"), StartsWith("hosts:1:5: 'a' has its slots after the colon"));
  EXPECT_THAT(ErrorIn("a slots=4 max_slots=2"), HasSubstr("max_slots=2 is less than the 4 slots of 'a'"));
  EXPECT_THAT(ErrorIn("a:4 max_slots=2"), HasSubstr("max_slots=2 is less than the 4 slots of 'a'"));
}

TEST(ParseHostfile, RefusesAFileWithoutHosts) {
  EXPECT_THAT(ErrorIn(""), HasSubstr("no host in it"));
  EXPECT_THAT(ErrorIn("# a slots=2\n\n"), HasSubstr("no host in it"));
}

}  // namespace
}  // namespace dtrun::hosts
