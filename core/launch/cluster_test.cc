#include "core/launch/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/launch/testing.h"

namespace dtrun::launch {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::SettingsOf;
using ::testing::StartsWith;
using namespace std::chrono_literals;

// Two manually started hosts, and additional options.
spec::JobSpec ManualWith(std::vector<std::string> more) {
  more.insert(more.end(), {"cluster.hosts=node0,node1", "cluster.connect=manual"});
  return SettingsOf(std::move(more));
}

// The user has no key except the variable's.
class ClusterOfTest : public ::testing::Test {
 protected:
  ClusterOfTest() {
    ::setenv("HOME", "/nowhere", 1);
    ::setenv(kClusterKey, std::string(64, 'a').c_str(), 1);
  }
  ~ClusterOfTest() override { ::unsetenv(kClusterKey); }
};

TEST_F(ClusterOfTest, IsNoneOfOneMachine) {
  const auto cluster = ClusterOf(SettingsOf({}));
  ASSERT_TRUE(cluster) << cluster.error().text;
  EXPECT_FALSE(*cluster);
  const auto request = JoinRequestOf(SettingsOf({}));
  ASSERT_TRUE(request);
  EXPECT_FALSE(*request);
}

TEST_F(ClusterOfTest, IsNoneOfThisMachineByName) {
  const auto cluster = ClusterOf(SettingsOf({"cluster.hosts=localhost:2"}));
  ASSERT_TRUE(cluster) << cluster.error().text;
  EXPECT_FALSE(*cluster);
}

TEST_F(ClusterOfTest, HasTheHostsAndWhereTheRootIs) {
  const auto cluster = ClusterOf(ManualWith({"cluster.root=[fe80::1]:29400", "cluster.host_index=0"}));
  ASSERT_TRUE(cluster) << cluster.error().text;
  ASSERT_TRUE(*cluster);
  EXPECT_EQ((*cluster)->connect, membership::Cluster::Connect::kManual);
  EXPECT_THAT((*cluster)->hosts, ElementsAre("node0", "node1"));
  EXPECT_THAT((*cluster)->names, ElementsAre("fe80::1"));
  EXPECT_EQ((*cluster)->port, 29400);
  EXPECT_EQ((*cluster)->here, 0);
  EXPECT_EQ((*cluster)->min_hosts, 2u);
  EXPECT_EQ((*cluster)->key_origin, kClusterKey);
}

TEST_F(ClusterOfTest, TakesAnIpv6AddressWithoutBracketsAsAWhole) {
  const auto cluster =
      ClusterOf(ManualWith({"cluster.root=fd00::2", "cluster.root_port=29400", "cluster.host_index=0"}));
  ASSERT_TRUE(cluster) << cluster.error().text;
  EXPECT_THAT((*cluster)->names, ElementsAre("fd00::2"));
  EXPECT_EQ((*cluster)->port, 29400);
}

TEST_F(ClusterOfTest, SaysWhatIsWrongWithTheRoot) {
  for (const char* root : {"node0:0", "node0:65536", "node0:x", ":29400", "[fe80::1",
                           "::::", "[fe80::1]x:29400", "[node0]:29400", "http://node0:29400"}) {
    const auto cluster = ClusterOf(ManualWith({std::string("cluster.root=") + root, "cluster.host_index=0"}));
    ASSERT_FALSE(cluster) << root;
    EXPECT_THAT(cluster.error().text, AllOf(HasSubstr("cluster.root"), HasSubstr(root)));
  }
}

TEST_F(ClusterOfTest, OnlyAnotherHostThanTheFirstJoins) {
  const auto first = JoinRequestOf(ManualWith({"cluster.root=node0:29400", "cluster.host_index=0"}));
  ASSERT_TRUE(first) << first.error().text;
  EXPECT_FALSE(*first);
  const auto second = JoinRequestOf(ManualWith({"cluster.root=node0:29400", "cluster.host_index=1"}));
  ASSERT_TRUE(second) << second.error().text;
  ASSERT_TRUE(*second);
  EXPECT_EQ((*second)->key_origin, kClusterKey);
}

TEST_F(ClusterOfTest, AManualStartNeedsARootANumberAndAKey) {
  EXPECT_THAT(ClusterOf(ManualWith({"cluster.host_index=0"})).error().text,
              HasSubstr("needs cluster.root = \"ADDRESS:PORT\""));
  EXPECT_THAT(ClusterOf(ManualWith({"cluster.root=node0:29400"})).error().text,
              HasSubstr("give --host-index"));
  EXPECT_THAT(ClusterOf(ManualWith({"cluster.root=node0:29400", "cluster.host_index=2"})).error().text,
              HasSubstr("cluster.host_index: 2 is out of range"));
  ::unsetenv(kClusterKey);
  const auto spec = ManualWith({"cluster.root=node0:29400", "cluster.host_index=0"});
  EXPECT_THAT(ClusterOf(spec).error().text, HasSubstr("needs a key that all hosts share"));
  KeyRule rule;
  rule.refusal = "no secret";
  EXPECT_EQ(ClusterOf(spec, rule).error().text, "no secret");
  rule.otherwise = KeyRule::Otherwise::kText;
  rule.origin = "--rdzv-id";
  const auto cluster = ClusterOf(spec, rule);
  ASSERT_TRUE(cluster) << cluster.error().text;
  EXPECT_EQ((*cluster)->key_origin, "--rdzv-id");
}

TEST(RestartPolicyOf, ReadsHowOftenHowSoonAndWhy) {
  const auto policy = RestartPolicyOf(
      SettingsOf({"restart.max=3", "restart.backoff=2s", R"(restart.on=["network", "out-of-memory"])"}));
  ASSERT_TRUE(policy) << policy.error().text;
  EXPECT_EQ(policy->max, 3);
  EXPECT_EQ(policy->backoff, 2s);
  EXPECT_THAT(policy->on, ElementsAre(verdict::ExitClass::kOutOfMemory, verdict::ExitClass::kNetwork));
}

TEST(RestartPolicyOf, NamesTheNearestClass) {
  const std::pair<const char*, const char*> cases[] = {{"netwrok", "did you mean 'network'?"},
                                                       {"oom", "did you mean 'out-of-memory'?"},
                                                       {"preemption", "restart.on lists some of user-error"}};
  for (const auto& [word, hint] : cases) {
    const auto policy = RestartPolicyOf(SettingsOf({std::string("restart.on=[\"") + word + "\"]"}));
    ASSERT_FALSE(policy) << word;
    EXPECT_THAT(policy.error().text, AllOf(StartsWith("--set"), HasSubstr(word), HasSubstr(hint)));
  }
}

TEST(StallPolicyOf, TakesOffOrADuration) {
  const auto off = StallPolicyOf(SettingsOf({"watch.stall=off"}));
  ASSERT_TRUE(off);
  EXPECT_EQ(off->after, observe::StallPolicy().after);
  const auto policy = StallPolicyOf(SettingsOf({"watch.stall=10m", "watch.on_stall=fail"}));
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->after, 10min);
  EXPECT_TRUE(policy->fails);
  EXPECT_FALSE(StallPolicyOf(SettingsOf({"watch.on_stall=explain"}))->fails);
  EXPECT_TRUE(StallPolicyOf(SettingsOf({"watch.on_stall=restart"}))->fails);
  EXPECT_TRUE(RestartPolicyOf(SettingsOf({"watch.on_stall=restart"}))->after_stall);
  EXPECT_FALSE(RestartPolicyOf(SettingsOf({"watch.on_stall=fail"}))->after_stall);
}

