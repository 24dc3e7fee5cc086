#include "core/launch/launchers.h"

#include <gmock/gmock.h>

#include "core/plugin/testing/support.h"

namespace dtrun::launch {
namespace {

// From bad_launcher.c, which takes its first host's name from an option.
std::string FirstHostOf(LauncherPlugins& launchers) {
  const auto found = launchers.FindHosts("bad", {{"FAULT", "well"}});
  return found ? found->hosts.front().name : found.error().text;
}

dtrun_options With(const std::string& first_host) {
  dtrun_options options;
  options::Spec spec;
  spec.key = "first_host";
  options.Set(spec, {first_host, {}});
  return options;
}

TEST(LauncherPlugins, SeeTheOptionsOfTheConfigThatNamesThem) {
  plugin::SetProbeProgram(DTRUN_TEST_PROBE);
  const std::filesystem::path folder = std::filesystem::canonical(DTRUN_TEST_PLUGIN_DIR);
  LauncherPlugins unnamed({{folder, "test"}});
  EXPECT_EQ(FirstHostOf(unnamed), "node0");
  LauncherPlugins named({{folder, "test"}});
  named.SetOptions(folder / "libdtrun_launcher_bad.so", With("login1"));
  EXPECT_EQ(FirstHostOf(named), "login1");
  LauncherPlugins another({{folder, "test"}});
  another.SetOptions(folder / "libdtrun_launcher_other.so", With("login1"));
  EXPECT_EQ(FirstHostOf(another), "node0");
}

}  // namespace
}  // namespace dtrun::launch
