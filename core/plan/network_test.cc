#include "core/plan/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/spec/read.h"

namespace dtrun::plan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::vector<Host> kThree = {{"node0", 0, 1}, {"node1", 1, 1}, {"node2", 2, 1}};

Result<std::vector<NetworkRule>> Rules(std::vector<std::string> sets,
                                       const std::vector<Host>& hosts = kThree) {
  spec::Request request;
  request.sets = std::move(sets);
  request.command = {"true"};
  const spec::Loaded loaded =
      spec::Load(request, [](auto, const auto&, const auto&) { return options::Schema(); });
  EXPECT_THAT(loaded.problems, IsEmpty());
  return NetworkRules(loaded.spec, hosts);
}

std::string ErrorOf(std::vector<std::string> sets) {
  const auto rules = Rules(std::move(sets));
  return rules ? "" : rules.error().text;
}

TEST(NetworkRules, EveryHostHasOne) {
  const auto rules = Rules({});
  ASSERT_TRUE(rules);
  ASSERT_THAT(*rules, SizeIs(3));
  EXPECT_EQ((*rules)[2].text, "auto");
}

TEST(NetworkRules, AHostMayHaveItsOwn) {
  const auto rules = Rules({"network.interface=eth0", "network.interface_on.node1=ens3"});
  ASSERT_TRUE(rules) << rules.error().text;
  EXPECT_EQ((*rules)[0].text, "eth0");
  EXPECT_EQ((*rules)[1].text, "ens3");
  EXPECT_THAT((*rules)[1].place, HasSubstr("network.interface_on"));
}

TEST(NetworkRules, OneHostNeedsNoneUnlessAsked) {
  EXPECT_THAT(*Rules({}, {{"node0", 0, 4}}), IsEmpty());
  EXPECT_THAT(*Rules({"network.interface=eth0"}, {{"node0", 0, 4}}), SizeIs(1));
}

TEST(NetworkRules, OneHostUsesNone) {
  const auto unused = [](std::vector<std::string> sets) {
    spec::Request request;
    request.sets = std::move(sets);
    request.command = {"true"};
    return UnusedInterface(
        spec::Load(request, [](auto, const auto&, const auto&) { return options::Schema(); }).spec);
  };
  EXPECT_EQ(unused({}), "");
  EXPECT_EQ(unused({"network.interface=off"}), "");
  EXPECT_THAT(unused({"network.interface=eth0"}),
              AllOf(HasSubstr("--set"), HasSubstr("network.interface has no effect"),
                    HasSubstr("backend.options.interface")));
  EXPECT_THAT(unused({"network.interface_on.node1=eth0"}), HasSubstr("network.interface_on has no effect"));
}

TEST(NetworkRules, OffIsNone) { EXPECT_THAT(*Rules({"network.interface=off"}), IsEmpty()); }

TEST(NetworkRules, MistakesHaveTheirPlace) {
  EXPECT_THAT(ErrorOf({"network.interface=eth*"}),
              AllOf(HasSubstr("--set"), HasSubstr("'eth*' is not the name")));
  EXPECT_THAT(ErrorOf({"network.interface_on.node7=eth0"}),
              AllOf(HasSubstr("'node7' is not a host of this job, which has node0, node1, node2"),
                    HasSubstr("did you mean 'node0'?")));
  EXPECT_THAT(ErrorOf({"network.interface_on.node1=^"}), HasSubstr("'^' names no interface"));
  EXPECT_THAT(ErrorOf({"network.interface=off", "network.interface_on.node1=eth0"}),
              HasSubstr("leave one of them out"));
}

}  // namespace
}  // namespace dtrun::plan
