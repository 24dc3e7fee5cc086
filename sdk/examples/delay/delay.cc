// delay.cc - a backend that has another one carry its operations and lets each take longer.
//
//   [backend]
//   name = "delay"
//   [backend.options]
//   plugin = "/path/libdtrun_backend_tcp.so"
//   delay = "5ms"
//
// It shows how a plugin stands on another through the same C tables. The other must have no options of its
// own, because this one's are all that dtrun knows, and DTRUN_CAP_ABORT. What the other can do besides
// operations in host memory is not passed on: launch information, snapshots, groups, memory and extensions.
#include <dlfcn.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>

#include "dtrun/abi/structs.h"
#include "dtrun/plugin.hpp"

namespace {

namespace sdk = dtrun::sdk;

// The plugin in `file`. Its tables live as long as the process, as every plugin's.
const dtrun_plugin& Load(const std::string& file, const dtrun_host* host) {
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw sdk::Failure(DTRUN_NOT_FOUND, std::string("backend.options.plugin: ") + ::dlerror());
  const auto entry = reinterpret_cast<dtrun_plugin_entry>(::dlsym(library, DTRUN_PLUGIN_ENTRY_SYMBOL));
  if (entry == nullptr) throw sdk::Failure(DTRUN_INVALID_ARGUMENT, "'" + file + "' is no plugin of dtrun");
  const dtrun_plugin* plugin = nullptr;
  sdk::Check([&](dtrun_error* e) { return entry(host, &plugin, e); });
  if (plugin->magic != DTRUN_PLUGIN_MAGIC || plugin->abi_major != DTRUN_ABI_MAJOR ||
      plugin->abi_minor_built != DTRUN_ABI_MINOR || plugin->kind != DTRUN_KIND_BACKEND) {
    throw sdk::Failure(DTRUN_UNSUPPORTED,
                       "'" + file + "' is no backend of this ABI; build both with the same SDK");
  }
  if (plugin->option_count == 0 && plugin->backend->comm_abort != nullptr) return *plugin;
  throw sdk::Failure(DTRUN_UNSUPPORTED,
                     "'" + file + "' has options of its own, or cannot abort; choose another backend");
}

// What the host knows as a dtrun_instance, a dtrun_backend_comm and a dtrun_request.
struct Instance {
  Instance(const dtrun_host* host, const dtrun_options* raw) : options(sdk::Host(host), raw) {
    const dtrun_plugin& plugin = Load(options.String("plugin"), host);
    table = plugin.backend;
    shutdown = plugin.shutdown;
    sdk::Check([&](dtrun_error* e) { return plugin.init(host, raw, &inner, e); });
  }
  ~Instance() { shutdown(inner); }

  const sdk::Options options;
  const std::chrono::nanoseconds delay = options.Duration("delay");
  const dtrun_backend* table = nullptr;
  void (*shutdown)(dtrun_instance*) = nullptr;
  dtrun_instance* inner = nullptr;
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
  const dtrun_status status = instance.table->query_caps(instance.inner, &caps, err);
  if (status != DTRUN_OK) return status;
  caps.flags &= ~static_cast<std::uint32_t>(DTRUN_CAP_DETACHED);  // no call would wait for its delay
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
      return instance.table->comm_create(instance.inner, &passed, &comm->inner, e);
    });
    *out = reinterpret_cast<dtrun_backend_comm*>(comm.release());
    return dtrun_status{DTRUN_OK};
  });
}

void CommDestroy(dtrun_backend_comm* handle) {
  const std::unique_ptr<Comm> comm(&As<Comm>(handle));
  comm->instance.table->comm_destroy(comm->inner);
}

dtrun_status CommAbort(dtrun_backend_comm* handle, const dtrun_abort_params* params, dtrun_error* err) {
  const Comm& comm = As<Comm>(handle);
  return comm.instance.table->comm_abort(comm.inner, params, err);
}

dtrun_status Enqueue(dtrun_backend_comm* handle, const dtrun_op* op, const dtrun_stream* stream,
                     dtrun_request** out, dtrun_error* err) {
  return sdk::Guard(err, [&] {
    const Comm& comm = As<Comm>(handle);
    auto delayed =
        std::make_unique<Delayed>(Delayed{comm.instance, nullptr, sdk::Deadline(comm.instance.delay)});
    const dtrun_status status = comm.instance.table->enqueue(comm.inner, op, stream, &delayed->inner, err);
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
  if (delayed.inner != nullptr)
    status = delayed.instance.table->req_wait_host(delayed.inner, timeout_ns, err);
  if (status != DTRUN_OK) return status;
  std::this_thread::sleep_until(std::min(patience.at(), delayed.ready.at()));
  return delayed.ready.passed() ? DTRUN_OK : DTRUN_PENDING;
}

dtrun_status ReqTest(dtrun_request* handle, dtrun_error* err) { return ReqWaitHost(handle, 0, err); }

void ReqRelease(dtrun_request* handle) {
  const std::unique_ptr<Delayed> delayed(&As<Delayed>(handle));
  if (delayed->inner != nullptr) delayed->instance.table->req_release(delayed->inner);
}

dtrun_status QuerySupport(dtrun_instance* self, const dtrun_support_query* query, dtrun_error* err) {
  const Instance& instance = As<Instance>(self);
  if (instance.table->query_support == nullptr) return DTRUN_OK;
  return instance.table->query_support(instance.inner, query, err);
}

dtrun_status Init(const dtrun_host* host, const dtrun_options* options, dtrun_instance** out,
                  dtrun_error* err) {
  return sdk::Guard(err, [&] {
    *out = reinterpret_cast<dtrun_instance*>(std::make_unique<Instance>(host, options).release());
    return dtrun_status{DTRUN_OK};
  });
}

void Shutdown(dtrun_instance* self) { delete &As<Instance>(self); }

constexpr dtrun_option kOptions[] = {
    sdk::Option("plugin", DTRUN_TYPE_PATH, nullptr, "file of the backend that carries the operations")
        .Flags(DTRUN_OPTION_REQUIRED | DTRUN_OPTION_MUST_EXIST),
    sdk::Option("delay", DTRUN_TYPE_DURATION, "1ms", "what each operation takes at least")
        .Range("0s", "10s")};

constexpr dtrun_backend Table() {
  dtrun_backend table{};
  table.struct_size = sizeof table;
  table.query_caps = &QueryCaps;
  table.comm_create = &CommCreate;
  table.comm_destroy = &CommDestroy;
  table.comm_abort = &CommAbort;
  table.enqueue = &Enqueue;
  table.req_test = &ReqTest;
  table.req_wait_host = &ReqWaitHost;
  table.req_release = &ReqRelease;
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
  return plugin;
}
constexpr dtrun_plugin kPlugin = Plugin();

}  // namespace

dtrun_status dtrun_plugin_entry_v0(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) {
  return sdk::Enter(kPlugin, host, out, err);
}
