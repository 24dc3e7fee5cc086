#include <gmock/gmock.h>

#include "core/base/error.h"
#include "core/options/snapshot.h"
#include "core/plugin/host.h"
#include "core/plugin/plugin.h"
#include "core/plugin/services.h"
#include "core/plugin/testing/support.h"

namespace dtrun::plugin {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using Wrapped = dtrun_options::Wrapped;

dtrun_options Demo() {
  dtrun_options options;
  options::Spec interface;
  interface.key = "interface";
  options.Set(interface, {std::string("eth9"), {}});
  return options;
}

// The options of a wrapper on the backend `name`, from that file.
dtrun_options On(const std::string& name, dtrun_options options = {}, const std::string& id = "",
                 const std::string& path = "") {
  dtrun_options over;
  options::Spec spec;
  spec.key = "on";
  spec.names_backend = true;
  over.Set(spec, {name, {}});
  over.entries["on"].wrapped = std::make_shared<const Wrapped>(
      Wrapped{name, path.empty() ? testing::Built(name).path.string() : path, id, std::move(options)});
  return over;
}

class StackTest : public ::testing::Test {
 protected:
  void SetUp() override {
    SetProbeProgram(DTRUN_TEST_PROBE);
    SetCallWatch([this](std::string call) {
      calls_.push_back(std::move(call));
      return nullptr;
    });
  }
  void TearDown() override { SetCallWatch({}); }

  // The error of open, or empty.
  std::string Open(const dtrun_options& options, const char* key = "on") {
    error_ = PluginError();
    const dtrun_status status = service_->open(host_, &options, key, &below_, &error_);
    EXPECT_EQ(status, error_.code);
    return status == DTRUN_OK ? "" : error_.message;
  }

