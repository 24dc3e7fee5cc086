#include "core/hosts/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::hosts {
namespace {

using ::testing::HasSubstr;

const std::vector<HostSlots> kWorkers = {{"worker-0", 4}, {"worker-1", 4}, {"me@worker-2", 2}, {"bare", {}}};

// "worker-0:2[2,3] bare": hosts with their slots and GPUs, or what is wrong.
std::string Shown(const Result<Selection>& selected) {
  if (!selected) return selected.error().text;
  std::string out;
  for (const HostSlots& host : selected->hosts) {
    const auto gpus = selected->gpus.find(host.name);
    out += (out.empty() ? "" : " ") + ToText(host);
    if (gpus != selected->gpus.end()) out += "[" + gpus->second + "]";
  }
  return out;
}
std::string Included(std::string_view text) { return Shown(Include(kWorkers, text, "hosts.txt")); }
std::string Excluded(std::string_view text) { return Shown(Exclude(kWorkers, text, "hosts.txt")); }

TEST(Include, TakesSlotsInTheOrderOfTheList) {
  EXPECT_EQ(Included("worker-1:3,0@worker-0:2"), "worker-0:1[2] worker-1:2[0,3]");
  EXPECT_EQ(Included("worker-1"), "worker-1:4[0,1,2,3]");
  EXPECT_EQ(Included("worker-2:1"), "me@worker-2:1[1]");
  EXPECT_EQ(Included("bare@worker-0"), "worker-0:4[0,1,2,3] bare");
  EXPECT_EQ(Included("bare:7"), "bare:1[7]");
  EXPECT_EQ(Shown(Include({{"fe80::1", 2}}, "[fe80::1]:1", "x")), "[fe80::1]:1[1]");
}

TEST(Include, OfOneHostInSeveralPlacesAddsUp) {
  EXPECT_EQ(Included("worker-0:1@worker-0:0,1"), "worker-0:2[0,1]");
  EXPECT_EQ(Included("worker-0@worker-0:3"), "worker-0:1[3]") << "as in DeepSpeed";
}

TEST(Exclude, LeavesOutSlotsAndHosts) {
  EXPECT_EQ(Excluded("worker-0:1"), "worker-0:3[0,2,3] worker-1:4 me@worker-2:2 bare");
  EXPECT_EQ(Excluded("worker-0@bare"), "worker-1:4 me@worker-2:2");
  EXPECT_EQ(Excluded("worker-2:0,1@worker-0@bare"), "worker-1:4") << "a host without slots is left out";
  EXPECT_THAT(Excluded("worker-0@worker-1@worker-2@bare"), HasSubstr("leaves no host of hosts.txt"));
  EXPECT_THAT(Excluded("bare:0"), HasSubstr("name those to use: --include bare:0,1"));
}

TEST(Include, NamesWhatIsNotThere) {
  EXPECT_EQ(Included("worker-9:0"), "host 'worker-9' is not in hosts.txt; did you mean 'worker-0'?");
  EXPECT_EQ(Included("elsewhere"),
            "host 'elsewhere' is not in hosts.txt; there are worker-0, worker-1, me@worker-2, bare");
  EXPECT_THAT(Included("worker-0,worker-1"), HasSubstr("write @ between hosts"));
  EXPECT_EQ(Included("worker-0:4"), "host 'worker-0' has no slot 4: it has 4, 0 to 3");
  EXPECT_EQ(Excluded("worker-1:9"), "host 'worker-1' has no slot 9: it has 4, 0 to 3");
  for (const char* text :
       {"worker-0:", "worker-0:a", "worker-0:-1", "worker-0:0,,1", "worker-0:0:1", "bare:4096"})
    EXPECT_THAT(Included(text), HasSubstr("is not a number from 0")) << text;
  for (const char* text : {"", "@", ":0", "worker-0@"})
    EXPECT_THAT(Included(text), HasSubstr("a host has no name")) << text;
}

TEST(CheckGpuList, TakesWhatCudaTakes) {
  for (const char* list : {"0", "2,3", " 2, 3 ", "GPU-aa,MIG-bb", "", "-1"})
    EXPECT_TRUE(CheckGpuList(list)) << list;
  for (const char* list : {"banana", "0,", "0,-1", "GPU-", "0;1", "GPU-a b"})
    EXPECT_THAT(CheckGpuList(list).error().text, HasSubstr("is no GPU")) << list;
  EXPECT_THAT(CheckGpuList("0,1,0").error().text, HasSubstr("'0' stands twice"));
}

}  // namespace
}  // namespace dtrun::hosts
