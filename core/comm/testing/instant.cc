// instant.cc - a backend that completes operations at once, for communicator_bench.cc.
#include <memory>

#include "dtrun/plugin.hpp"

namespace {

namespace sdk = dtrun::sdk;

struct Request final : sdk::Request {
  bool Test() override { return true; }
  bool Wait(sdk::Nanoseconds) override { return true; }
};

struct Communicator final : sdk::Communicator<Request> {
  std::unique_ptr<Request> Enqueue(const dtrun_op& op, const dtrun_stream*) override {
    return op.kind == DTRUN_BARRIER ? nullptr : std::make_unique<Request>();
  }
};

struct Backend final : sdk::Backend<Communicator> {
  Backend(const sdk::Host&, const sdk::Options&) {}
  sdk::Caps QueryCaps() const override { return sdk::Caps::Everything(); }
  std::unique_ptr<Communicator> CreateCommunicator(const sdk::CommParams&) override {
    return std::make_unique<Communicator>();
  }
};

constexpr sdk::PluginInfo kInfo = {"instant", "1.0", "dtrun", "Apache-2.0",
                                   "operations that are done at once"};
constexpr dtrun_plugin kPlugin = sdk::MakePlugin<Backend>(kInfo);

}  // namespace

dtrun_status dtrun_plugin_entry_v1(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) {
  return sdk::Enter(kPlugin, host, out, err);
}
