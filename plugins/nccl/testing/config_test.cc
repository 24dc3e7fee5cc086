// Options that become the configuration of communicators.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake.h"

namespace dtrun::nccl_test {
namespace {

using conformance::Rank;
using conformance::Subject;
using nccl_plugin::nccl::Config;
using nccl_plugin::nccl::Version;
using ::testing::AllOf;
using ::testing::HasSubstr;

// What NCCL is given where these are set.
Config Given(const Fake& fake, std::map<std::string, std::string> options) {
  Subject(fake.Backend(std::move(options))).Play(1, [](Rank& rank) { EXPECT_TRUE(rank.Barrier().ok()); });
  const std::lock_guard lock(fake.nccl().mutex);
  return fake.nccl().last_config;
}

TEST(NcclConfig, IsThatOf218WhereNothingIsSet) {
  const Fake fake;
  const Config config = Given(fake, {});
  EXPECT_EQ(config.size, 48u);
  EXPECT_EQ(config.version, 21800u);
  for (const int value : {config.cga_cluster_size, config.min_ctas, config.max_ctas, config.split_share,
                          config.traffic_class, config.cta_policy, config.graph_usage_mode})
    EXPECT_EQ(value, nccl_plugin::nccl::kUndefined);
  EXPECT_EQ(fake.nccl().last_net_name, "");
  EXPECT_EQ(fake.nccl().comms, 0);
}

TEST(NcclConfig, TakesWhatEveryLibraryKnows) {
  const Fake fake;
  fake.nccl().version = Version(2, 18, 3);
  const Config config =
      Given(fake, {{"min_ctas", "2"}, {"max_ctas", "4"}, {"cga_cluster_size", "0"}, {"net_name", "Socket"}});
  EXPECT_EQ(config.size, 48u);
  EXPECT_EQ(config.min_ctas, 2);
  EXPECT_EQ(config.max_ctas, 4);
  EXPECT_EQ(config.cga_cluster_size, 0);
  EXPECT_EQ(fake.nccl().last_net_name, "Socket");
}

TEST(NcclConfig, SaysTheVersionOfTheNewestThatIsSet) {
  const Fake fake;
  fake.nccl().version = Version(2, 30, 7);
  Config config = Given(fake, {{"traffic_class", "3"}, {"collnet", "off"}, {"cta_policy", "efficiency"}});
  EXPECT_EQ(config.version, 22700u);
  EXPECT_EQ(config.traffic_class, 3);
  EXPECT_EQ(config.collnet_enable, 0);
  EXPECT_EQ(config.cta_policy, 1);
  config = Given(fake, {{"cta_policy", "zero"},
                        {"nvls_ctas", "8"},
                        {"channels_per_net_peer", "2"},
                        {"nvlink_centric_sched", "on"},
                        {"graph_usage", "none"},
                        {"max_p2p_peers", "16"}});
  EXPECT_EQ(config.version, 23000u);
  EXPECT_EQ(config.cta_policy, 2);
  EXPECT_EQ(config.nvls_ctas, 8);
  EXPECT_EQ(config.channels_per_net_peer, 2);
  EXPECT_EQ(config.nvlink_centric_sched, 1);
  EXPECT_EQ(config.graph_usage_mode, 0);
  EXPECT_EQ(config.max_p2p_peers, 16);
  EXPECT_EQ(config.traffic_class, nccl_plugin::nccl::kUndefined);
}

TEST(NcclConfig, ThatTheLibraryDoesNotKnowIsRefusedWithBothVersions) {
  const Fake fake;
  fake.nccl().version = Version(2, 26, 5);
  EXPECT_EQ(RefusalOf(fake.Backend({{"traffic_class", "3"}})), "it starts");
  EXPECT_THAT(RefusalOf(fake.Backend({{"cta_policy", "efficiency"}})),
              AllOf(HasSubstr("backend.options.cta_policy needs NCCL 2.27.0 or newer, and this is 2.26.5"),
                    HasSubstr("backend.nccl.library")));
  fake.nccl().version = Version(2, 27, 3);
  EXPECT_EQ(RefusalOf(fake.Backend({{"cta_policy", "efficiency"}})), "it starts");
  EXPECT_THAT(RefusalOf(fake.Backend({{"cta_policy", "zero"}})),
              HasSubstr("cta_policy = \"zero\" needs NCCL 2.28.0 or newer"));
}

TEST(NcclConfig, OfMoreThanTheMostIsRefused) {
  const Fake fake;
  EXPECT_THAT(RefusalOf(fake.Backend({{"min_ctas", "8"}, {"max_ctas", "4"}})),
              HasSubstr("min_ctas is 8, more than max_ctas, which is 4"));
}

}  // namespace
}  // namespace dtrun::nccl_test
