// The plugin as core drives it, for tests. Ranks are threads of this process, which the fake NCCL joins; each
// has core's communicator, over shared memory for the host and over this plugin for its own device, and the
// device plugin `cuda` over the fake CUDA runtime.
#pragma once

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/comm/communicator.h"
#include "core/comm/family.h"
#include "core/comm/shm/backend.h"
#include "core/comm/testing/local_spaces.h"
#include "core/contract/checker.h"
#include "core/contract/recorder.h"
#include "core/plugin/host.h"
#include "core/plugin/plugin.h"
#include "cuda_program.h"
#include "fake_control.h"

namespace dtrun::nccl_test {

inline constexpr std::size_t kCount = 1000;
inline constexpr std::size_t kBytes = kCount * sizeof(float);

template <class Function>
Function* Symbol(const char* file, const char* name) {
  void* const image = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (image == nullptr) throw std::runtime_error(dlerror());
  return reinterpret_cast<Function*>(dlsym(image, name));
}

inline nccl_fake::CudaControl& FakeCuda() {
  return *Symbol<nccl_fake::CudaControl*()>(FAKE_CUDART_FILE, "dtrun_fake_cuda")();
}
inline nccl_fake::NcclControl& FakeNccl() {
  return *Symbol<nccl_fake::NcclControl*()>(FAKE_NCCL_FILE, "dtrun_fake_nccl")();
}

// What a kernel would do, on a stream.
inline void Post(void* stream, const std::function<void()>& kernel) {
  static auto* const run = Symbol<void(void*, const void*)>(FAKE_CUDART_FILE, "dtrun_fake_run");
  run(stream, &kernel);
}

// A plugin as a rank starts it; it stays.
struct Started {
  const plugin::Plugin* plugin = nullptr;
  dtrun_options options;
  dtrun_instance* instance = nullptr;

  Started(plugin::Kind kind, const char* name, const char* file,
          const std::map<std::string, std::string>& given) {
    const auto loaded = plugin::Load({kind, name, file, "test", {}, {}});
    if (!loaded) throw std::runtime_error(loaded.error().text);
    plugin = *loaded;
    const dtrun_plugin& table = plugin->table();
    for (options::Spec& spec : options::FromAbi(table.options, table.option_count, "", name)) {
      options::Value value;
      const auto set = given.find(spec.key);
      if (set != given.end()) {
        value.data = std::move(options::ParseText(spec, set->second, "/")).value();
      } else if (spec.default_text) {
        value.data = std::move(options::ParseText(spec, *spec.default_text, "/")).value();
      }
      options.Set(std::move(spec), std::move(value));
    }
    PluginError error;
    if (sdk::InitPlugin(table, &plugin->host(), &options, &instance, &error) != DTRUN_OK)
      throw std::runtime_error(error.message);
  }
};

class NcclDevices final : public comm::Devices {
 public:
  NcclDevices() {
    static Started cuda(plugin::Kind::kDevice, "cuda", CUDA_PLUGIN_FILE, {});
    static Started nccl(plugin::Kind::kBackend, "nccl", NCCL_PLUGIN_FILE,
                        {{"library", FAKE_NCCL_FILE}, {"cuda_library", FAKE_CUDART_FILE}});
    device_ = {&cuda.plugin->device(), cuda.instance, "cuda"};
    carrier_ = {nccl.plugin->backend(), nccl.instance, "nccl"};
  }
  Result<const comm::Device*> Plugin(std::int32_t kind) override {
    if (kind == DTRUN_DEVICE_CUDA) return &device_;
    return Error{DTRUN_NOT_FOUND, "no such plugin"};
  }
  Result<comm::Carrier> CarrierOf(std::int32_t) override { return carrier_; }

