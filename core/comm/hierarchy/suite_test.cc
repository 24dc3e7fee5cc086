// The hierarchy over two hosts: tests what is particular to it; the suite of all backends covers the rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sdk/conformance/backend_suite.h"
#include "sdk/conformance/subject.h"

namespace dtrun::conformance {
namespace {

BackendUnderTest TheHierarchy() {
  BackendUnderTest backend = {
      .plugin = HIERARCHY_PLUGIN_FILE,
      .options = {{"hosts", "2"}, {"deal", HIERARCHY_DEAL}, {"wire", HIERARCHY_WIRE}},
      .skips = {{"Collectives.SixteenBitSumsAreAccumulatedInFloat32",
                 "sums are rounded once per host, see docs/decisions/007-hierarchy.md"},
                {"Collectives.SixteenBitAveragesDoNotOverflow",
                 "sums are rounded once per host, see docs/decisions/007-hierarchy.md"}}};
  // Gigabytes are cut into rounds in the same way, however ranks are dealt to hosts and whatever the wire is.
  if (std::string(HIERARCHY_DEAL) != "blocks") {
    for (const char* greedy :
         {"Sizes.AllreduceOfMoreThan2To31Elements", "Sizes.BroadcastOfMoreThan2To31Elements",
          "Messages.OfMoreThanTwoGibibytesArrive"})
      backend.skips[greedy] = "hierarchy_blocks_test has it";
  }
  return backend;
}
const BackendUnderTest kHierarchy = TheHierarchy();

const bool kRegistered = RegisterBackendSuite(kHierarchy);

// An allreduce of S bytes among h leaders sends 2S(h-1)/h from each, over any wire that sends the minimum. So
// each leader must give it every byte once, and no other rank may give it any.
TEST(Hierarchy, GivesAVectorToTheWireOncePerHost) {
  const Subject subject(kHierarchy);
  subject.Play(7, [](Rank& rank) {
    constexpr std::size_t kCount = 1'300'001;  // several chunks
    std::vector<float> data(kCount, 1);
    EXPECT_TRUE(rank.Do(AllreduceOp(data.data(), data.data(), kCount, DTRUN_FLOAT32, DTRUN_SUM)).ok());
    EXPECT_EQ(data, std::vector<float>(kCount, 7));
    const auto on_the_wire = ::testing::AllOf(::testing::StartsWith("world (between hosts): "),
                                              ::testing::EndsWith(" steps, 5200004 bytes"));
    const bool leads = rank.rank() == 0 || rank.rank() == (std::string(HIERARCHY_DEAL) == "cards" ? 1 : 4);
    EXPECT_THAT(rank.Snapshot(), ::testing::Contains(on_the_wire).Times(leads ? 1 : 0));
  });
}

TEST(Hierarchy, RefusesMessagesAmongManyRanksWithAdviceAndGoesOn) {
  const Subject subject(kHierarchy);
  subject.Play(33, [](Rank& rank) {
    float value = 1;
    Outcome refusal;
    EXPECT_EQ(rank.Start(SendOp(&value, 1, DTRUN_FLOAT32, (rank.rank() + 1) % 33, 0), &refusal), nullptr);
    EXPECT_EQ(refusal.code, DTRUN_UNSUPPORTED) << refusal;
    EXPECT_THAT(refusal.text, ::testing::HasSubstr("subset"));
    EXPECT_TRUE(rank.Do(AllreduceOp(&value, &value, 1, DTRUN_FLOAT32, DTRUN_SUM)).ok());
    EXPECT_EQ(value, 33);
  });
}

}  // namespace
}  // namespace dtrun::conformance
