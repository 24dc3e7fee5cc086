// The host of the conformance suite keeps the rules that bind hosts, so that dtrun is no stricter.
#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "dtrun/plugin/options.hpp"
#include "sdk/conformance/host.h"
#include "sdk/conformance/kv.h"
#include "sdk/conformance/stack.h"

namespace dtrun::conformance {
namespace {

using testing::HasSubstr;

dtrun_option OptionOf(const char* key, std::int32_t type, const char* default_text, std::uint32_t flags = 0) {
  dtrun_option option;
  DTRUN_INIT(option);
  option.key = key;
  option.type = type;
  option.scope = DTRUN_SCOPE_JOB;
  option.default_text = default_text;
  option.flags = flags;
  return option;
}

class ConformanceHostTest : public testing::Test {
 protected:
  ConformanceHostTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "host-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    DTRUN_INIT(plugin_);
    plugin_.options = options_;
    plugin_.option_count = std::size(options_);
    DTRUN_ERROR_INIT(error_);
  }
  ~ConformanceHostTest() override { std::filesystem::remove_all(folder_); }

  // The code that `call` throws; DTRUN_OK when it does not.
  template <class Call>
  static dtrun_status CodeOf(Call&& call) {
    try {
      call();
      return DTRUN_OK;
    } catch (const sdk::Failure& failure) {
      return failure.code();
    }
  }

