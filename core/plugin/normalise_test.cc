#include "core/plugin/normalise.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstring>
#include <vector>

namespace dtrun::plugin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A valid plugin; each test changes the part it tests.
struct APlugin {
  APlugin() {
    DTRUN_INIT(backend);
    backend.query_caps = [](auto*, auto*, auto*) { return dtrun_status{DTRUN_OK}; };
    backend.comm_create = [](auto*, auto*, auto**, auto*) { return dtrun_status{DTRUN_OK}; };
    backend.comm_destroy = [](auto*) {};
    backend.enqueue = [](auto*, auto*, auto*, auto**, auto*) { return dtrun_status{DTRUN_OK}; };
    backend.req_test = [](auto*, auto*) { return dtrun_status{DTRUN_OK}; };
    backend.req_wait_host = [](auto*, auto, auto*) { return dtrun_status{DTRUN_OK}; };
    backend.req_release = [](auto*) {};
    DTRUN_INIT(option);
    option.key = "mode";
    option.type = DTRUN_TYPE_STRING;
    option.scope = DTRUN_SCOPE_JOB;
    DTRUN_PLUGIN_INIT(table);
    table.kind = DTRUN_KIND_BACKEND;
    table.name = "demo";
    table.version = "2.0";
    table.options = &option;
    table.option_count = 1;
    table.init = [](auto*, auto**, auto*) { return dtrun_status{DTRUN_OK}; };
    table.shutdown = [](auto*) {};
    table.backend = &backend;
  }
  Result<Tables> Normalised(const char* file_name = "demo", Kind kind = Kind::kBackend) const {
    Identity identity{File{kind, file_name, "/p/demo.so", {}, {}, {}}, "abcd", {}, {}};
    return Normalise(&identity, &table);
  }
  std::string Error() const {
    const auto tables = Normalised();
    return tables ? "it was accepted" : tables.error().text;
  }

  dtrun_plugin table;
  dtrun_backend backend;
  dtrun_option option;
};

TEST(Normalise, AcceptsAValidPluginAndReplacesMissingTexts) {
  const auto tables = APlugin().Normalised();
  ASSERT_TRUE(tables.ok()) << tables.error().text;
  EXPECT_STREQ(tables->plugin.version, "2.0");
  EXPECT_STREQ(tables->plugin.summary, "");
}

TEST(Normalise, IgnoresTheTailOfANewerTable) {
  std::vector<unsigned char> bytes(sizeof(dtrun_plugin) + 64, 0xa5);
  const APlugin plugin;
  std::memcpy(bytes.data(), &plugin.table, sizeof plugin.table);
  auto* longer = reinterpret_cast<dtrun_plugin*>(bytes.data());
  longer->struct_size = static_cast<std::uint32_t>(bytes.size());
  Identity identity{File{Kind::kBackend, "demo", "/p/demo.so", {}, {}, {}}, {}, {}, {}};
  const auto tables = Normalise(&identity, longer);
  ASSERT_TRUE(tables.ok()) << tables.error().text;
  EXPECT_EQ(tables->plugin.struct_size, sizeof(dtrun_plugin));
  EXPECT_EQ(tables->plugin.get_extension, nullptr);
}

TEST(Normalise, NoTableIsShorterThanAt10) {
  APlugin plugin;
  plugin.backend.struct_size = sizeof plugin.backend - 8;
  EXPECT_THAT(plugin.Error(), HasSubstr("its backend has 144 bytes, ABI 1.0 has at least 152"));
  plugin.backend.struct_size = sizeof plugin.backend;
  plugin.option.struct_size -= 8;
  EXPECT_THAT(plugin.Error(), HasSubstr("its first option says it has 104 bytes"));
}

