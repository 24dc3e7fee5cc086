// The entry point and the backend: which interface, which library, what it can do.
#include <dlfcn.h>
#include <gloo/config.h>
#include <gloo/transport/tcp/device.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "comm.h"
#include "device.h"
#include "dtrun/plugin.hpp"
#include "gloo_options.h"

namespace dtrun::gloo_plugin {
namespace {

// GLOO_PACKAGE is what the package manager called the library at build time; may be empty.
std::string LibraryText() {
  std::string text = "Gloo " + std::to_string(GLOO_VERSION_MAJOR) + "." + std::to_string(GLOO_VERSION_MINOR) +
                     "." + std::to_string(GLOO_VERSION_PATCH);
  const std::string package = GLOO_PACKAGE;
  return text + (package.empty() ? " (private copy)" : " (private copy of " + package + ")");
}

std::string LibraryPath() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&::gloo::transport::tcp::CreateDevice), &info) == 0)
    return "unknown";
  return info.dli_fname;
}

class GlooBackend final : public sdk::Backend<GlooCommunicator> {
 public:
  GlooBackend(const sdk::Host& host, const sdk::Options& options)
      : host_(host), wanted_(options.FindString(kInterfaceOption)) {
    if (wanted_) Choose(1);  // refuses a wrong name now
  }

  sdk::Caps QueryCaps() const override {
    sdk::Caps caps = sdk::Caps::Everything();
    caps.any_source = true;
    return caps;
  }

  std::unique_ptr<GlooCommunicator> CreateCommunicator(const sdk::CommParams& params) override {
    return std::make_unique<GlooCommunicator>(host_, params, Choose(params.host_count));
  }

  void LaunchInfo(const dtrun_launch_query& query, const sdk::LaunchSink& sink) override {
    sink.Fact("library", LibraryText());
    sink.Fact("library_path", LibraryPath());
    // Between hosts dtrun tells each rank what has been proven, or the rank chooses.
    if (query.host_count > 1 && !wanted_) return;
    const Interface chosen = Choose(query.host_count);
    sink.Fact("interface", chosen.Text());
    if (wanted_) sink.Env("GLOO_SOCKET_IFNAME", chosen.name);
  }

 private:
  Interface Choose(int host_count) const {
    std::optional<std::string> wanted = wanted_;
    const char* const proven = std::getenv("DTRUN_ADDRESS");
    if (!wanted && host_count > 1 && proven != nullptr) wanted = proven;
    return ChooseInterface(ListInterfaces(), DefaultRouteInterfaces(), wanted, host_count);
  }

  const sdk::Host host_;
  const std::optional<std::string> wanted_;
};

dtrun_plugin MakeTable() {
  sdk::PluginInfo info;
  info.name = DTRUN_PLUGIN_NAME;
  info.version = DTRUN_VERSION;
  info.vendor = "dtrun";
  info.license = "BSD-3-Clause";
  info.summary = "collectives over TCP for host memory, on Gloo's transport";
  info.options = OptionTable();
  info.option_count = OptionCount();
  return sdk::MakePlugin<GlooBackend>(info);
}

}  // namespace
}  // namespace dtrun::gloo_plugin

dtrun_status dtrun_plugin_entry_v0(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) {
  static const dtrun_plugin table = dtrun::gloo_plugin::MakeTable();
  return dtrun::sdk::Enter(table, host, out, err);
}