TEST(StallPolicyOf, SaysWhatAnotherTextShouldBe) {
  for (const char* text : {"30", "1ms", "soon"}) {
    const auto policy = StallPolicyOf(SettingsOf({std::string("watch.stall=\"") + text + "\""}));
    ASSERT_FALSE(policy) << text;
    EXPECT_THAT(policy.error().text, HasSubstr("expected \"off\" or a duration from 1s"));
  }
  EXPECT_THAT(StallPolicyOf(SettingsOf({"watch.stall=\"30\""})).error().text,
              HasSubstr("did you mean \"30s\"?"));
}

TEST(MetricsOf, TakesANumericAddressAndAPort) {
  EXPECT_EQ(MetricsOf(SettingsOf({}))->address, "");
  EXPECT_EQ(MetricsOf(SettingsOf({"metrics.listen=localhost:9400"}))->address, "127.0.0.1");
  const auto six = MetricsOf(SettingsOf({"metrics.listen=[::1]:0"}));
  ASSERT_TRUE(six) << six.error().text;
  EXPECT_EQ(six->address, "::1");
  EXPECT_EQ(six->port, 0);
  for (const char* text :
       {"9400", "127.0.0.1", ":9400", "node0:9400", "127.0.0.1:99999", "127.0.0.1:x", "off"}) {
    const auto listening = MetricsOf(SettingsOf({std::string("metrics.listen=\"") + text + "\""}));
    ASSERT_FALSE(listening) << text;
    EXPECT_THAT(listening.error().text, HasSubstr("127.0.0.1:9400")) << text;
  }
}