TEST(Normalise, TakesNothingOfDevicesFromAnotherDraft) {
  APlugin plugin;
  plugin.table.device_draft = DTRUN_DEVICE_DRAFT;
  plugin.backend.req_wait_stream = [](auto*, auto*, auto*) { return dtrun_status{DTRUN_OK}; };
  dtrun_backend_caps caps;
  DTRUN_INIT(caps);
  caps.features = DTRUN_CAP_ABORT | DTRUN_CAP_CAPTURE;
  caps.device_kinds = 1u << DTRUN_DEVICE_HOST | 1u << DTRUN_DEVICE_CUDA;
  auto tables = plugin.Normalised();
  ASSERT_TRUE(tables.ok()) << tables.error().text;
  RemoveOtherDraft(tables->backend, &caps);
  EXPECT_NE(tables->backend.req_wait_stream, nullptr);
  EXPECT_EQ(caps.device_kinds, 3u);
  plugin.table.device_draft = DTRUN_DEVICE_DRAFT + 1;
  tables = plugin.Normalised();
  ASSERT_TRUE(tables.ok()) << tables.error().text;
  RemoveOtherDraft(tables->backend, &caps);
  EXPECT_EQ(tables->backend.req_wait_stream, nullptr);
  EXPECT_EQ(caps.device_kinds, 1u);
  EXPECT_EQ(caps.features, std::uint64_t{DTRUN_CAP_ABORT});
}

TEST(Normalise, NamesBothVersionsOfAnotherAbi) {
  APlugin newer;
  newer.table.abi_minor_built = 17;
  newer.table.abi_minor_required = 17;
  EXPECT_THAT(newer.Error(),
              AllOf(HasSubstr("ABI " + AbiText(DTRUN_ABI_MAJOR, 17)),
                    HasSubstr("has ABI " + AbiText(DTRUN_ABI_MAJOR, DTRUN_ABI_MINOR)),
                    HasSubstr("version 2.0"), HasSubstr("build-id abcd"), HasSubstr("upgrade dtrun")));
  APlugin major;
  major.table.abi_major = 3;
  EXPECT_THAT(major.Error(),
              AllOf(HasSubstr("ABI " + AbiText(3, DTRUN_ABI_MINOR)), HasSubstr("version unknown")));
  APlugin demanding;
  demanding.table.abi_minor_required = DTRUN_ABI_MINOR + 1;
  EXPECT_THAT(demanding.Error(), HasSubstr("needs " + AbiText(DTRUN_ABI_MAJOR, DTRUN_ABI_MINOR + 1)));
}

TEST(Normalise, ALauncherHasOneOfItsThreeMembers) {
  APlugin plugin;
  dtrun_launcher launcher;
  DTRUN_INIT(launcher);
  plugin.table.kind = DTRUN_KIND_LAUNCHER;
  plugin.table.launcher = &launcher;
  EXPECT_THAT(plugin.Normalised("demo", Kind::kLauncher).error().text,
              HasSubstr("its member 'plan', 'find_hosts' or 'connect' is missing"));
  launcher.connect = [](auto*, auto*, auto*, auto*) { return dtrun_status{DTRUN_OK}; };
  EXPECT_TRUE(plugin.Normalised("demo", Kind::kLauncher));
}

// A device with all mandatory members.
struct ADevice : APlugin {
  ADevice() {
    DTRUN_INIT(device);
    table.device_draft = DTRUN_DEVICE_DRAFT;
    device.kind = DTRUN_DEVICE_CUDA;
    device.count = device.current = [](auto*, auto*, auto*) { return dtrun_status{DTRUN_OK}; };
    device.memory_of = [](auto*, auto*, auto*, auto*) { return dtrun_status{DTRUN_OK}; };
    device.mem_alloc = [](auto*, auto*, auto**, auto*) { return dtrun_status{DTRUN_OK}; };
    device.mem_free = [](auto*, auto*, auto*) {};
    device.stream_create = [](auto*, auto*, auto*, auto*) { return dtrun_status{DTRUN_OK}; };
    device.stream_destroy = [](auto*, auto*) {};
    device.copy = [](auto*, auto*, auto*, auto, auto*, auto*) { return dtrun_status{DTRUN_OK}; };
    device.event_create = [](auto*, auto, auto**, auto*) { return dtrun_status{DTRUN_OK}; };
    device.event_destroy = [](auto*, auto*) {};
    device.event_record =
        device.event_wait = [](auto*, auto*, auto*, auto*) { return dtrun_status{DTRUN_OK}; };
    device.event_test = [](auto*, auto*, auto*) { return dtrun_status{DTRUN_OK}; };
    device.counter_wait = [](auto*, auto*, auto, auto*, auto*) { return dtrun_status{DTRUN_OK}; };
    table.kind = DTRUN_KIND_DEVICE;
    table.backend = nullptr;
    table.device = &device;
  }
  std::string Refusal() const {
    const auto tables = Normalised("demo", Kind::kDevice);
    return tables ? "it was accepted" : tables.error().text;
  }