  const dtrun_plugins_service* const service_ = PluginsService();
  const dtrun_host* const host_ = HostTable(Kind::kBackend, false);
  const dtrun_wrapped* below_ = nullptr;
  PluginError error_;
  std::vector<std::string> calls_;
};

TEST_F(StackTest, OpensTheBackendThatTheOptionNames) {
  const dtrun_options options = On("demo", Demo());
  ASSERT_EQ(Open(options), "");
  const dtrun_plugin& plugin = *below_->plugin;
  EXPECT_STREQ(plugin.name, "demo");
  EXPECT_EQ(plugin.init, nullptr);
  EXPECT_EQ(plugin.shutdown, nullptr);
  EXPECT_EQ(plugin.backend->comm_abort, nullptr);
  dtrun_backend_caps caps;
  DTRUN_INIT(caps);
  EXPECT_EQ(plugin.backend->query_caps(below_->instance, &caps, &error_), DTRUN_OK);
  EXPECT_EQ(caps.ops, 1u << DTRUN_BARRIER);

  dtrun_comm_params params;
  DTRUN_INIT(params);
  dtrun_backend_comm* comm = nullptr;
  EXPECT_EQ(plugin.backend->comm_create(below_->instance, &params, &comm, &error_), DTRUN_UNSUPPORTED);
  EXPECT_STREQ(error_.message, "backend 'demo': the demo makes no communicators");
  service_->close(host_, below_);
  EXPECT_THAT(calls_, ElementsAre("backend 'demo', being loaded", "backend 'demo', in its init",
                                  "backend 'demo', in query_caps", "backend 'demo', in comm_create",
                                  "backend 'demo', in its shutdown"));
  service_->close(host_, nullptr);
}

TEST_F(StackTest, MakesAndDestroysItsCommunicators) {
  ASSERT_EQ(Open(On("shutdown_exits")), "");
  dtrun_comm_params params;
  DTRUN_INIT(params);
  dtrun_backend_comm* comm = nullptr;
  ASSERT_EQ(below_->plugin->backend->comm_create(below_->instance, &params, &comm, &error_), DTRUN_OK);
  ASSERT_NE(comm, nullptr);
  below_->plugin->backend->comm_destroy(comm);
  EXPECT_EQ(calls_.back(), "backend 'shutdown_exits', in comm_destroy");
}

// A wrapper may pass on instance and communicators of the one below as its own.
TEST_F(StackTest, EveryLevelIsCalled) {
  ASSERT_EQ(Open(On("over", On("shutdown_exits"))), "");
  dtrun_comm_params params;
  DTRUN_INIT(params);
  dtrun_backend_comm* comm = nullptr;
  ASSERT_EQ(below_->plugin->backend->comm_create(below_->instance, &params, &comm, &error_), DTRUN_OK);
  calls_.clear();
  below_->plugin->backend->comm_destroy(comm);
  EXPECT_THAT(calls_,
              ElementsAre("backend 'over', in comm_destroy", "backend 'shutdown_exits', in comm_destroy"));
}

TEST_F(StackTest, OpensASecondOneBesideTheFirst) {
  ASSERT_EQ(Open(On("demo")), "");
  const dtrun_wrapped* const first = below_;
  ASSERT_EQ(Open(On("demo")), "");
  EXPECT_NE(first->plugin->backend->comm_create, below_->plugin->backend->comm_create);
  service_->close(host_, first);
  service_->close(host_, below_);
}

TEST_F(StackTest, SaysWhatCannotBeOpened) {
  EXPECT_THAT(Open(On("demo"), "other"), HasSubstr("no option 'other'"));
  dtrun_options plain = On("demo");
  plain.entries["on"].wrapped = nullptr;
  EXPECT_THAT(Open(plain), HasSubstr("lacks DTRUN_OPTION_BACKEND"));
  plain.entries["on"].value = {};
  EXPECT_THAT(Open(plain), HasSubstr("'on' is unset"));
  // A file has one answer in a process, so that these are copies.
  const testing::TempFolder folder;
  const std::string pin = Sha256Id(std::string(64, 'a'));
  EXPECT_THAT(Open(On("demo", {}, pin, folder.Copy("demo"))),
              AllOf(HasSubstr("backend plugin"), HasSubstr("wanted is " + pin)));
  EXPECT_THAT(Open(On("null_table")), HasSubstr("libdtrun_backend_null_table.so"));
  const std::string writable = folder.Copy("over");
  testing::SetMode(writable, 0666);
  EXPECT_THAT(Open(On("over", {}, "", writable)), AllOf(HasSubstr(writable), HasSubstr("chmod")));
  EXPECT_THAT(Open(On("entry_fails")), HasSubstr("this plugin wants a full moon"));
  EXPECT_EQ(below_, nullptr);
}

TEST_F(StackTest, NamesTheLowestThatFails) {
  // `over` has no option `on`, so that its init fails.
  EXPECT_EQ(Open(On("over")), "backend 'over': the plugin's table has no option 'on'");
  const testing::TempFolder folder;
  const dtrun_options two = On("over", On("demo", {}, Sha256Id(std::string(64, 'b')), folder.Copy("demo")));
  EXPECT_THAT(Open(two), AllOf(HasSubstr("_demo.so"), Not(HasSubstr("'over'"))));
}

TEST_F(StackTest, AnswersInAProbeForTheWholeStack) {
  auto probe = Probe::Start(testing::Built("over"));
  ASSERT_TRUE(probe.ok()) << probe.error().text;
  EXPECT_TRUE((*probe)->description().options.front().names_backend);
  const dtrun_options options = On("demo", Demo());
  const auto info = (*probe)->Launch(options, 3, 1);
  ASSERT_TRUE(info.ok()) << info.error().text;
  EXPECT_THAT(info->facts, Contains(Pair("over", "passes everything on")));
  EXPECT_THAT(info->facts, Contains(Pair("in_probe", "yes")));
  EXPECT_THAT(info->env, ElementsAre(Pair("DEMO_INTERFACE", "eth9")));

  // A rank must load the files that answered.
  dtrun_options of_rank = options;
  EXPECT_EQ(RequireStack(info->file_id, &of_rank), (*Load(testing::Built("over")))->id());
  EXPECT_EQ(of_rank.entries["on"].wrapped->id, (*Load(testing::Built("demo")))->id());
  EXPECT_EQ(options.entries.find("on")->second.wrapped->id, "");
}

TEST_F(StackTest, IdsReachEveryLevel) {
  dtrun_options options = On("over", On("demo"));
  EXPECT_EQ(options::StackText("delay", options), "delay > over > demo");
  EXPECT_EQ(RequireStack("a b, c|over=size 1|demo=size 2", &options), "a b, c");
  EXPECT_EQ(options.entries["on"].wrapped->id, "size 1");
  EXPECT_EQ(options.entries["on"].wrapped->options.entries.find("on")->second.wrapped->id, "size 2");
  EXPECT_EQ(RequireStack("", &options), "");
}

}  // namespace
}  // namespace dtrun::plugin
