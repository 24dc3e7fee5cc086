#include "core/comm/shm/backend.h"

#include "core/comm/shm/communicator.h"

namespace dtrun::shm {
namespace {

template <bool kChecks>
class ShmBackend final : public sdk::Backend<ShmCommunicator> {
 public:
  ShmBackend(const sdk::Host& host, const sdk::Options&) : host_(host) {}

  sdk::Caps QueryCaps() const override {
    sdk::Caps caps;
    caps.ops = (std::uint64_t{1} << DTRUN_OP_COUNT) - 2;
    caps.dtypes = (std::uint64_t{1} << DTRUN_DTYPE_COUNT) - 2;
    caps.reduces = (std::uint64_t{1} << DTRUN_REDUCE_COUNT) - 2;
    caps.any_source = true;
    return caps;
  }
  std::unique_ptr<ShmCommunicator> CreateCommunicator(const sdk::CommParams& params) override {
    return std::make_unique<ShmCommunicator>(host_, params, kChecks);
  }

 private:
  const sdk::Host host_;
};

template <bool kChecks>
dtrun_plugin MakeTable() {
  sdk::PluginInfo info;
  info.name = "shm";
  info.version = DTRUN_VERSION;
  info.vendor = "dtrun";
  info.license = "BSD-3-Clause";
  info.summary = "collectives of one host through shared memory";
  return sdk::MakePlugin<ShmBackend<kChecks>>(info);
}

}  // namespace

const dtrun_plugin& EnginePlugin() {
  static const dtrun_plugin table = MakeTable<false>();
  return table;
}

const dtrun_plugin& CheckingEnginePlugin() {
  static const dtrun_plugin table = MakeTable<true>();
  return table;
}

}  // namespace dtrun::shm