  dtrun_device device;
};

TEST(Normalise, ADeviceNeedsAllButTwoMembers) {
  ADevice device;
  const auto tables = device.Normalised("demo", Kind::kDevice);
  ASSERT_TRUE(tables.ok()) << tables.error().text;
  EXPECT_EQ(tables->device.describe, nullptr);
  EXPECT_NE(tables->device.counter_wait, nullptr);
  device.device.event_test = nullptr;
  EXPECT_THAT(device.Refusal(), HasSubstr("its member 'event_test' is missing"));
  ADevice older;
  older.device.struct_size = offsetof(dtrun_device, counter_wait);
  EXPECT_THAT(older.Refusal(), HasSubstr("its member 'counter_wait' is missing"));
}

TEST(Normalise, ADeviceIsOfAKindThatMasksCanHold) {
  for (const std::int32_t kind : {DTRUN_DEVICE_OTHER + 30, static_cast<int>(DTRUN_DEVICE_LEVEL_ZERO)}) {
    ADevice device;
    device.device.kind = kind;
    EXPECT_EQ(device.Refusal(), "it was accepted") << kind;
  }
  for (const std::int32_t kind : {static_cast<int>(DTRUN_DEVICE_HOST), 63, -1}) {
    ADevice device;
    device.device.kind = kind;
    EXPECT_THAT(device.Refusal(), HasSubstr("it is for devices of kind " + std::to_string(kind)));
  }
  ADevice strange;
  strange.device.flags = 0x20000;
  EXPECT_THAT(strange.Refusal(), HasSubstr("its device has the flags 0x20000"));
}

TEST(Normalise, AsksForTheMinorThatTheAuthorNamed) {
  APlugin plugin;  // built with these headers; works with any host of this major
  EXPECT_EQ(plugin.table.abi_minor_required, 0u);
  EXPECT_TRUE(plugin.Normalised().ok());
}

TEST(Normalise, RefusesWhatItWouldHaveToUnderstand) {
  APlugin hint;
  hint.table.flags = hint.backend.flags = hint.option.flags = 0x8000;
  EXPECT_TRUE(hint.Normalised().ok()) << hint.Error();
  APlugin table, backend, option, type, scope, twice;
  table.table.flags = 0x10000;
  EXPECT_THAT(table.Error(), HasSubstr("its table has the flags 0x10000"));
  backend.backend.flags = 0x80000000;
  EXPECT_THAT(backend.Error(), HasSubstr("its backend has the flags 0x80000000"));
  option.option.flags = 0x20001;
  EXPECT_THAT(option.Error(), HasSubstr("its option 'mode' has the flags 0x20000"));
  type.option.type = 99;
  EXPECT_THAT(type.Error(), HasSubstr("its option 'mode' has the type 99"));
  APlugin raw;
  raw.option.doc = "\x1b]0;pwned\a";
  EXPECT_THAT(raw.Error(), HasSubstr("its option 'mode' has control characters: '\\u001b]0;pwned\\u0007'"));
  raw.option.doc = raw.option.long_doc = nullptr;
  raw.option.long_doc = "two\nlines";
  EXPECT_TRUE(raw.Normalised().ok()) << raw.Error();
  scope.option.scope = 9;
  EXPECT_THAT(scope.Error(), HasSubstr("its option 'mode' has the scope 9"));
  const dtrun_option options[] = {twice.option, twice.option};
  twice.table.options = options;
  twice.table.option_count = 2;
  EXPECT_THAT(twice.Error(), HasSubstr("it has the option 'mode' twice"));
  APlugin replaced;
  replaced.option.replaced_by = "other";
  EXPECT_THAT(replaced.Error(),
              HasSubstr("its option 'mode' is replaced by 'other', which it does not have"));
  replaced.option.replaced_by = "mode";
  EXPECT_THAT(replaced.Error(), HasSubstr("its option 'mode' is replaced in a circle"));
}

