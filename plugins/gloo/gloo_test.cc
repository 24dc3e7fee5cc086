// The gloo plugin: the suite's cases are inherited; this file has gloo's own cases.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>

#include "sdk/conformance/backend_suite.h"
#include "sdk/conformance/subject.h"

namespace dtrun::conformance {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;
using testing::ThrowsMessage;
using ::testing::UnorderedElementsAre;

// Threads, except under sdk/conformance/launch.py, which stands in for a library's own launcher.
LaunchedProcess Process() {
  if (std::getenv("DTRUN_SUITE_RANK") == nullptr) return {};
  return ProcessFromEnvironment("DTRUN_SUITE_RANK", "DTRUN_SUITE_SIZE", "DTRUN_SUITE_FOLDER");
}

const bool kRegistered = RegisterBackendSuite({.plugin = GLOO_PLUGIN_FILE, .process = Process()});

Subject GlooOn(const std::string& interface) {
  return Subject({GLOO_PLUGIN_FILE, {{"interface", interface}}});
}

TEST(GlooLaunch, ReportsTheLibraryAndTheLoopbackOfOneHost) {
  const Subject::Launch launch = Subject({.plugin = GLOO_PLUGIN_FILE}).LaunchInfo(1);
  EXPECT_THAT(launch.facts.at("library"), AllOf(StartsWith("Gloo "), HasSubstr("private copy")));
  EXPECT_THAT(launch.facts.at("library_path"), EndsWith("libglpN.so.0"));
  EXPECT_EQ(launch.facts.at("interface"), "lo 127.0.0.1");
  EXPECT_THAT(launch.env, IsEmpty());
}

TEST(GlooLaunch, TellsTorchAboutAnInterfaceThatTheUserChose) {
  EXPECT_THAT(GlooOn("lo").LaunchInfo(2).env, UnorderedElementsAre(Pair("GLOO_SOCKET_IFNAME", "lo")));
  EXPECT_THAT(GlooOn("127.0.0.1").LaunchInfo(2).env, UnorderedElementsAre(Pair("GLOO_SOCKET_IFNAME", "lo")));
}

TEST(GlooOptions, RefuseAnInterfaceThatThisHostLacks) {
  EXPECT_THAT([] { GlooOn("lp"); },
              ThrowsMessage<std::runtime_error>(
                  AllOf(HasSubstr("'lp'"), HasSubstr("lo 127.0.0.1"), HasSubstr("did you mean 'lo'"))));
  EXPECT_THAT([] { GlooOn("203.0.113.77"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("'203.0.113.77' is not an address of this host")));
}

}  // namespace
}  // namespace dtrun::conformance
