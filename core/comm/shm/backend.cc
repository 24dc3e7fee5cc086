#include "core/comm/shm/backend.h"

#include "core/comm/shm/communicator.h"

namespace dtrun::shm {
namespace {

class ShmBackend final : public sdk::Backend<ShmCommunicator> {
 public:
  ShmBackend(const sdk::Host& host, const sdk::Options&) : host_(host) {}

  sdk::Caps QueryCaps() const override {
    sdk::Caps caps = sdk::Caps::Everything();
    caps.any_source = true;
    return caps;
  }
  std::unique_ptr<ShmCommunicator> CreateCommunicator(const sdk::CommParams& params) override {
    return std::make_unique<ShmCommunicator>(host_, params);
  }

 private:
  const sdk::Host host_;
};

dtrun_plugin MakeTable() {
  sdk::PluginInfo info;
  info.name = "shm";
  info.version = DTRUN_VERSION;
  info.vendor = "dtrun";
  info.license = "Apache-2.0";
  info.summary = "collectives of one host through shared memory";
  return sdk::MakePlugin<ShmBackend>(info);
}

}  // namespace

const dtrun_plugin& EnginePlugin() {
  static const dtrun_plugin table = MakeTable();
  return table;
}

}  // namespace dtrun::shm
