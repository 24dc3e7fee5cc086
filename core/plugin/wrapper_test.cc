// Tests sdk/include/dtrun/plugin.hpp against the real host services.
#include <gmock/gmock.h>

#include "core/options/snapshot.h"
#include "core/plugin/testing/fake_kv.h"
#include "core/plugin/testing/support.h"
#include "dtrun/plugin.hpp"

namespace dtrun::plugin {
namespace {

using ::testing::HasSubstr;

[[noreturn]] void Throw() { throw std::runtime_error("thrown by the author"); }

// Every method throws once `armed`.
bool armed = false;

class ThrowingRequest final : public sdk::Request {
 public:
  bool Test() override { Throw(); }
  bool Wait(sdk::Nanoseconds) override { Throw(); }
  void WaitStream(const dtrun_stream&) override { Throw(); }
};

class ThrowingCommunicator final : public sdk::Communicator<ThrowingRequest> {
 public:
  std::unique_ptr<ThrowingRequest> Enqueue(const dtrun_op&, const dtrun_stream*) override {
    if (armed) Throw();
    return std::make_unique<ThrowingRequest>();
  }
  void Abort(const std::string&) override { Throw(); }
  void Snapshot(const sdk::SnapshotSink&) override { Throw(); }
};

class ThrowingBackend final : public sdk::Backend<ThrowingCommunicator> {
 public:
  ThrowingBackend(const sdk::Host&, const sdk::Options&) {
    if (armed) Throw();
  }
  sdk::Caps QueryCaps() const override { Throw(); }
  std::unique_ptr<ThrowingCommunicator> CreateCommunicator(const sdk::CommParams&) override {
    if (armed) throw 42;  // not a std::exception
    return std::make_unique<ThrowingCommunicator>();
  }
  void LaunchInfo(const dtrun_launch_query&, const sdk::LaunchSink&) override {
    throw sdk::Failure(DTRUN_REMOTE_FAILURE, "rank 2 went away", 2).Vendor("demo", 17);
  }
};

class ThrowingLauncher final : public sdk::Launcher {
 public:
  ThrowingLauncher(const sdk::Host&, const sdk::Options&) {}
  void Plan(const sdk::Job&, const sdk::PlanSink&) override { throw std::bad_alloc(); }
};

// Only the mandatory members, working.
class PlainRequest final : public sdk::Request {
 public:
  explicit PlainRequest(bool done) : done_(done) {}
  bool Test() override { return done_; }
  bool Wait(sdk::Nanoseconds) override { return done_; }

 private:
  bool done_;
};

class PlainCommunicator final : public sdk::Communicator<PlainRequest> {
 public:
  std::unique_ptr<PlainRequest> Enqueue(const dtrun_op& op, const dtrun_stream* stream) override {
    EXPECT_EQ(stream, nullptr);
    if (op.kind == DTRUN_SEND) return nullptr;  // complete at once
    return std::make_unique<PlainRequest>(op.timeout_ns == 0);
  }
};

class PlainBackend final : public sdk::Backend<PlainCommunicator> {
 public:
  PlainBackend(const sdk::Host& host, const sdk::Options& options) : log_(host, "plain") {
    interface_ = options.String("interface");
    EXPECT_EQ(options.FindInt("unset"), std::nullopt);
  }
  sdk::Caps QueryCaps() const override {
    sdk::Caps caps;
    caps.ops = sdk::Bits({DTRUN_BARRIER, DTRUN_SEND});
    caps.lossy = true;
    return caps;
  }
  std::unique_ptr<PlainCommunicator> CreateCommunicator(const sdk::CommParams& params) override {
    log_.Error(interface_ + " " + params.name + " " + params.kv.Get("k", params.timeout));
    return std::make_unique<PlainCommunicator>();
  }

 private:
  sdk::Log log_;
  std::string interface_;
};

class PlainLauncher final : public sdk::Launcher {
 public:
  PlainLauncher(const sdk::Host&, const sdk::Options&) {}
  void Plan(const sdk::Job& job, const sdk::PlanSink& sink) override {
    sdk::Process process;
    process.rank = job.host(1).first_rank;
    process.argv = {"sh", job.argv().at(0)};
    process.env = {{"A", job.Inherited("HOME").value_or("unset")}};
    sink.Add(process);
    sink.Note(job.name());
  }
};

class WrapperTest : public ::testing::Test {
 protected:
  void SetUp() override { armed = false; }

  dtrun_instance* Init(const dtrun_plugin& plugin) {
    options::Spec spec, unset;
    spec.key = "interface";
    unset.key = "unset";
    unset.type = options::Type::kInt;
    options_.entries["interface"] = {spec, {std::string("lo"), {}}, {}};
    options_.entries["unset"] = {unset, {}, {}};
    dtrun_instance* instance = nullptr;
    EXPECT_EQ(sdk::InitPlugin(plugin, host_, &options_, &instance, Err()), DTRUN_OK) << err_.message;
    return instance;
  }
  dtrun_backend_comm* Create(const dtrun_plugin& plugin, dtrun_instance* instance) {
    dtrun_comm_params params;
    DTRUN_INIT(params);
    params.name = {"world", 5};
    params.kv = &kv_;
    dtrun_backend_comm* comm = nullptr;
    EXPECT_EQ(plugin.backend->comm_create(instance, &params, &comm, Err()), DTRUN_OK) << err_.message;
    return comm;
  }
  // A fresh error for each call.
  dtrun_error* Err() {
    DTRUN_ERROR_INIT(err_);
    return &err_;
  }