TEST(MetricsOf, NeedsATokenBeyondLoopback) {
  const auto open = MetricsOf(SettingsOf({"metrics.listen=0.0.0.0:9400"}));
  ASSERT_FALSE(open);
  EXPECT_THAT(open.error().text, AllOf(StartsWith("--set"), HasSubstr("metrics.token_file")));
  const std::string file = ::testing::TempDir() + "/dtrun-token";
  const auto with = [&](const std::string& token, mode_t mode) {
    std::ofstream(file) << token;
    ::chmod(file.c_str(), mode);
    return MetricsWithToken(SettingsOf({"metrics.listen=0.0.0.0:9400", "metrics.token_file=" + file}));
  };
  const auto listening = with("0123456789abcdef\n", 0600);
  ASSERT_TRUE(listening) << listening.error().text;
  EXPECT_EQ(listening->token, "0123456789abcdef");
  EXPECT_THAT(with("short", 0600).error().text, HasSubstr("at least 16 characters"));
  EXPECT_THAT(with("0123456789 abcdef", 0600).error().text, HasSubstr("one word"));
  EXPECT_THAT(with("0123456789abcdef", 0644).error().text, HasSubstr("chmod 600"));
  std::filesystem::remove(file);
}

TEST(WrongValues, AreAllNamedWithTheirPlaces) {
  EXPECT_THAT(WrongValues(SettingsOf({})), ::testing::IsEmpty());
  const std::vector<std::string> cases = {R"(restart.on=["oom"])", "watch.stall=soon",
                                          "cluster.root=a:b",      "job.dialects=horvod",
                                          "logs.mode=9",           "network.interface=10.0.0.0/99",
                                          "output.ranks=0,x",      R"(cluster.remote_shell=[""])"};
  std::vector<std::string> all;
  for (const std::string& one : cases) {
    const auto wrong = WrongValues(SettingsOf({one}));
    const std::string key = one.substr(0, one.find('='));
    ASSERT_EQ(wrong.size(), 1u) << one;
    EXPECT_THAT(wrong[0].text, StartsWith("--set " + key + ":"));
    if (key != "cluster.root" && key != "cluster.remote_shell") all.push_back(one);  // one error per table
  }
  EXPECT_EQ(WrongValues(SettingsOf(all)).size(), all.size());
  EXPECT_EQ(WrongValues(SettingsOf({"cluster.remote_shell=[]"})).size(), 1u);
}

TEST(PinOf, OfSeveralIsTheOneThatTheFileHas) {
  const std::string file = ::testing::TempDir() + "/pinned";
  std::ofstream(file) << "abc";
  // As `printf abc | sha256sum` prints it.
  const std::string own = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  const std::string other(64, 'a');
  const auto pin = [&](const std::string& set) {
    return PinOf(SettingsOf(set.empty() ? std::vector<std::string>() : std::vector{set}).backend.sha256,
                 file);
  };
  EXPECT_EQ(pin(""), "");
  EXPECT_EQ(pin("backend.sha256=" + other), "sha256 " + other);
  EXPECT_EQ(pin("backend.sha256=" + other + "," + own), "sha256 " + own);
  EXPECT_EQ(pin("backend.sha256=" + other + "," + std::string(64, 'b')), "sha256 " + other);
}

}  // namespace
}  // namespace dtrun::launch
