#include "core/binding/machine.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>

#include "core/base/number.h"
#include "core/binding/policy.h"

namespace dtrun::binding {
namespace {

// The affinity mask of this thread, restored at the end.
class Affinity {
 public:
  Affinity() { EXPECT_EQ(::sched_getaffinity(0, sizeof before_, &before_), 0); }
  ~Affinity() { EXPECT_EQ(::sched_setaffinity(0, sizeof before_, &before_), 0); }
  Affinity(const Affinity&) = delete;
  Affinity& operator=(const Affinity&) = delete;

  int count() const { return CPU_COUNT(&before_); }
  // Restricts the mask to one processor and returns its number.
  int Narrow() {
    int processor = 0;
    while (!CPU_ISSET(processor, &before_)) ++processor;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    EXPECT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    return processor;
  }

 private:
  cpu_set_t before_{};
};

TEST(ReadMachine, CountsTheProcessorsThatThisThreadMayUse) {
  const Affinity affinity;
  const auto topology = ReadMachine();
  ASSERT_TRUE(topology) << topology.error().text;
  EXPECT_EQ(topology->processor_count(), affinity.count());
}

TEST(ReadMachine, StaysInsideTheMaskItWasGiven) {
  Affinity affinity;
  const int processor = affinity.Narrow();
  const auto topology = ReadMachine();
  ASSERT_TRUE(topology) << topology.error().text;
  ASSERT_EQ(topology->cores.size(), 1u);
  EXPECT_EQ(topology->cores[0].processors, std::vector<int>{processor});
}

TEST(ReadMachine, LeavesTheEnvironmentAsItWas) {
  ::setenv("HWLOC_PLUGINS_PATH", "mine", 1);
  ASSERT_TRUE(ReadMachine());
  EXPECT_STREQ(std::getenv("HWLOC_PLUGINS_PATH"), "mine");
  ::unsetenv("HWLOC_PLUGINS_PATH");
  ASSERT_TRUE(ReadMachine());
  EXPECT_EQ(std::getenv("HWLOC_PLUGINS_PATH"), nullptr);
}

TEST(ReadMachine, CanBeSentAsText) {
  const auto topology = ReadMachine();
  ASSERT_TRUE(topology);
  EXPECT_EQ(*ParseTopology(ToText(*topology)), *topology);
}

TEST(ImagineMachine, HasSocketsNodesCoresAndThreads) {
  if (!KnowsMachine()) GTEST_SKIP() << "built without hwloc";
  const auto topology = ImagineMachine("pack:2 numa:2 core:2 pu:2");
  ASSERT_TRUE(topology) << topology.error().text;
  EXPECT_EQ(ToText(*topology), "0.0=0+1,2+3;0.1=4+5,6+7;1.2=8+9,10+11;1.3=12+13,14+15");
}

TEST(ImagineMachine, KeepsNodesTogetherWhoseNumbersAlternate) {
  if (!KnowsMachine()) GTEST_SKIP() << "built without hwloc";
  const auto topology = ImagineMachine("pack:1 numa:2 core:2 pu:1(indexes=0,2,1,3)");
  ASSERT_TRUE(topology) << topology.error().text;
  EXPECT_EQ(ToText(*topology), "0.0=0,2;0.1=1,3");
}

TEST(ImagineMachine, HoldsEightRanksOfABigServer) {
  if (!KnowsMachine()) GTEST_SKIP() << "built without hwloc";
  const auto topology = ImagineMachine("pack:2 numa:4 core:16 pu:2");
  ASSERT_TRUE(topology) << topology.error().text;
  const Binding binding = Bind(*topology, 8, Policy::kAuto, {});
  EXPECT_EQ(NumberList(binding.processors[7]), "224-255");
  EXPECT_EQ(binding.cores, 128);
}

TEST(ImagineMachine, QuotesWhatItDoesNotUnderstand) {
  if (!KnowsMachine()) GTEST_SKIP() << "built without hwloc";
  EXPECT_NE(ImagineMachine("teapot:2").error().text.find("'teapot:2'"), std::string::npos);
}

}  // namespace
}  // namespace dtrun::binding
