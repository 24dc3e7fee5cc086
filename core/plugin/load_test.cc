#include <gmock/gmock.h>
#include <sys/inotify.h>

#include <cstdlib>
#include <thread>

#include "core/log/log.h"
#include "core/plugin/host.h"
#include "core/plugin/plugin.h"
#include "core/plugin/plugin_file.h"
#include "core/plugin/testing/support.h"

namespace dtrun::plugin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Every error identifies the rejected plugin: path, name and both ABI versions.
auto Refusal(const File& file, const std::string& why) {
  return AllOf(HasSubstr(file.path.string()), HasSubstr("'" + file.name + "'"), HasSubstr("build-id"),
               HasSubstr("this dtrun has ABI " + testing::Abi()), HasSubstr(why));
}

std::string ErrorOf(const File& file) {
  const auto plugin = Load(file);
  return plugin ? "it was loaded" : plugin.error().text;
}

TEST(Load, GivesTheTableOfAGoodPlugin) {
  const auto plugin = Load(testing::Built("demo"));
  ASSERT_TRUE(plugin.ok()) << plugin.error().text;
  EXPECT_STREQ((*plugin)->table().version, "1.2.3");
  EXPECT_NE((*plugin)->backend().enqueue, nullptr);
  EXPECT_EQ((*plugin)->backend().comm_abort, nullptr);
  EXPECT_EQ((*plugin)->host().in_probe, 0);
  EXPECT_EQ((*plugin)->host().kind, DTRUN_KIND_BACKEND);
  const options::Schema schema = (*plugin)->schema();
  ASSERT_EQ(schema.size(), 2u);
  EXPECT_EQ(schema[0].key, "backend.options.interface");
}

TEST(Load, GivesTheTableOfADevicePlugin) {
  const auto plugin = Load(testing::BuiltDevice());
  ASSERT_TRUE(plugin.ok()) << plugin.error().text;
  EXPECT_EQ((*plugin)->device().kind, DTRUN_DEVICE_OTHER + 1);
  EXPECT_EQ((*plugin)->device().stream_capturing, nullptr);
  EXPECT_EQ((*plugin)->table().device, &(*plugin)->device());
  EXPECT_EQ((*plugin)->table().backend, nullptr);
  EXPECT_EQ((*plugin)->host().kind, DTRUN_KIND_DEVICE);
  const auto defaults = (*plugin)->Defaults();
  ASSERT_TRUE(defaults.ok()) << defaults.error().text;
  EXPECT_TRUE(defaults->entries.empty());
}

TEST(Load, DefaultsAreThoseOfTheTable) {
  const auto plugin = Load(testing::Built("demo"));
  ASSERT_TRUE(plugin.ok()) << plugin.error().text;
  const auto defaults = (*plugin)->Defaults();
  ASSERT_TRUE(defaults.ok()) << defaults.error().text;
  ASSERT_TRUE(defaults->entries.contains("interface"));
  EXPECT_EQ(defaults->entries.find("interface")->second.spec.key, "interface");
}

TEST(Load, SaysWhatItLoadedAndFromWhere) {
  const testing::TempFolder folder;
  const File file{Kind::kBackend, "demo", folder.Copy("demo"), "--plugin-dir", {}, {}};
  log::Start(*log::ParseOptions("info", nullptr), "", std::nullopt);
  const testing::StderrCapture capture;
  ASSERT_TRUE(Load(file).ok());
  EXPECT_THAT(capture.Text(), ::testing::EndsWith(" info demo: loaded version 1.2.3, ABI " + testing::Abi() +
                                                  ", from '" + file.path.string() + "' (--plugin-dir)\n"));
  log::Start({}, "", std::nullopt);
}

TEST(Load, GivesOneFinalAnswerPerFile) {
  EXPECT_EQ(*Load(testing::Built("demo")), *Load(testing::Built("demo")));

  const testing::TempFolder folder;
  const File file{Kind::kBackend, "zero_stamps", folder.Copy("zero_stamps"), "test", {}, {}};
  const std::string first = ErrorOf(file);
  std::filesystem::remove(file.path);
  EXPECT_EQ(ErrorOf(file), first);
}

TEST(Load, RefusesAFileThatIsNotTheOneThatWasExamined) {
  const testing::TempFolder folder;
  File file{Kind::kBackend, "demo", folder.Copy("demo"), "test", {}, {}, "build-id 0f"};
  EXPECT_THAT(ErrorOf(file), Refusal(file, "wanted is build-id 0f; it was replaced since dtrun examined it"));

  const testing::TempFolder other;
  file.path = other.Copy("demo");
  file.id = Sha256Id(std::string(64, '0'));
  EXPECT_THAT(ErrorOf(file), Refusal(file, "install the pinned file, or change backend.sha256"));
}

// Checks whether the plugin "constructs" has run code in this process.
class Constructed {
 public:
  Constructed() { ::setenv("DEMO_CONSTRUCTED", path_.c_str(), 1); }
  Constructed(const Constructed&) = delete;
  Constructed& operator=(const Constructed&) = delete;
  ~Constructed() { ::unsetenv("DEMO_CONSTRUCTED"); }
  bool Ran() const { return std::filesystem::exists(path_); }

 private:
  testing::TempFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "was-here";
};