  std::filesystem::path folder_;
  const dtrun_option options_[6] = {
      OptionOf("count", DTRUN_TYPE_UINT, "3"), OptionOf("file", DTRUN_TYPE_PATH, "a/../b"),
      OptionOf("name", DTRUN_TYPE_STRING, nullptr), OptionOf("words", DTRUN_TYPE_LIST, "a, b c"),
      OptionOf("must", DTRUN_TYPE_INT, nullptr, DTRUN_OPTION_REQUIRED),
      OptionOf("over", DTRUN_TYPE_STRING, nullptr, DTRUN_OPTION_BACKEND)};
  dtrun_plugin plugin_;
  dtrun_error error_;
};

TEST_F(ConformanceHostTest, GettersKnowTypesAndWhatIsUnset) {
  const auto raw = MakeOptions(plugin_, {{"must", "7"}});
  const sdk::Options options(sdk::Host(Host()), raw.get());
  EXPECT_EQ(options.Int("count"), 3);
  EXPECT_EQ(options.Int("must"), 7);
  EXPECT_THAT(options.List("words"), testing::ElementsAre("a", "b c"));
  EXPECT_EQ(options.String("file"), std::filesystem::current_path() / "b");
  EXPECT_EQ(CodeOf([&] { options.String("name"); }), DTRUN_NOT_FOUND);
  EXPECT_EQ(CodeOf([&] { options.Int("name"); }), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf([&] { options.String("count"); }), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf([&] { options.Float("count"); }), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf([&] { options.List("file"); }), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf([&] { options.Int("nothing"); }), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(options.Origin("count"), DTRUN_ORIGIN_DEFAULT);
  EXPECT_EQ(options.Place("count"), "");
  EXPECT_EQ(options.Origin("must"), DTRUN_ORIGIN_COMMAND_LINE);
}

TEST_F(ConformanceHostTest, ARequiredOptionHasAValue) {
  EXPECT_THAT(MissingOption(plugin_, {}), HasSubstr("'must' is required"));
  EXPECT_THROW(MakeOptions(plugin_, {}), std::invalid_argument);
  EXPECT_NO_THROW(DefaultOptions(plugin_));  // of a launcher that is asked for hosts
}

TEST_F(ConformanceHostTest, SaysWhichBackendCannotBeOpened) {
  const auto open = [&](const char* over, const char* key) {
    std::map<std::string, std::string> values{{"must", "7"}, {"gloo.interface", "lo"}};
    if (over != nullptr) values["over"] = over;
    const auto options = MakeOptions(plugin_, values);
    EXPECT_EQ(options->of_others.size(), 1u);
    const dtrun_wrapped* below = nullptr;
    return PluginsService()->open(Host(), options.get(), key, &below, &error_);
  };
  EXPECT_EQ(open(nullptr, "over"), DTRUN_NOT_FOUND);
  EXPECT_EQ(open("gloo", "over"), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("'gloo' is no file of a backend"));
  EXPECT_EQ(open("/no/libdtrun_backend_x.so", "over"), DTRUN_FAILED_PRECONDITION);
  EXPECT_THAT(error_.message, HasSubstr("option 'over': load the plugin: /no/libdtrun_backend_x.so"));
  EXPECT_EQ(open("/no/libdtrun_backend_x.so", "name"), DTRUN_INVALID_ARGUMENT);  // without the flag
  EXPECT_EQ(open("/no/libdtrun_backend_x.so", "nothing"), DTRUN_INVALID_ARGUMENT);
  const dtrun_wrapped* below = nullptr;
  EXPECT_EQ(PluginsService()->open(Host(), nullptr, "over", &below, &error_), DTRUN_INVALID_ARGUMENT);
  PluginsService()->close(Host(), nullptr);
}

TEST_F(ConformanceHostTest, KeysAndValuesHaveBounds) {
  ThreadKv threads;
  FolderKv folder((folder_ / "kv").string());
  for (dtrun_kv* const space : {static_cast<dtrun_kv*>(&threads), static_cast<dtrun_kv*>(&folder)}) {
    const sdk::Kv kv(sdk::Host(Host()), space);
    const std::string longest(1024, 'k');
    kv.Set(longest, "v");
    kv.Set(longest.substr(0, 100), "short");
    EXPECT_EQ(kv.Get(longest, sdk::Nanoseconds(0)), "v");
    EXPECT_EQ(kv.Get(longest.substr(0, 100), sdk::Nanoseconds(0)), "short");
    EXPECT_EQ(CodeOf([&] { kv.Set("", "v"); }), DTRUN_INVALID_ARGUMENT);
    EXPECT_EQ(CodeOf([&] { kv.Set(longest + "k", "v"); }), DTRUN_INVALID_ARGUMENT);
    EXPECT_EQ(CodeOf([&] { kv.TryGet(longest + "k"); }), DTRUN_INVALID_ARGUMENT);
    EXPECT_EQ(CodeOf([&] { kv.WaitMany({"a", ""}, sdk::Nanoseconds(0)); }), DTRUN_INVALID_ARGUMENT);
    EXPECT_EQ(CodeOf([&] { kv.Add(longest, 1); }), DTRUN_INVALID_ARGUMENT) << "to what is no number";
    const std::string huge((std::size_t{16} << 20) + 1, 'v');
    EXPECT_EQ(CodeOf([&] { kv.Set("huge", huge); }), DTRUN_INVALID_ARGUMENT);
    EXPECT_EQ(CodeOf([&] { kv.CompareSet("huge", std::nullopt, huge); }), DTRUN_INVALID_ARGUMENT);
    EXPECT_FALSE(kv.TryGet("huge"));
  }
  dtrun_kv* part = nullptr;
  EXPECT_EQ(KvService()->open_part(Host(), &threads, {"", 0}, nullptr, 0, &part, &error_),
            DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(KvService()->erase(Host(), nullptr, {"k", 1}, nullptr, &error_), DTRUN_FAILED_PRECONDITION);
}

TEST_F(ConformanceHostTest, MemoryHasTheAlignmentAskedForOrIsNull) {
  const dtrun_memory_service& memory = *MemoryService();
  void* const empty = memory.allocate(Host(), 0, 4096);
  ASSERT_NE(empty, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(empty) % 4096, 0u);
  memory.release(Host(), empty);
  memory.release(Host(), nullptr);
  EXPECT_EQ(memory.allocate(Host(), 8, 24), nullptr);
  EXPECT_EQ(memory.allocate(Host(), 8, 4), nullptr);
  EXPECT_EQ(memory.allocate(Host(), UINT64_MAX - 7, 64), nullptr);
}

TEST_F(ConformanceHostTest, ThreadsHaveANameAndNoSignals) {
  const auto* threads =
      static_cast<const dtrun_threads_service*>(Host()->get_service(Host(), DTRUN_THREADS_SERVICE));
  std::thread([&] {
    threads->on_start(Host(), "fifteen-letters");
    char name[16];
    pthread_getname_np(pthread_self(), name, sizeof name);
    EXPECT_STREQ(name, "fifteen-letters");
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    EXPECT_EQ(sigismember(&mask, SIGTERM), 1);
    EXPECT_EQ(sigismember(&mask, SIGSEGV), 0);
    threads->on_stop(Host());
  }).join();
}

TEST(ConformanceHost, ALauncherIsAlwaysInAProbe) {
  EXPECT_EQ(Host(DTRUN_KIND_LAUNCHER)->in_probe, 1);
  EXPECT_EQ(Host(DTRUN_KIND_BACKEND)->in_probe, 0);
  EXPECT_EQ(Host()->get_service(Host(), nullptr), nullptr);
}

}  // namespace
}  // namespace dtrun::conformance
