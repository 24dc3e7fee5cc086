#include "core/plugin/search_path.h"

#include <gmock/gmock.h>

namespace dtrun::plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;

auto FolderIs(const std::string& path, const std::string& origin) {
  return ::testing::AllOf(Field(&Folder::path, std::filesystem::path(path)), Field(&Folder::origin, origin));
}

TEST(MissingFolders, AreThoseOfTheVariable) {
  const auto folders =
      OrderFolders({.plugin_dirs = {"/nowhere"}, .environment = "/usr:/none", .installed = {"/absent"}});
  EXPECT_THAT(MissingFolders(folders),
              ElementsAre("DTRUN_PLUGIN_PATH: there is no folder '/none'; correct it, or remove it"));
}

TEST(SearchPath, GoesFromTheCommandLineToTheCompiledInFolder) {
  EXPECT_THAT(OrderFolders({.plugin_dirs = {"/a"},
                            .environment = "/b:/c",
                            .config_folders = {"/d"},
                            .installed = {"/e"},
                            .compiled_in = "/f"}),
              ElementsAre(FolderIs("/a", "--plugin-dir"), FolderIs("/b", "DTRUN_PLUGIN_PATH"),
                          FolderIs("/c", "DTRUN_PLUGIN_PATH"), FolderIs("/d", "plugins.path"),
                          FolderIs("/e", "installed"), FolderIs("/f", "compiled in")));
}

TEST(SearchPath, LeavesOutEnvironmentAndConfigUnderElevatedPrivilege) {
  EXPECT_THAT(OrderFolders({.plugin_dirs = {"/a"},
                            .environment = "/b",
                            .config_folders = {"/d"},
                            .installed = {"/e"},
                            .compiled_in = "/f",
                            .secure = true}),
              ElementsAre(FolderIs("/a", "--plugin-dir"), FolderIs("/e", "installed"),
                          FolderIs("/f", "compiled in")));
}

TEST(SearchPath, NeverTakesAnEmptyElementForTheWorkingDirectory) {
  EXPECT_THAT(OrderFolders({.plugin_dirs = {""}, .environment = ":/b::", .installed = {}, .compiled_in = ""}),
              ElementsAre(FolderIs("/b", "DTRUN_PLUGIN_PATH")));
}

TEST(SearchPath, MakesFoldersAbsoluteAndNamesEachOnce) {
  const auto here = std::filesystem::current_path();
  EXPECT_THAT(OrderFolders({.plugin_dirs = {"x/../y/"}, .installed = {here / "y"}, .compiled_in = ""}),
              ElementsAre(FolderIs((here / "y").string(), "--plugin-dir")));
}

TEST(SearchPath, FindsTheInstalledFolderBesideTheProgram) {
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  EXPECT_THAT(InstalledFolders(), ElementsAre(program.parent_path().parent_path() / "lib/dtrun/plugins"));
}

TEST(SearchPath, ReadsKindAndNameFromAFileName) {
  const auto parsed = ParseFileName("libdtrun_launcher_per_process.so");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->first, Kind::kLauncher);
  EXPECT_EQ(parsed->second, "per_process");
  for (const char* other :
       {"libdtrun.so", "libdtrun_backend_.so", "libdtrun_backend_x.so.1", "libdtrun_thing_x.so",
        "libdtrun_.so", "dtrun_backend_x.so", "libdtrun_backend_X.so"}) {
    EXPECT_FALSE(ParseFileName(other).has_value()) << other;
  }
}

TEST(SearchPath, KnowsWhatANameIs) {
  for (const char* name : {"a", "gloo", "per-process", "x_2"}) EXPECT_TRUE(IsName(name)) << name;
  for (const char* name : {"", "2x", "-a", "A", "a.b", "a/b", "a b", "..", "éa"})
    EXPECT_FALSE(IsName(name)) << name;
  EXPECT_TRUE(IsName(std::string(32, 'a')));
  EXPECT_FALSE(IsName(std::string(33, 'a')));
  EXPECT_FALSE(IsName(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace dtrun::plugin