 private:
  comm::Device device_;
  comm::Carrier carrier_;
};

inline comm::Carrier SharedMemory() {
  const dtrun_plugin& engine = shm::EnginePlugin();
  static dtrun_options none;
  comm::Carrier carrier{*engine.backend, nullptr, "shm"};
  PluginError error;
  if (sdk::InitPlugin(engine, plugin::HostTable(plugin::Kind::kBackend, false), &none, &carrier.instance,
                      &error) != DTRUN_OK)
    throw std::runtime_error(error.message);
  return carrier;
}

// Memory of a rank's device that also the test reads: it is the process's own.
struct Buffer {
  Buffer(const CudaProgram& program, float value)
      : cuda(program), data(static_cast<float*>(program.Allocate(kBytes))) {
    std::fill_n(data, kCount, value);
  }
  ~Buffer() { cuda.Free(data); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  bool Is(float value) const {
    return std::count(data, data + kCount, value) == static_cast<std::ptrdiff_t>(kCount);
  }

  const CudaProgram& cuda;
  float* const data;
};

// One rank, on its thread.
struct Member {
  const CudaProgram& cuda;
  dtrun_comm& comm;
  comm::Family& family;
  int rank;
  int device;

  dtrun_stream Stream() const {
    dtrun_stream stream;
    DTRUN_INIT(stream);
    stream.device_kind = DTRUN_DEVICE_CUDA;
    stream.device_index = device;
    stream.native = cuda.MakeStream();
    return stream;
  }
  static dtrun_op Op(const float* send, float* recv, std::int32_t kind = DTRUN_ALLREDUCE) {
    dtrun_op op;
    DTRUN_INIT(op);
    op.kind = kind;
    op.dtype = DTRUN_FLOAT32;
    op.reduce = kind == DTRUN_ALLREDUCE ? DTRUN_SUM : 0;
    op.root = op.peer = -1;
    op.send = send;
    op.recv = recv;
    op.count = kCount;
    return op;
  }
  // How the start of `op` ends.
  Error On(const dtrun_stream& stream, dtrun_op op, dtrun_work** work = nullptr,
           dtrun_comm* where = nullptr) const {
    PluginError error;
    const dtrun_status status = (where == nullptr ? comm : *where).StartOnStream(op, stream, work, &error);
    return {status, status == DTRUN_OK ? "" : error.message, error.peer};
  }
  Error OnHost(dtrun_op op) const {
    PluginError error;
    const dtrun_status status = comm.Start(op, nullptr, &error);
    return {status, status == DTRUN_OK ? "" : error.message, error.peer};
  }
  // What ends the communicator.
  Error AwaitFailure() const {
    for (;;) {
      if (Status usable = comm.Usable(); !usable) return usable.error();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
};

class NcclInCore : public ::testing::Test {
 protected:
  NcclInCore() {
    FakeCuda().device_count = kRanks;
    FakeCuda().knows_memory = true;
  }
  ~NcclInCore() override {
    FakeCuda().Reset();
    FakeNccl().Reset();
  }

  // Plays all ranks, each on a device of its own; `apart`: or all on the first.
  void Play(const std::function<void(Member&)>& body, bool apart = true) {
    comm::testing::LocalSpaces spaces;
    const comm::Carrier host = SharedMemory();
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < kRanks; ++rank) {
      ranks.emplace_back([&, rank] {
        const int device = apart ? rank : 0;
        cuda_.Use(device);
        const auto kv = spaces.Space("comm/world/"), device_kv = spaces.Space("device/world/");
        comm::Making making;
        making.backend = host.table;
        making.instance = host.instance;
        making.backend_name = host.name;
        making.name = "world";
        making.rank = rank;
        making.size = kRanks;
        making.hosts.assign(kRanks, 0);
        making.kv = kv.get();
        making.devices = &devices_;
        making.device_kv = device_kv.get();
        making.timeout = timeout_;
        making.report = [](const Error&) {};
        if (!recorders_.empty()) making.recorder = recorders_[static_cast<std::size_t>(rank)].get();
        auto made = dtrun_comm::Create(std::move(making));
        ASSERT_TRUE(made.ok()) << made.error().text;
        comm::Family family([&](std::string prefix) { return spaces.Space(std::move(prefix)); });
        Member member{cuda_, **made, family, rank, device};
        body(member);
      });
    }
    for (std::thread& rank : ranks) rank.join();
    shm::EnginePlugin().shutdown(host.instance);
  }

  static constexpr int kRanks = 3;
  static constexpr float kSum = 6;  // of rank + 1
  const CudaProgram cuda_{FAKE_CUDART_FILE};
  NcclDevices devices_;
  Nanoseconds timeout_ = std::chrono::seconds(30);
  std::vector<std::unique_ptr<contract::Recorder>> recorders_;
};

}  // namespace dtrun::nccl_test
