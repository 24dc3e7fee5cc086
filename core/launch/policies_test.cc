#include "core/launch/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/launch/testing.h"

namespace dtrun::launch {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::SettingsOf;
using ::testing::StartsWith;
using namespace std::chrono_literals;

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

TEST(WrongValues, AreAllNamedWithTheirPlaces) {
  EXPECT_THAT(WrongValues(SettingsOf({})), ::testing::IsEmpty());
  const std::vector<std::string> cases = {
      R"(restart.on=["oom"])", "watch.stall=soon",    "cluster.root=a:b",
      "job.dialects=horvod",   "logs.mode=9",         "network.interface=10.0.0.0/99",
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
    return PinOf(SettingsOf(set.empty() ? std::vector<std::string>() : std::vector{set}).backend.sha256, file);
  };
  EXPECT_EQ(pin(""), "");
  EXPECT_EQ(pin("backend.sha256=" + other), "sha256 " + other);
  EXPECT_EQ(pin("backend.sha256=" + other + "," + own), "sha256 " + own);
  EXPECT_EQ(pin("backend.sha256=" + other + "," + std::string(64, 'b')), "sha256 " + other);
}

}  // namespace
}  // namespace dtrun::launch