TEST(Normalise, RefusesZeroStampsAndMissingMagic) {
  APlugin stamps;
  stamps.table.abi_major = stamps.table.abi_minor_built = 0;
  EXPECT_THAT(stamps.Error(), HasSubstr("ABI numbers of its table zero"));
  APlugin magic;
  magic.table.magic = 1;
  EXPECT_THAT(magic.Error(), HasSubstr("no dtrun magic"));
  for (const std::uint32_t bytes : {0u, 8u, 24u}) {
    APlugin size;
    size.table.struct_size = bytes;
    EXPECT_THAT(size.Error(), AllOf(HasSubstr(fmt::format("its table has struct_size {}, ABI ", bytes)),
                                    HasSubstr(fmt::format(" has at least {}", sizeof(dtrun_plugin)))));
  }
}

TEST(Normalise, RefusesATableThatIsTooShort) {
  APlugin plugin;
  plugin.table.struct_size = sizeof(dtrun_plugin) - 8;
  EXPECT_THAT(plugin.Error(), HasSubstr("its table has"));
}

TEST(Normalise, RefusesAnotherKindOrName) {
  const auto launcher = APlugin().Normalised("demo", Kind::kLauncher);
  ASSERT_FALSE(launcher.ok());
  EXPECT_THAT(launcher.error().text, HasSubstr("says that it is a backend"));
  const auto renamed = APlugin().Normalised("other");
  ASSERT_FALSE(renamed.ok());
  EXPECT_THAT(renamed.error().text, HasSubstr("calls itself 'demo'"));
}

TEST(Normalise, TakesDashAndUnderscoreInNamesForTheSame) {
  APlugin plugin;
  plugin.table.name = "per-process";
  EXPECT_TRUE(plugin.Normalised("per_process").ok());
}

TEST(Normalise, NamesTheFirstMandatoryMemberThatIsMissing) {
  APlugin init;
  init.table.init = nullptr;
  EXPECT_THAT(init.Error(), HasSubstr("'init' is missing"));
  APlugin release;
  release.backend.req_release = nullptr;
  EXPECT_THAT(release.Error(), HasSubstr("'req_release' is missing"));
  APlugin table;
  table.table.backend = nullptr;
  EXPECT_THAT(table.Error(), HasSubstr("its table has no backend; set the member 'backend'"));
  APlugin named;
  named.table.name = nullptr;
  EXPECT_THAT(named.Error(), HasSubstr("its table has no name"));
}

TEST(Normalise, RefusesOneHalfOfAPair) {
  APlugin group;
  group.backend.group_begin = [](auto*, auto*, auto*) { return dtrun_status{DTRUN_OK}; };
  EXPECT_THAT(group.Error(), HasSubstr("it has 'group_begin' and no 'group_end'"));
  group.backend.group_end = group.backend.group_begin;
  EXPECT_TRUE(group.Normalised().ok());
  APlugin memory;
  memory.backend.mem_free = [](auto*, auto*) {};
  EXPECT_THAT(memory.Error(), HasSubstr("it has 'mem_free' and no 'mem_alloc'"));
  memory.backend.mem_alloc = [](auto*, auto*, auto**, auto*) { return dtrun_status{DTRUN_OK}; };
  EXPECT_TRUE(memory.Normalised().ok());
  APlugin registration;
  registration.backend.mem_register = [](auto*, auto*, auto*, auto*) { return dtrun_status{DTRUN_OK}; };
  EXPECT_THAT(registration.Error(), HasSubstr("it has 'mem_register' and no 'mem_deregister'"));
  registration.backend.mem_deregister = [](auto*, auto*) {};
  EXPECT_TRUE(registration.Normalised().ok());
}

TEST(Normalise, RefusesABrokenTableOfOptions) {
  APlugin missing;
  missing.table.options = nullptr;
  EXPECT_THAT(missing.Error(), HasSubstr("no table of them"));
  APlugin size;
  size.option.struct_size = 4;
  EXPECT_THAT(size.Error(), HasSubstr("first option"));
  APlugin key;
  key.option.key = nullptr;
  EXPECT_THAT(key.Error(), HasSubstr("option 0 has no key"));
  const std::string long_key(65, 'k');
  for (const char* wrong : {"Mode", "mode-x", "1mode", "mode.x", long_key.c_str()}) {
    APlugin named;
    named.option.key = wrong;
    EXPECT_THAT(named.Error(), HasSubstr("' is not snake_case of 1 to 64 characters")) << wrong;
  }
}

}  // namespace
}  // namespace dtrun::plugin