  const dtrun_host* host_ = HostTable(Kind::kBackend, false);
  dtrun_options options_;
  testing::FakeKv kv_;
  dtrun_error err_{};
};

TEST_F(WrapperTest, TurnsAnExceptionInEverySlotOfABackendIntoAStatus) {
  static constexpr dtrun_plugin kPlugin = sdk::MakePlugin<ThrowingBackend>({});
  const dtrun_backend& backend = *kPlugin.backend;
  dtrun_instance* instance = Init(kPlugin);
  dtrun_backend_comm* comm = Create(kPlugin, instance);
  dtrun_op op;
  DTRUN_INIT(op);
  dtrun_request* request = nullptr;
  ASSERT_EQ(backend.enqueue(comm, &op, nullptr, &request, Err()), DTRUN_PENDING);

  armed = true;
  dtrun_instance* second = nullptr;
  EXPECT_EQ(sdk::InitPlugin(kPlugin, host_, &options_, &second, Err()), DTRUN_INTERNAL);
  EXPECT_STREQ(err_.message, "thrown by the author");
  EXPECT_EQ(second, nullptr);

  dtrun_launch_query query;
  DTRUN_INIT(query);
  dtrun_launch_sink sink;
  DTRUN_INIT(sink);
  EXPECT_EQ(backend.launch_info(instance, &query, &sink, Err()), DTRUN_REMOTE_FAILURE);
  EXPECT_EQ(err_.peer, 2);
  EXPECT_EQ(err_.vendor_code, 17);
  EXPECT_STREQ(err_.vendor_domain, "demo");

  dtrun_backend_caps caps;
  DTRUN_INIT(caps);
  EXPECT_EQ(backend.query_caps(instance, &caps, Err()), DTRUN_INTERNAL);
  dtrun_comm_params params;
  DTRUN_INIT(params);
  dtrun_backend_comm* other = nullptr;
  EXPECT_EQ(backend.comm_create(instance, &params, &other, Err()), DTRUN_INTERNAL);
  EXPECT_THAT(err_.message, HasSubstr("no std::exception"));
  dtrun_request* third = nullptr;
  EXPECT_EQ(backend.enqueue(comm, &op, nullptr, &third, Err()), DTRUN_INTERNAL);
  EXPECT_EQ(third, nullptr);
  EXPECT_EQ(backend.req_test(request, Err()), DTRUN_INTERNAL);
  EXPECT_EQ(backend.req_wait_host(request, 0, nullptr), DTRUN_INTERNAL);
  dtrun_stream stream;
  DTRUN_INIT(stream);
  EXPECT_EQ(backend.req_wait_stream(request, &stream, Err()), DTRUN_INTERNAL);

  dtrun_abort_params why;
  DTRUN_INIT(why);
  EXPECT_EQ(backend.comm_abort(comm, &why, Err()), DTRUN_INTERNAL);
  // This returns nothing: the log has the error.
  {
    const testing::StderrCapture capture;
    dtrun_snapshot_sink lines;
    DTRUN_INIT(lines);
    backend.snapshot(comm, &lines);
    EXPECT_THAT(capture.Text(), HasSubstr("an exception left snapshot: thrown by the author"));
  }
  backend.req_release(request);
  backend.comm_destroy(comm);
  kPlugin.shutdown(instance);
}

TEST_F(WrapperTest, TurnsAnExceptionInALauncherIntoAStatus) {
  static constexpr dtrun_plugin kPlugin = sdk::MakePlugin<ThrowingLauncher>({});
  dtrun_instance* instance = Init(kPlugin);
  dtrun_job job;
  DTRUN_INIT(job);
  dtrun_plan_sink sink;
  DTRUN_INIT(sink);
  EXPECT_EQ(kPlugin.launcher->plan(instance, &job, &sink, Err()), DTRUN_OUT_OF_MEMORY);
  kPlugin.shutdown(instance);
}

TEST_F(WrapperTest, LeavesSlotsNullAndBitsClearWhereNothingWasOverridden) {
  static constexpr dtrun_plugin kPlain = sdk::MakePlugin<PlainBackend>({});
  const dtrun_backend& backend = *kPlain.backend;
  EXPECT_EQ(backend.launch_info, nullptr);
  EXPECT_EQ(backend.comm_abort, nullptr);
  EXPECT_EQ(backend.req_wait_stream, nullptr);
  EXPECT_EQ(backend.snapshot, nullptr);
  static constexpr dtrun_plugin kFull = sdk::MakePlugin<ThrowingBackend>({});
  EXPECT_NE(kFull.backend->launch_info, nullptr);
  EXPECT_NE(kFull.backend->comm_abort, nullptr);
  EXPECT_NE(kFull.backend->req_wait_stream, nullptr);
  EXPECT_NE(kFull.backend->snapshot, nullptr);

  dtrun_instance* instance = Init(kPlain);
  dtrun_backend_caps caps;
  DTRUN_INIT(caps);
  ASSERT_EQ(backend.query_caps(instance, &caps, Err()), DTRUN_OK);
  EXPECT_EQ(caps.features, std::uint64_t{DTRUN_CAP_LOSSY});
  EXPECT_EQ(caps.ops, (1u << DTRUN_BARRIER) | (1u << DTRUN_SEND));
  kPlain.shutdown(instance);
}

TEST_F(WrapperTest, GivesAuthorsOptionsLogAndKeyValueSpace) {
  static constexpr dtrun_plugin kPlugin = sdk::MakePlugin<PlainBackend>({});
  kv_.values["k"] = "value";
  dtrun_instance* instance = Init(kPlugin);
  const testing::StderrCapture capture;
  dtrun_backend_comm* comm = Create(kPlugin, instance);
  EXPECT_THAT(capture.Text(), ::testing::EndsWith(" error plain: lo world value\n"));

  dtrun_op op;
  DTRUN_INIT(op);
  op.timeout_ns = 5;
  op.struct_size = sizeof op - 1;
  dtrun_request* request = nullptr;
  ASSERT_EQ(kPlugin.backend->enqueue(comm, &op, nullptr, &request, Err()), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(err_.message, ::testing::HasSubstr("dtrun_op has a struct_size of 119, and ABI 1.0 has 120"));

  DTRUN_INIT(op);
  op.timeout_ns = 5;
  ASSERT_EQ(kPlugin.backend->enqueue(comm, &op, nullptr, &request, Err()), DTRUN_PENDING);
  EXPECT_EQ(kPlugin.backend->req_test(request, Err()), DTRUN_PENDING);
  EXPECT_EQ(kPlugin.backend->req_wait_host(request, 1, Err()), DTRUN_PENDING);
  kPlugin.backend->req_release(request);

  op.kind = DTRUN_SEND;
  EXPECT_EQ(kPlugin.backend->enqueue(comm, &op, nullptr, &request, Err()), DTRUN_OK);
  kPlugin.backend->comm_destroy(comm);
  kPlugin.shutdown(instance);
}

TEST_F(WrapperTest, PlansThroughALauncher) {
  static constexpr dtrun_plugin kPlugin = sdk::MakePlugin<PlainLauncher>({});
  dtrun_instance* instance = Init(kPlugin);
  dtrun_job_host hosts[2];
  DTRUN_INIT(hosts[0]);
  DTRUN_INIT(hosts[1]);
  hosts[1].first_rank = 4;
  const char* argv[] = {"train.sh"};
  dtrun_job job;
  DTRUN_INIT(job);
  job.name = "night";
  job.argv = argv;
  job.argc = 1;
  job.hosts = hosts;
  job.host_count = 2;
  job.inherited = [](const dtrun_job*, const char*) -> const char* { return "/home/a"; };
  std::string seen;
  dtrun_plan_sink sink;
  DTRUN_INIT(sink);
  sink.context = &seen;
  sink.process = [](void* context, const dtrun_process* process, dtrun_error*) -> dtrun_status {
    *static_cast<std::string*>(context) += std::to_string(process->rank) + " " + process->argv[1] + " " +
                                           process->env[0].name + "=" + process->env[0].value + " " +
                                           (process->cwd == nullptr ? "here" : process->cwd);
    return DTRUN_OK;
  };
  sink.note = [](void* context, dtrun_string text, dtrun_error*) -> dtrun_status {
    *static_cast<std::string*>(context) += std::string("; ") + text.data;
    return DTRUN_OK;
  };
  ASSERT_EQ(kPlugin.launcher->plan(instance, &job, &sink, Err()), DTRUN_OK) << err_.message;
  EXPECT_EQ(seen, "4 train.sh A=/home/a here; night");
  kPlugin.shutdown(instance);
}

TEST_F(WrapperTest, CutsLongMessagesAtACharacter) {
  const std::string text = std::string(DTRUN_ERROR_MESSAGE_BYTES - 2, 'a') + "é";
  sdk::FillError(Err(), DTRUN_VENDOR, text);
  EXPECT_EQ(std::string(err_.message), std::string(DTRUN_ERROR_MESSAGE_BYTES - 2, 'a'));
}

TEST_F(WrapperTest, RefusesAnEntryWithoutHostOrOut) {
  static constexpr dtrun_plugin kPlugin = sdk::MakePlugin<PlainBackend>({});
  const dtrun_plugin* out = nullptr;
  EXPECT_EQ(sdk::Enter(kPlugin, nullptr, &out, Err()), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(sdk::Enter(kPlugin, host_, &out, Err()), DTRUN_OK);
  EXPECT_EQ(out, &kPlugin);
}

}  // namespace
}  // namespace dtrun::plugin
