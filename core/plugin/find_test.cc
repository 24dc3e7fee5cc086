#include <gmock/gmock.h>

#include "core/plugin/plugin.h"
#include "core/plugin/testing/support.h"

namespace dtrun::plugin {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Find, TakesTheFirstFolderAndListsTheOthersAsShadowed) {
  const testing::TempFolder first, second;
  const auto path = first.Write("libdtrun_backend_demo.so");
  const auto later = second.Write("libdtrun_backend_demo.so");
  const auto file =
      Find(Kind::kBackend, "demo", {{first.path(), "--plugin-dir"}, {second.path(), "installed"}});
  ASSERT_TRUE(file.ok()) << file.error().text;
  EXPECT_EQ(file->path, path);
  EXPECT_EQ(file->origin, "--plugin-dir");
  EXPECT_THAT(file->shadowed, ElementsAre(later));
}

TEST(Find, ResolvesLinks) {
  const testing::TempFolder folder;
  const auto real = folder.Write("demo-1.2.so");
  std::filesystem::create_symlink(real, folder.path() / "libdtrun_backend_demo.so");
  const auto file = Find(Kind::kBackend, "demo", {{folder.path(), "installed"}});
  ASSERT_TRUE(file.ok()) << file.error().text;
  EXPECT_EQ(file->path, real);
}

TEST(Find, WritesADashAsAnUnderscoreInTheFileName) {
  const testing::TempFolder folder;
  folder.Write("libdtrun_launcher_per_process.so");
  EXPECT_TRUE(Find(Kind::kLauncher, "per-process", {{folder.path(), "installed"}}).ok());
}

TEST(Find, SaysWhatExistsWhatIsNearAndWhereItLooked) {
  const testing::TempFolder folder;
  folder.Write("libdtrun_backend_gloo.so");
  folder.Write("libdtrun_backend_mpi.so");
  folder.Write("libdtrun_launcher_glo.so");
  const auto file =
      Find(Kind::kBackend, "glo", {{folder.path(), "--plugin-dir"}, {"/nonexistent/x", "installed"}});
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, DTRUN_NOT_FOUND);
  EXPECT_THAT(file.error().text,
              AllOf(HasSubstr("there is no backend plugin 'glo'"), HasSubstr("did you mean 'gloo'?"),
                    HasSubstr("gloo, mpi"), HasSubstr(folder.path().string() + " (--plugin-dir)"),
                    HasSubstr("/nonexistent/x (installed, cannot be read: no such file or directory)"),
                    HasSubstr("there is a launcher of that name"), HasSubstr("libdtrun_backend_glo.so")));
}

TEST(Find, KnowsWhatOthersCallLaunchers) {
  const auto missing = [](Kind kind, const char* name) { return Find(kind, name, {}).error().text; };
  EXPECT_THAT(missing(Kind::kLauncher, "ssh"),
              AllOf(HasSubstr("leave launcher.name out: hosts of cluster.hosts are reached by ssh already"),
                    Not(HasSubstr("libdtrun_launcher_ssh.so"))));
  EXPECT_THAT(missing(Kind::kLauncher, "srun"), HasSubstr("did you mean 'slurm'?"));
  EXPECT_THAT(missing(Kind::kLauncher, "mpiexec"), HasSubstr("did you mean 'mpirun'?"));
  EXPECT_THAT(missing(Kind::kBackend, "ssh"), HasSubstr("libdtrun_backend_ssh.so"));
}

TEST(Find, RefusesNamesThatAreNoNamesBeforeLookingAtAnyFile) {
  for (const char* name : {"../gloo", "a/b", "", "Gloo", "x.so"}) {
    const auto file = Find(Kind::kBackend, name, {});
    ASSERT_FALSE(file.ok()) << name;
    EXPECT_EQ(file.error().code, DTRUN_INVALID_ARGUMENT) << name;
  }
  EXPECT_EQ(Find(Kind::kBackend, "Gloo", {}).error().text,
            "'Gloo' is not a plugin name; did you mean 'gloo'?");
}

TEST(Find, TakesAnAbsolutePathVerbatim) {
  const testing::TempFolder folder;
  const auto path = folder.Write("libdtrun_backend_demo.so");
  const auto file = Find(Kind::kBackend, path.string(), {});
  ASSERT_TRUE(file.ok()) << file.error().text;
  EXPECT_EQ(file->name, "demo");
}

TEST(Find, RefusesAPathOfAnotherKindOrOneThatIsMissing) {
  const testing::TempFolder folder;
  const auto path = folder.Write("libdtrun_backend_demo.so");
  EXPECT_THAT(Find(Kind::kLauncher, path.string(), {}).error().text,
              HasSubstr("does not have the file name of a launcher plugin"));
  EXPECT_THAT(Find(Kind::kBackend, (folder.path() / "libdtrun_backend_no.so").string(), {}).error().text,
              HasSubstr("does not exist"));
}

TEST(Find, MakesAMatchThatCannotBeUsedTheAnswer) {
  const testing::TempFolder broken, good;
  std::filesystem::create_symlink("nowhere.so", broken.path() / "libdtrun_backend_demo.so");
  good.Write("libdtrun_backend_demo.so");
  const auto file =
      Find(Kind::kBackend, "demo", {{broken.path(), "--plugin-dir"}, {good.path(), "installed"}});
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.error().text, HasSubstr(broken.path().string()));
}

TEST(Find, RefusesAFolderNamedLikeAPlugin) {
  const testing::TempFolder folder;
  std::filesystem::create_directory(folder.path() / "libdtrun_backend_demo.so");
  EXPECT_THAT(Find(Kind::kBackend, "demo", {{folder.path(), "installed"}}).error().text,
              HasSubstr("not a regular file"));
}

TEST(Find, RefusesAWorldWritableFile) {
  const testing::TempFolder folder;
  testing::SetMode(folder.Write("libdtrun_backend_demo.so"), 0777);
  EXPECT_THAT(Find(Kind::kBackend, "demo", {{folder.path(), "installed"}}).error().text,
              HasSubstr("chmod o-w"));
}

TEST(Find, KnowsDevices) {
  const testing::TempFolder folder;
  folder.Write("libdtrun_device_cuda.so");
  EXPECT_TRUE(Find(Kind::kDevice, "cuda", {{folder.path(), "installed"}}).ok());
  EXPECT_THAT(Find(Kind::kBackend, "cuda", {{folder.path(), "installed"}}).error().text,
              HasSubstr("there is a device of that name"));
  EXPECT_EQ(KindOf("device"), Kind::kDevice);
  EXPECT_EQ(KindOf("gadget"), std::nullopt);
}

TEST(FindAll, ListsEveryPluginOnceInSearchOrder) {
  const testing::TempFolder first, second;
  first.Write("libdtrun_backend_b.so");
  first.Write("libdtrun_launcher_a.so");
  first.Write("notes.txt");
  const auto shadowed = second.Write("libdtrun_backend_b.so");
  second.Write("libdtrun_backend_c.so");
  const auto files = FindAll({{first.path(), "x"}, {"/nonexistent/y", "y"}, {second.path(), "z"}});
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0].name, "b");
  EXPECT_THAT(files[0].shadowed, ElementsAre(shadowed));
  EXPECT_EQ(files[1].name, "a");
  EXPECT_EQ(files[1].kind, Kind::kLauncher);
  EXPECT_EQ(files[2].name, "c");
  EXPECT_EQ(files[2].origin, "z");
}

}  // namespace
}  // namespace dtrun::plugin
