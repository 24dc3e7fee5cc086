#include "dtrun/plugin/launcher.hpp"

#include <gmock/gmock.h>

#include "sdk/conformance/guard.h"
#include "sdk/conformance/host.h"

namespace dtrun::sdk {
namespace {

using conformance::Guarded;
using testing::HasSubstr;

class OneHost final : public Launcher {
 public:
  OneHost(const Host&, const Options&) {}
  Allocation FindHosts(const HostsQuery& query) override {
    Allocation found;
    found.hosts = {{query.Variable("NODE").value_or("nobody"), 2}};
    return found;
  }
  std::vector<ConnectCommand> Connect(const ConnectQuery& query) override {
    ConnectCommand command;
    command.argv = {"go", query.Variable("NODE").value_or("nobody")};
    command.hosts = {0};
    return {command};
  }
};

template <class Query>
const char* NodeOf(const Query*, const char* name) {
  return std::string_view(name) == "NODE" ? "node1" : nullptr;
}

class LauncherTest : public testing::Test {
 protected:
  LauncherTest() {
    DTRUN_INIT(hosts_);
    hosts_.variable = &NodeOf<dtrun_hosts_query>;
    DTRUN_INIT(connect_);
    connect_.variable = &NodeOf<dtrun_connect_query>;
    DTRUN_INIT(hosts_sink_);
    hosts_sink_.context = this;
    hosts_sink_.allocation = [](void* self, const dtrun_allocation* given, dtrun_error*) -> dtrun_status {
      static_cast<LauncherTest*>(self)->said_ = given->hosts[0].name;
      return DTRUN_OK;
    };
    DTRUN_INIT(connect_sink_);
    connect_sink_.context = this;
    connect_sink_.command = [](void* self, const dtrun_connect_command* given, dtrun_error*) -> dtrun_status {
      static_cast<LauncherTest*>(self)->said_ = given->argv[1];
      return DTRUN_OK;
    };
    DTRUN_ERROR_INIT(error_);
  }
  dtrun_instance* self() { return reinterpret_cast<dtrun_instance*>(&instance_); }
  dtrun_status FindHosts(const dtrun_hosts_query* query, const dtrun_hosts_sink* sink) {
    return internal::kLauncherTable<OneHost>.find_hosts(self(), query, sink, &error_);
  }
  dtrun_status Connect(const dtrun_connect_query* query, const dtrun_connect_sink* sink) {
    return internal::kLauncherTable<OneHost>.connect(self(), query, sink, &error_);
  }

  dtrun_hosts_query hosts_;
  dtrun_connect_query connect_;
  dtrun_hosts_sink hosts_sink_;
  dtrun_connect_sink connect_sink_;
  internal::Instance<OneHost> instance_{conformance::Host(DTRUN_KIND_LAUNCHER), nullptr};
  std::string said_;
  dtrun_error error_;
};

TEST_F(LauncherTest, RefusesQueriesAndSinksThatAreSmallerThanAt10) {
  EXPECT_EQ(FindHosts(&hosts_, &hosts_sink_), DTRUN_OK);
  EXPECT_EQ(std::exchange(said_, ""), "node1");
  EXPECT_EQ(Connect(&connect_, &connect_sink_), DTRUN_OK);
  EXPECT_EQ(std::exchange(said_, ""), "node1");

  const Guarded<dtrun_hosts_query> query("dtrun_hosts_query", hosts_, sizeof hosts_ - 8);
  EXPECT_EQ(FindHosts(query.get(), &hosts_sink_), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("dtrun_hosts_query has a struct_size of 8, and ABI 1.0 has 16"));
  const Guarded<dtrun_hosts_sink> sink("dtrun_hosts_sink", hosts_sink_, sizeof hosts_sink_ - 8);
  EXPECT_EQ(FindHosts(&hosts_, sink.get()), DTRUN_INVALID_ARGUMENT);
  const Guarded<dtrun_connect_query> to("dtrun_connect_query", connect_, sizeof connect_ - 8);
  EXPECT_EQ(Connect(to.get(), &connect_sink_), DTRUN_INVALID_ARGUMENT);
  const Guarded<dtrun_connect_sink> commands("dtrun_connect_sink", connect_sink_, sizeof connect_sink_ - 8);
  EXPECT_EQ(Connect(&connect_, commands.get()), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(said_, "");
}

TEST_F(LauncherTest, RefusesFlagsThatItWouldHaveToUnderstand) {
  constexpr std::uint32_t kStrange = 1u << 30, kHint = 1u << 14;
  hosts_.flags = connect_.flags = kHint;
  EXPECT_EQ(FindHosts(&hosts_, &hosts_sink_), DTRUN_OK);
  EXPECT_EQ(Connect(&connect_, &connect_sink_), DTRUN_OK);
  hosts_.flags = connect_.flags = kStrange;
  EXPECT_EQ(FindHosts(&hosts_, &hosts_sink_), DTRUN_UNSUPPORTED);
  EXPECT_THAT(error_.message, HasSubstr("dtrun_hosts_query has flags 1073741824"));
  EXPECT_EQ(Connect(&connect_, &connect_sink_), DTRUN_UNSUPPORTED);
  hosts_.flags = 0;
  hosts_sink_.flags = kStrange;
  EXPECT_EQ(FindHosts(&hosts_, &hosts_sink_), DTRUN_UNSUPPORTED);
}

}  // namespace
}  // namespace dtrun::sdk
