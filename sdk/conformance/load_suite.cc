// What holds for a plugin of any kind: its file, its entry, its table, and what it leaves alone.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <map>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include "dtrun/plugin/failure.hpp"
#include "guard.h"
#include "host.h"
#include "load.h"
#include "option_value.h"
#include "process_state.h"
#include "sdk/helpers/shared_object.h"
#include "suite.h"

namespace dtrun::conformance {
namespace {

using Under = BackendUnderTest;

std::int32_t KindOf(const Under& plugin) { return NameOfFile(plugin.plugin).kind; }

void OneSymbolIsExported(const Under& plugin) {
  const helpers::SharedObject object = helpers::ReadSharedObject(plugin.plugin);
  EXPECT_EQ(std::ranges::count(object.exported, DTRUN_PLUGIN_ENTRY_SYMBOL), 1)
      << "it does not export " << DTRUN_PLUGIN_ENTRY_SYMBOL;
  for (const std::string& problem : helpers::Unfit(object)) ADD_FAILURE() << problem;
}

// Loaded as by a host that forgets RTLD_NODELETE, or wraps it.
void ItStaysWhenClosed(const Under& plugin) {
  EXPECT_TRUE(helpers::ReadSharedObject(plugin.plugin).nodelete)
      << "it is not marked NODELETE; link it with -Wl,-z,nodelete (dtrun_add_plugin does)";
  const dtrun_plugin* table = LoadPlugin(plugin.plugin, KindOf(plugin));
  void* const image = dlopen(plugin.plugin.c_str(), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(image, nullptr) << "it has left the process by itself";
  dlclose(image);
  EXPECT_EQ(table->magic, DTRUN_PLUGIN_MAGIC);
}

std::string WithUnderscores(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

bool IsText(const char* text) {
  for (; *text != '\0'; ++text) {
    if (std::iscntrl(static_cast<unsigned char>(*text)) != 0) return false;
  }
  return true;
}

// NULL in a table of before there were devices.
const dtrun_device* DeviceOf(const dtrun_plugin& plugin) { return sdk::internal::ReadStruct(&plugin).device; }

void ADeviceHasItsMembers(const dtrun_device& device) {
  EXPECT_NE(device.count, nullptr);
  EXPECT_NE(device.current, nullptr);
  EXPECT_NE(device.memory_of, nullptr);
  EXPECT_NE(device.mem_alloc, nullptr);
  EXPECT_NE(device.mem_free, nullptr);
  EXPECT_NE(device.stream_create, nullptr);
  EXPECT_NE(device.stream_destroy, nullptr);
  EXPECT_NE(device.copy, nullptr);
  EXPECT_NE(device.event_create, nullptr);
  EXPECT_NE(device.event_destroy, nullptr);
  EXPECT_NE(device.event_record, nullptr);
  EXPECT_NE(device.event_test, nullptr);
  EXPECT_NE(device.event_wait, nullptr);
  EXPECT_NE(device.counter_wait, nullptr);
  EXPECT_EQ(device.flags & DTRUN_FLAGS_MUST_UNDERSTAND, 0u) << "flags of its device that no host understands";
}

// A longer one would have a reader take what lies behind the table for members.
void ExpectSize(const char* name, std::size_t says, std::size_t has) {
  EXPECT_EQ(says, has) << "bytes of its " << name << ", which its headers give another size (S1)";
}

void TheTableSaysWhoItIs(const Under& under_test) {
  const dtrun_plugin& plugin = *LoadPlugin(under_test.plugin, KindOf(under_test));
  EXPECT_EQ(plugin.magic, DTRUN_PLUGIN_MAGIC);
  EXPECT_EQ(plugin.abi_major, DTRUN_ABI_MAJOR);
  EXPECT_LE(plugin.abi_minor_required, plugin.abi_minor_built) << "it requires more than it was built with";
  if (plugin.kind == DTRUN_KIND_DEVICE) {
    EXPECT_EQ(plugin.device_draft, DTRUN_DEVICE_DRAFT)
        << "device_draft, which DTRUN_PLUGIN_INIT sets after #include \"dtrun/abi/device.h\" (V13)";
  }
  EXPECT_LE(plugin.abi_minor_required, DTRUN_ABI_MINOR);
  if (DTRUN_ABI_MAJOR == 0) {
    EXPECT_EQ(plugin.abi_minor_built, DTRUN_ABI_MINOR) << "while the major is 0, equal minors work together";
  }
  EXPECT_GE(plugin.struct_size, offsetof(dtrun_plugin, get_extension) + sizeof plugin.get_extension);
  EXPECT_EQ(plugin.flags & DTRUN_FLAGS_MUST_UNDERSTAND, 0u) << "flags that no host understands";
  ASSERT_NE(plugin.name, nullptr);
  EXPECT_EQ(WithUnderscores(plugin.name), WithUnderscores(NameOfFile(under_test.plugin).name))
      << "the table's name is not the one of its file";
  for (const auto& [what, text] : {std::pair{"version", plugin.version},
                                   {"vendor", plugin.vendor},
                                   {"license", plugin.license},
                                   {"summary", plugin.summary}}) {
    ASSERT_NE(text, nullptr) << what;
    EXPECT_TRUE(*text != '\0' && IsText(text)) << what << " is '" << text << "'";
  }
  EXPECT_NE(plugin.init, nullptr);
  EXPECT_NE(plugin.shutdown, nullptr);
  EXPECT_EQ(plugin.backend != nullptr, plugin.kind == DTRUN_KIND_BACKEND);
  EXPECT_EQ(plugin.launcher != nullptr, plugin.kind == DTRUN_KIND_LAUNCHER);
  EXPECT_EQ(DeviceOf(plugin) != nullptr, plugin.kind == DTRUN_KIND_DEVICE);
  if (DeviceOf(plugin) != nullptr) ADeviceHasItsMembers(sdk::internal::ReadStruct(DeviceOf(plugin)));
  for (const std::uint32_t flags : {plugin.backend == nullptr ? 0 : plugin.backend->flags,
                                    plugin.launcher == nullptr ? 0 : plugin.launcher->flags})
    EXPECT_EQ(flags & DTRUN_FLAGS_MUST_UNDERSTAND, 0u) << "its members have flags that no host understands";
  if (plugin.abi_minor_built == DTRUN_ABI_MINOR) {
    ExpectSize("dtrun_plugin", plugin.struct_size, sizeof plugin);
    if (plugin.backend != nullptr)
      ExpectSize("dtrun_backend", plugin.backend->struct_size, sizeof *plugin.backend);
    if (plugin.launcher != nullptr)
      ExpectSize("dtrun_launcher", plugin.launcher->struct_size, sizeof *plugin.launcher);
    if (plugin.options != nullptr && plugin.option_count > 0)
      ExpectSize("dtrun_option", plugin.options->struct_size, sizeof *plugin.options);
  }
  if (plugin.launcher == nullptr) return;
  const dtrun_launcher launcher = sdk::internal::ReadStruct(plugin.launcher);
  EXPECT_TRUE(launcher.plan != nullptr || launcher.find_hosts != nullptr || launcher.connect != nullptr)
      << "the launcher has none of plan, find_hosts and connect";
}

void UnknownExtensionsAreNone(const Under& under_test) {
  const dtrun_plugin& plugin = *LoadPlugin(under_test.plugin, KindOf(under_test));
  if (plugin.get_extension == nullptr) GTEST_SKIP() << "the plugin has no extensions";
  for (const char* id : {"", "dtrun", "dtrun.nothing/1", "nobody.nothing/999999", "nobody.nothing/1 "})
    EXPECT_EQ(plugin.get_extension(nullptr, id), nullptr) << "'" << id << "'";
}

constexpr std::size_t kKeyCharacters = 64;

// What is wrong with a key (O1), "" when nothing is. Not by std::regex: a long text overflows its stack.
std::string KeyProblem(std::string_view key) {
  if (key.size() > kKeyCharacters)
    return "has " + std::to_string(key.size()) + " characters, which are at most " +
           std::to_string(kKeyCharacters);
  char before = '_';
  for (const char c : key) {
    const bool letter = c >= 'a' && c <= 'z', digit = c >= '0' && c <= '9';
    if (!letter && !(digit && &c != key.data()) && !(c == '_' && before != '_')) return "is no snake_case";
    before = c;
  }
  return before == '_' ? "is no snake_case" : "";
}

void OptionsMakeSense(const Under& under_test) {
  const dtrun_plugin& plugin = *LoadPlugin(under_test.plugin, KindOf(under_test));
  if (plugin.option_count == 0) GTEST_SKIP() << "the plugin has no options";
  ASSERT_NE(plugin.options, nullptr);
  ASSERT_TRUE(plugin.options->struct_size >= offsetof(dtrun_option, replaced_by) + sizeof(const char*) &&
              plugin.options->struct_size % alignof(dtrun_option) == 0)
      << "the first option says that it has " << plugin.options->struct_size << " bytes";
  std::set<std::string> keys;
  std::map<std::string, std::string> replaced;
  for (std::uint64_t i = 0; i < plugin.option_count; ++i) {
    const dtrun_option option = OptionAt(plugin.options, i);
    ASSERT_NE(option.key, nullptr) << "option " << i;
    SCOPED_TRACE("option '" + std::string(option.key).substr(0, kKeyCharacters) + "'");
    EXPECT_EQ(KeyProblem(option.key), "") << "its key";
    EXPECT_TRUE(keys.insert(option.key).second) << "its key is there twice";
    if (option.replaced_by != nullptr) replaced[option.key] = option.replaced_by;
    EXPECT_TRUE(option.type >= DTRUN_TYPE_BOOL && option.type <= DTRUN_TYPE_LIST) << "type " << option.type;
    EXPECT_TRUE(option.scope >= DTRUN_SCOPE_PROCESS && option.scope <= DTRUN_SCOPE_JOB)
        << "scope " << option.scope;
    EXPECT_EQ(option.flags & DTRUN_FLAGS_MUST_UNDERSTAND, 0u) << "flags that no host understands";
    EXPECT_TRUE(option.doc != nullptr && *option.doc != '\0' && IsText(option.doc))
        << "it has no line of text";
    for (const char* text : {option.default_text, option.unit, option.min_text, option.max_text, option.since,
                             option.env_alias, option.replaced_by})
      EXPECT_TRUE(text == nullptr || IsText(text))
          << "it has a text that is more than a line: '" << text << "'";
    for (std::uint64_t choice = 0; choice < option.choice_count; ++choice)
      EXPECT_TRUE(option.choices[choice] != nullptr && IsText(option.choices[choice])) << "choice " << choice;
    EXPECT_EQ(option.type == DTRUN_TYPE_ENUM, option.choice_count > 0)
        << "choices are for enums, which need some";
    const bool required = (option.flags & DTRUN_OPTION_REQUIRED) != 0;
    EXPECT_FALSE(required && option.default_text != nullptr) << "it is required and has a default";
    for (const char* text : {option.default_text, option.min_text, option.max_text}) {
      if (text == nullptr) continue;
      try {
        ReadOption(option, text);
      } catch (const std::invalid_argument& error) {
        ADD_FAILURE() << error.what();
      }
    }
  }
  for (const auto& [key, other] : replaced) {
    EXPECT_EQ(keys.count(other), 1u) << "option '" << key << "' is replaced by '" << other
                                     << "', which the table lacks";
    std::string last = other;
    for (std::size_t steps = 0; steps < replaced.size() && replaced.count(last) != 0; ++steps)
      last = replaced[last];
    EXPECT_EQ(replaced.count(last), 0u) << "option '" << key << "' is replaced in a circle";
  }
}

std::int64_t ThreadTime() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

void TheEntryIsCheapAndKeepsItsAnswer(const Under& plugin) {
  const dtrun_plugin_entry entry = OpenPlugin(plugin.plugin);
  const std::size_t threads = ProcessState::Now().threads;
  const dtrun_plugin* first = nullptr;
  const std::int64_t start = ThreadTime();
  ASSERT_EQ(entry(Host(KindOf(plugin)), &first, nullptr), DTRUN_OK);
  EXPECT_LT(ThreadTime() - start, 50'000'000) << "ns of processor time; open the vendor's library in init";
  EXPECT_LE(ProcessState::Now().threads, threads) << "it started a thread";
  const dtrun_plugin* second = nullptr;
  ASSERT_EQ(entry(Host(KindOf(plugin)), &second, nullptr), DTRUN_OK);
  EXPECT_EQ(first, second) << "its second answer is another table";
}

void TheEntryTakesHostsOfAnotherSize(const Under& plugin) {
  const dtrun_plugin_entry entry = OpenPlugin(plugin.plugin);
  const std::int32_t kind = KindOf(plugin);
  for (const std::size_t bytes : Sizes<dtrun_host>()) {
    const Guarded<dtrun_host> host("dtrun_host", *Host(kind), bytes);
    Guarded<dtrun_error> error("dtrun_error", dtrun_error{}, sizeof(dtrun_error));
    const dtrun_plugin* table = nullptr;
    EXPECT_EQ(entry(host.get(), &table, error.get()), DTRUN_OK)
        << bytes << " bytes: " << error.Read().message;
    EXPECT_NE(table, nullptr);
    EXPECT_EQ(host.Writes(), "") << "a dtrun_host of " << bytes << " bytes";
    // It keeps the pointer that it was given last: init comes with the same.
    EXPECT_EQ(entry(Host(kind), &table, nullptr), DTRUN_OK);
  }
}

void TheEntryLeavesTheProcessAlone(const Under& plugin) {
  const ProcessState before = ProcessState::Now();
  LoadPlugin(plugin.plugin, KindOf(plugin));
  EXPECT_EQ(Changes(before, ProcessState::Now(), true), "");
}

// What a library opens once for the process may stay, so files and threads are counted from the second time
// on.
void AnInstanceLeavesTheProcessAlone(const Under& under_test) {
  if (under_test.process.size > 0) GTEST_SKIP() << "a launched process calls init once";
  const std::int32_t kind = KindOf(under_test);
  const dtrun_plugin& plugin = *LoadPlugin(under_test.plugin, kind);
  const auto options = MakeOptions(plugin, under_test.options);
  ProcessState before = ProcessState::Now();
  for (int round = 0; round < 3; ++round) {
    dtrun_instance* instance = nullptr;
    dtrun_error error;
    DTRUN_ERROR_INIT(error);
    const dtrun_status status = sdk::InitPlugin(plugin, Host(kind), options.get(), &instance, &error);
    if (status == DTRUN_FAILED_PRECONDITION && round > 0)
      GTEST_SKIP() << "init works once: " << error.message;
    ASSERT_EQ(status, DTRUN_OK) << error.message;
    ASSERT_NE(instance, nullptr) << "init returned DTRUN_OK and left *out untouched";
    EXPECT_EQ(Changes(before, ProcessState::Now(), false), "") << "by init";
    plugin.shutdown(instance);
    const ProcessState after = ProcessState::Settled(before.threads);
    EXPECT_EQ(Changes(before, after, round > 0), "") << "by init and shutdown";
    before = after;
  }
}

// Refused flags first, so that init is called once where it works once.
void InitTakesItsParameters(const Under& under_test) {
  if (under_test.process.size > 0) GTEST_SKIP() << "a launched process calls init once";
  const dtrun_plugin& plugin = *LoadPlugin(under_test.plugin, KindOf(under_test));
  const auto options = MakeOptions(plugin, under_test.options);
  dtrun_init_params params;
  DTRUN_INIT(params);
  params.host = Host(KindOf(under_test));
  params.options = options.get();
  for (const std::uint32_t flags : {1u << 30, 1u << 14}) {
    params.flags = flags;
    dtrun_error error;
    DTRUN_ERROR_INIT(error);
    dtrun_instance* instance = nullptr;
    const Guarded<dtrun_init_params> given("dtrun_init_params", params,
                                           sizeof params + (flags == 1u << 14 ? 64 : 0));
    const dtrun_status status = plugin.init(given.get(), &instance, &error);
    EXPECT_EQ(status, flags == 1u << 30 ? DTRUN_UNSUPPORTED : DTRUN_OK)
        << "with bit " << (flags == 1u << 30 ? 30 : 14) << " in a dtrun_init_params: " << error.message;
    EXPECT_EQ(given.Writes(), "");
    if (status == DTRUN_OK) plugin.shutdown(instance);
  }
}

}  // namespace

void AddLoadCases(const BackendUnderTest& plugin) {
  AddCase("Load", "ExportsOneSymbol", "V2", plugin, [=] { OneSymbolIsExported(plugin); });
  AddCase("Load", "StaysWhenItIsClosed", "V12", plugin, [=] { ItStaysWhenClosed(plugin); });
  AddCase("Load", "SaysWhoItIs", "V1, V4, V5, V9, V10, V13, S1", plugin,
          [=] { TheTableSaysWhoItIs(plugin); });
  AddCase("Load", "HasACheapEntry", "V3", plugin, [=] { TheEntryIsCheapAndKeepsItsAnswer(plugin); });
  AddCase("Load", "TakesHostsOfAnotherSize", "S2", plugin, [=] { TheEntryTakesHostsOfAnotherSize(plugin); });
  AddCase("Load", "KnowsNoUnknownExtension", "S13", plugin, [=] { UnknownExtensionsAreNone(plugin); });
  AddCase("Load", "HasOptionsThatMakeSense", "O1, S8", plugin, [=] { OptionsMakeSense(plugin); });
  AddCase("Load", "TouchesNothingInTheEntry", "V3, T7", plugin,
          [=] { TheEntryLeavesTheProcessAlone(plugin); });
  AddCase("Load", "TakesTheParametersOfInit", "S2, S6", plugin, [=] { InitTakesItsParameters(plugin); });
  AddCase("Load", "TouchesNothingInInit", "T7", plugin, [=] { AnInstanceLeavesTheProcessAlone(plugin); });
}

}  // namespace dtrun::conformance
