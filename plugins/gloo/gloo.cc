// The entry point and the backend: which interface, which library, what it can do.
#include <gloo/config.h>
#include <gloo/transport/tcp/device.h>

#include <memory>
#include <optional>
#include <string>

#include "comm.h"
#include "dtrun/plugin.hpp"
#include "dtrun/plugin/shared_library.hpp"

namespace dtrun::gloo_plugin {
namespace {

// GLOO_PACKAGE is what the package manager called the library at build time; may be empty.
std::string LibraryText() {
  std::string text = "Gloo " + std::to_string(GLOO_VERSION_MAJOR) + "." + std::to_string(GLOO_VERSION_MINOR) +
                     "." + std::to_string(GLOO_VERSION_PATCH);
  const std::string package = GLOO_PACKAGE;
  return text + (package.empty() ? " (private copy)" : " (private copy of " + package + ")");
}

class GlooBackend final : public sdk::Backend<GlooCommunicator> {
 public:
  GlooBackend(const sdk::Host& host, const sdk::Options& options)
      : host_(host), wanted_(options.FindString("interface")) {
    if (wanted_) Choose(1);  // refuses a wrong name now
  }

  sdk::Caps QueryCaps() const override {
    sdk::Caps caps = sdk::Caps::Everything();
    caps.any_source = true;
    return caps;
  }

  std::unique_ptr<GlooCommunicator> CreateCommunicator(const sdk::CommParams& params) override {
    return std::make_unique<GlooCommunicator>(host_, params, Choose(params.host_count, params.address));
  }

  void LaunchInfo(const dtrun_launch_query& query, const sdk::LaunchSink& sink) override {
    sink.Fact("library", LibraryText());
    sink.Fact("library_path",
              sdk::FileOf(reinterpret_cast<const void*>(&::gloo::transport::tcp::CreateDevice)));
    sink.Fact("memory", "host");
    sink.Fact("wire", "TCP");
    sink.Fact("by interface", "interface");
    sink.Fact(
        "algorithm",
        "small vectors by recursive doubling; of larger ones each rank combines a part and sends it to all");
    // Between hosts dtrun tells each rank which interface it has tested, or the rank chooses.
    if (query.host_count > 1 && !wanted_) return;
    const interfaces::Interface chosen = Choose(query.host_count);
    sink.Fact("interface", chosen.Text());
    if (wanted_) sink.Env("GLOO_SOCKET_IFNAME", chosen.name);
  }

 private:
  // `tested`: the address that dtrun has found to reach the other hosts, or empty.
  interfaces::Interface Choose(int host_count, const std::string& tested = {}) const {
    std::optional<std::string> wanted = wanted_;
    if (!wanted && host_count > 1 && !tested.empty()) wanted = tested;
    return interfaces::Choose(interfaces::List(), interfaces::DefaultRoutes(), wanted, host_count);
  }

  const sdk::Host host_;
  const std::optional<std::string> wanted_;
};

constexpr dtrun_option kOptions[] = {
    sdk::Option("interface", DTRUN_TYPE_STRING, nullptr,
                "network interface that carries the traffic, by name, address or network", DTRUN_SCOPE_HOST)
        .Long("A name such as \"eth0\", an address of this host such as \"10.0.0.5\" or \"fd00::2\", or a "
              "network such as \"10.0.0.0/16\", which fits hosts that name their interfaces differently. A "
              "name means the interface's first IPv4 address, else its first global IPv6 address.\n"
              "Unset: loopback when all ranks share one host; otherwise what network.interface found, "
              "else the interface of the default route, else the first running one that is "
              "not loopback. When set, ranks also see GLOO_SOCKET_IFNAME, so that programs that use Gloo "
              "through torch use the same interface.")
        .Alias("GLOO_SOCKET_IFNAME")};

constexpr sdk::PluginInfo kInfo = {
    .name = DTRUN_PLUGIN_NAME,
    .version = DTRUN_VERSION,
    .vendor = "dtrun",
    .license = "Apache-2.0",
    .summary = "collectives over TCP for host memory, on Gloo's transport",
    .options = kOptions,
    .option_count = std::size(kOptions),
};
constexpr dtrun_plugin kPlugin = sdk::MakePlugin<GlooBackend>(kInfo);

}  // namespace
}  // namespace dtrun::gloo_plugin

dtrun_status dtrun_plugin_entry_v0(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) {
  return dtrun::sdk::Enter(dtrun::gloo_plugin::kPlugin, host, out, err);
}