TEST(Load, RunsNothingOfAFileThatIsNotTheOneThatWasExamined) {
  const Constructed constructed;
  for (const std::string id : {"build-id 0f", "build-id 0f, size 1, changed 1.000000000", "sha256 00", ""}) {
    const testing::TempFolder folder;  // a fresh path, because results are final per path
    const File file{Kind::kBackend, "constructs", folder.Copy("constructs"), "test", {}, {}, id};
    const std::string error = ErrorOf(file);
    if (id.empty()) {
      EXPECT_EQ(error, "it was loaded");
    } else {
      EXPECT_THAT(error, Refusal(file, "wanted is " + id));
    }
    EXPECT_EQ(constructed.Ran(), id.empty());
  }
}

// Renames `other` to `path` when the first read of the existing file is seen.
void ReplaceWhenRead(int notify, const std::filesystem::path& other, const std::filesystem::path& path) {
  alignas(inotify_event) char events[4096];
  if (::read(notify, events, sizeof events) > 0) std::filesystem::rename(other, path);
}

// Hashing takes time, so the other file is in place before the loader opens the path; if this machine is too
// busy for that, the next round tries again.
TEST(Load, RunsNothingOfAFileThatTakesThePlaceOfTheOneThatItExamines) {
  bool seen = false;
  for (int round = 0; round < 50 && !seen; ++round) {
    const testing::TempFolder folder;
    const Constructed constructed;
    File file{Kind::kBackend, "demo", folder.Copy("demo"), "test", {}, {}};
    std::filesystem::resize_file(file.path, 64 << 20);  // the loader maps only its segments
    const auto opened = OpenedFile::Open(file.path);
    ASSERT_TRUE(opened.ok()) << opened.error().text;
    file.id = *FileId(*opened, "", Sha256Id("00"));
    const UniqueFd notify(::inotify_init1(IN_CLOEXEC));
    ASSERT_GE(::inotify_add_watch(notify.get(), file.path.c_str(), IN_ACCESS), 0);
    const auto other = folder.Copy("constructs");
    std::thread replacing([&] { ReplaceWhenRead(notify.get(), other, file.path); });
    const std::string error = ErrorOf(file);
    replacing.join();
    seen = error.find("it was replaced or changed while it was examined") != error.npos;
    EXPECT_FALSE(seen && constructed.Ran()) << error;
  }
  EXPECT_TRUE(seen);
}

TEST(Load, TellsTheIdOfWhatItLoaded) {
  const auto plugin = Load(testing::Built("demo"));
  ASSERT_TRUE(plugin.ok());
  const testing::TempFolder folder;
  const auto copy = folder.Copy("demo");
  std::filesystem::last_write_time(copy, std::filesystem::last_write_time((*plugin)->file().path));
  EXPECT_TRUE(Load({Kind::kBackend, "demo", copy, "test", {}, {}, (*plugin)->id()}).ok());
}

TEST(Load, ReadsThePrefixOfANewerAndLongerTable) {
  const auto plugin = Load(testing::Built("newer_struct"));
  ASSERT_TRUE(plugin.ok()) << plugin.error().text;
  EXPECT_EQ((*plugin)->table().struct_size, sizeof(dtrun_plugin));
}

TEST(Load, RefusesAnotherAbiMinorWithBothNumbers) {
  const File file = testing::Built("other_minor");
  EXPECT_THAT(ErrorOf(file), AllOf(Refusal(file, "built for ABI " + testing::Abi(1)),
                                   HasSubstr("version 1.2.3"), HasSubstr("upgrade dtrun")));
}

TEST(Load, RefusesEachBrokenPluginForItsOwnReason) {
  const std::pair<const char*, const char*> cases[] = {
      {"zero_stamps", "left the ABI numbers of its table zero"},
      {"other_kind", "says that it is a launcher"},
      {"other_name", "calls itself 'somebody_else'"},
      {"null_table", "returned no table"},
      {"entry_fails", "its entry failed: this plugin wants a full moon"},
      {"missing_member", "its member 'enqueue' is missing"},
      {"throws", "threw an exception: thrown by the entry"},
      {"no_entry", "does not export 'dtrun_plugin_entry_v1'"},
      {"borrowed_entry", "is that of another library"},
  };
  for (const auto& [name, why] : cases) {
    const File file = testing::Built(name);
    EXPECT_THAT(ErrorOf(file), Refusal(file, why));
  }
}

TEST(Load, RefusesATruncatedFile) {
  const testing::TempFolder folder;
  const File file{Kind::kBackend, "cut", folder.Copy("demo", "cut"), "test", {}, {}};
  std::filesystem::resize_file(file.path, std::filesystem::file_size(file.path) / 2);
  EXPECT_THAT(ErrorOf(file), Refusal(file, "truncated or not a shared object"));
}

TEST(Load, KeepsTheLoadersOwnText) {
  const File file = testing::Built("lost_library");
  EXPECT_THAT(ErrorOf(file), Refusal(file, "libdtrun_test_lost.so: cannot open shared object file"));
}

TEST(Load, RefusesAFileThatEverybodyMayWrite) {
  const testing::TempFolder folder;
  const File file{Kind::kBackend, "open", folder.Copy("demo", "open"), "test", {}, {}};
  testing::SetMode(file.path, 0666);
  EXPECT_THAT(ErrorOf(file), Refusal(file, "chmod o-w"));
}

}  // namespace
}  // namespace dtrun::plugin
