// delay.cc - a backend on another one, which lets each operation take longer.
//
//   [backend]
//   name = "delay"
//   [backend.options]
//   over = "gloo"
//   delay = "5ms"
//   [backend.gloo]
//   interface = "eth1"
//
// It shows how a plugin stands on another through the same C tables: the host opens that one with its own
// options, and this one passes on what it does not change. The other must have DTRUN_CAP_ABORT. Memory of the
// backend and of devices is not passed on.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "dtrun/abi/structs.h"
#include "dtrun/plugin.hpp"
#include "dtrun/plugin/wrapped.hpp"

namespace {

namespace sdk = dtrun::sdk;

// What the host knows as a dtrun_instance, a dtrun_backend_comm and a dtrun_request.
struct Instance {
  Instance(const dtrun_host* host, const dtrun_options* raw)
      : options(sdk::Host(host), raw), below(sdk::Host(host), raw, "over"), table(below.table()) {
    if (table.comm_abort != nullptr) return;
    throw sdk::Failure(DTRUN_UNSUPPORTED, std::string("backend '") + below.name() +
                                              "' cannot abort; choose another one for `over`");
  }

  const sdk::Options options;
  const std::chrono::nanoseconds delay = options.Duration("delay");
  const sdk::Wrapped below;
  const dtrun_backend& table;
};

struct Comm {
  const Instance& instance;
  dtrun_backend_comm* inner = nullptr;
};

struct Delayed {
  const Instance& instance;
  dtrun_request* inner = nullptr;  // null: it had completed at once
  sdk::Deadline ready;             // not before
};

template <class T, class Handle>
T& As(Handle* handle) {
  return *reinterpret_cast<T*>(handle);
}

dtrun_status QueryCaps(dtrun_instance* self, dtrun_backend_caps* out, dtrun_error* err) {
  const Instance& instance = As<Instance>(self);
  dtrun_backend_caps caps;
  DTRUN_INIT(caps);
  const dtrun_status status = instance.table.query_caps(instance.below.instance(), &caps, err);
  if (status != DTRUN_OK) return status;
  // What is passed on; the plugin may know more.
  caps.features &= DTRUN_CAP_ABORT | DTRUN_CAP_ANY_SOURCE | DTRUN_CAP_LAZY_CONNECT | DTRUN_CAP_LOSSY;
  caps.device_kinds = 1u << DTRUN_DEVICE_HOST;
  dtrun_struct_write(out, &caps, sizeof caps);
  return DTRUN_OK;
}

dtrun_status CommCreate(dtrun_instance* self, const dtrun_comm_params* params, dtrun_backend_comm** out,
                        dtrun_error* err) {
  return sdk::Guard(err, [&] {
    const Instance& instance = As<Instance>(self);
    auto comm = std::make_unique<Comm>(Comm{instance});
    dtrun_comm_params passed = sdk::internal::ReadStruct(params);
    if (passed.parent != nullptr) passed.parent = As<Comm>(passed.parent).inner;
    sdk::Check([&](dtrun_error* e) {
      return instance.table.comm_create(instance.below.instance(), &passed, &comm->inner, e);
    });
    *out = reinterpret_cast<dtrun_backend_comm*>(comm.release());
    return dtrun_status{DTRUN_OK};
  });
}

void CommDestroy(dtrun_backend_comm* handle) {
  const std::unique_ptr<Comm> comm(&As<Comm>(handle));
  comm->instance.table.comm_destroy(comm->inner);
}

dtrun_status CommAbort(dtrun_backend_comm* handle, const dtrun_abort_params* params, dtrun_error* err) {
  const Comm& comm = As<Comm>(handle);
  return comm.instance.table.comm_abort(comm.inner, params, err);
}

dtrun_status Enqueue(dtrun_backend_comm* handle, const dtrun_op* op, const dtrun_stream* stream,
                     dtrun_request** out, dtrun_error* err) {
  return sdk::Guard(err, [&] {
    const Comm& comm = As<Comm>(handle);
    auto delayed =
        std::make_unique<Delayed>(Delayed{comm.instance, nullptr, sdk::Deadline(comm.instance.delay)});
    const dtrun_status status = comm.instance.table.enqueue(comm.inner, op, stream, &delayed->inner, err);
    if (status != DTRUN_OK && status != DTRUN_PENDING) return status;
    *out = reinterpret_cast<dtrun_request*>(delayed.release());
    return dtrun_status{DTRUN_PENDING};
  });
}

// What has completed is held back; a failure is not.
dtrun_status ReqWaitHost(dtrun_request* handle, std::int64_t timeout_ns, dtrun_error* err) {
  const Delayed& delayed = As<Delayed>(handle);
  const sdk::Deadline patience{sdk::Nanoseconds(timeout_ns)};
  dtrun_status status = DTRUN_OK;
  if (delayed.inner != nullptr) status = delayed.instance.table.req_wait_host(delayed.inner, timeout_ns, err);
  if (status != DTRUN_OK) return status;
  std::this_thread::sleep_until(std::min(patience.at(), delayed.ready.at()));
  return delayed.ready.passed() ? DTRUN_OK : DTRUN_PENDING;
}

dtrun_status ReqTest(dtrun_request* handle, dtrun_error* err) { return ReqWaitHost(handle, 0, err); }

void ReqRelease(dtrun_request* handle) {
  const std::unique_ptr<Delayed> delayed(&As<Delayed>(handle));
  if (delayed->inner != nullptr) delayed->instance.table.req_release(delayed->inner);
}

// Calls a member that the backend below may lack. What is passed on is refused where it is not understood,
// either way.
template <class Struct, class Member, class... Words>
dtrun_status PassOn(Member member, const Struct* given, dtrun_error* err, Words... words) {
  return sdk::Guard(err, [&]() -> dtrun_status {
    sdk::internal::ReadKnown(given, "the struct");
    return member == nullptr ? DTRUN_OK : member(words..., err);
  });
}

dtrun_status QuerySupport(dtrun_instance* self, const dtrun_support_query* query, dtrun_error* err) {
  const Instance& instance = As<Instance>(self);
  return PassOn(instance.table.query_support, query, err, instance.below.instance(), query);
}

dtrun_status LaunchInfo(dtrun_instance* self, const dtrun_launch_query* query, const dtrun_launch_sink* sink,
                        dtrun_error* err) {
  const Instance& instance = As<Instance>(self);
  return sdk::Guard(err, [&] {
    sdk::internal::ReadKnown(sink, "dtrun_launch_sink");
    return PassOn(instance.table.launch_info, query, err, instance.below.instance(), query, sink);
  });
}

dtrun_status GroupBegin(dtrun_backend_comm* handle, const dtrun_group_params* params, dtrun_error* err) {
  const Comm& comm = As<Comm>(handle);
  return PassOn(comm.instance.table.group_begin, params, err, comm.inner, params);
}

dtrun_status GroupEnd(dtrun_backend_comm* handle, const dtrun_group_params* params, dtrun_error* err) {
  const Comm& comm = As<Comm>(handle);
  return PassOn(comm.instance.table.group_end, params, err, comm.inner, params);
}

void Snapshot(dtrun_backend_comm* handle, const dtrun_snapshot_sink* sink) {
  const Comm& comm = As<Comm>(handle);
  if (comm.instance.table.snapshot != nullptr) return comm.instance.table.snapshot(comm.inner, sink);
  static constexpr char kText[] = "delay passes everything on to a backend that says nothing";
  const dtrun_snapshot_sink lines = sdk::internal::ReadStruct(sink);
  if (lines.line != nullptr) (void)lines.line(lines.context, {kText, sizeof kText - 1}, nullptr);
}

// The host asks the backend below for the extensions that this one lacks.
dtrun_backend_comm* Below(dtrun_instance* self, dtrun_backend_comm* handle, const dtrun_wrapped** out_wrapped) {
  *out_wrapped = As<Instance>(self).below.raw();
  return handle == nullptr ? nullptr : As<Comm>(handle).inner;
}

const void* GetExtension(dtrun_instance*, const char* id) {
  static constexpr dtrun_wrapper_extension kWrapper = {sizeof(dtrun_wrapper_extension), 0, &Below};
  return std::strcmp(id, DTRUN_WRAPPER_EXTENSION) == 0 ? &kWrapper : nullptr;
}

dtrun_status Init(const dtrun_init_params* params, dtrun_instance** out, dtrun_error* err) {
  return sdk::Guard(err, [&] {
    const dtrun_init_params given = sdk::internal::ReadKnown(params, "dtrun_init_params");
    *out = reinterpret_cast<dtrun_instance*>(std::make_unique<Instance>(given.host, given.options).release());
    return dtrun_status{DTRUN_OK};
  });
}

void Shutdown(dtrun_instance* self) { delete &As<Instance>(self); }

constexpr dtrun_option kOptions[] = {
    sdk::Option("over", DTRUN_TYPE_STRING, nullptr,
                "the backend that carries the operations, by its name or file")
        .Flags(DTRUN_OPTION_REQUIRED | DTRUN_OPTION_BACKEND),
    sdk::Option("delay", DTRUN_TYPE_DURATION, "1ms", "what each operation takes at least")
        .Range("0s", "10s")};

constexpr dtrun_backend Table() {
  dtrun_backend table{};
  table.struct_size = sizeof table;
  table.launch_info = &LaunchInfo;
  table.query_caps = &QueryCaps;
  table.comm_create = &CommCreate;
  table.comm_destroy = &CommDestroy;
  table.comm_abort = &CommAbort;
  table.enqueue = &Enqueue;
  table.req_test = &ReqTest;
  table.req_wait_host = &ReqWaitHost;
  table.req_release = &ReqRelease;
  table.snapshot = &Snapshot;
  table.group_begin = &GroupBegin;
  table.group_end = &GroupEnd;
  table.query_support = &QuerySupport;
  return table;
}
constexpr dtrun_backend kTable = Table();

constexpr dtrun_plugin Plugin() {
  dtrun_plugin plugin{};
  plugin.struct_size = sizeof plugin;
  plugin.magic = DTRUN_PLUGIN_MAGIC;
  plugin.abi_major = DTRUN_ABI_MAJOR;
  plugin.abi_minor_built = DTRUN_ABI_MINOR;
  plugin.abi_minor_required = DTRUN_ABI_REQUIRED;
  plugin.kind = DTRUN_KIND_BACKEND;
  plugin.name = "delay";
  plugin.version = "1.0";
  plugin.vendor = "dtrun examples";
  plugin.license = "Apache-2.0";
  plugin.summary = "another backend, slower";
  plugin.options = kOptions;
  plugin.option_count = 2;
  plugin.init = &Init;
  plugin.shutdown = &Shutdown;
  plugin.backend = &kTable;
  plugin.get_extension = &GetExtension;
  return plugin;
}
constexpr dtrun_plugin kPlugin = Plugin();

}  // namespace

dtrun_status dtrun_plugin_entry_v1(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) {
  return sdk::Enter(kPlugin, host, out, err);
}
