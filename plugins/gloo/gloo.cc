// The entry point, the backend (which interface, which library, what it can do) and its communicators.
#include <gloo/config.h>
#include <gloo/transport/tcp/device.h>

#include <atomic>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "direct.h"
#include "dtrun/plugin/call_queue.hpp"
#include "dtrun/plugin/shared_library.hpp"
#include "messenger.h"
#include "timer.h"

namespace dtrun::gloo_plugin {
namespace {

// GLOO_PACKAGE is what the package manager called the library at build time; may be empty.
std::string LibraryText() {
  std::string text = "Gloo " + std::to_string(GLOO_VERSION_MAJOR) + "." + std::to_string(GLOO_VERSION_MINOR) +
                     "." + std::to_string(GLOO_VERSION_PATCH);
  const std::string package = GLOO_PACKAGE;
  return text + (package.empty() ? " (private copy)" : " (private copy of " + package + ")");
}

using sdk::Failure;

// Collectives run one after another in the order in which they were enqueued (sdk::CallQueue). Sends and
// receives go to Gloo at once, so that two ranks that send to each other first and receive second never
// block. Owned by core; thread classes as in dtrun/abi/backend.h.
class GlooCommunicator final : public sdk::Communicator<sdk::Request>, private sdk::Runner {
 public:
  GlooCommunicator(const sdk::Host& host, const sdk::CommParams& params,
                   const interfaces::Interface& interface);

  std::unique_ptr<sdk::Request> Enqueue(const dtrun_op& op, const dtrun_stream* stream) override;
  void Abort(const std::string& reason) override;
  void Snapshot(const sdk::SnapshotSink& sink) override;

 private:
  void Run(sdk::Running& running) override;
  void Abandon(const sdk::Running& running) override;

  Mesh mesh_;
  MeshMessenger messenger_;
  std::atomic<std::uint64_t> last_enqueued_{0};
  std::atomic<std::uint64_t> last_started_{0};
  std::atomic<std::uint64_t> last_completed_{0};
  sdk::CallQueue calls_;  // its thread uses the rest
};

GlooCommunicator::GlooCommunicator(const sdk::Host& host, const sdk::CommParams& params,
                                   const interfaces::Interface& interface)
    : mesh_(host, params, interface), messenger_(mesh_), calls_(host, *this, "gloo-worker", params.size) {}

std::unique_ptr<sdk::Request> GlooCommunicator::Enqueue(const dtrun_op& op, const dtrun_stream*) {
  mesh_.ThrowIfFailed();
  if (!sdk::IsCollective(op.kind)) return std::make_unique<PointToPointRequest>(mesh_, op);
  last_enqueued_ = op.sequence;
  return calls_.Enqueue(op);
}

void GlooCommunicator::Run(sdk::Running& running) {
  const dtrun_op& op = *running.op;
  last_started_ = op.sequence;
  if (mesh_.size() == 1) {
    algorithms::RunAlone(op);
  } else {
    mesh_.ThrowIfFailed();
    const NoSigpipe quiet;
    Operation operation(op);
    const TimerEntry timeout(*mesh_.timer(), running.deadline.Start(), [&] { mesh_.FailTimeout(operation); });
    try {
      messenger_.Begin(operation, op);
      if (Direct::Serves(op, mesh_.size())) {
        Direct(op, messenger_.slot()).Run(mesh_, operation);
      } else {
        algorithms::RunCollective(messenger_, op);
      }
    } catch (const std::bad_alloc&) {
      // Half done, so the other ranks cannot finish either.
      mesh_.Fail(Failure(DTRUN_OUT_OF_MEMORY, operation.text + " needs more memory than there is"));
      mesh_.ThrowIfFailed();
    }
  }
  last_completed_ = op.sequence;
}

void GlooCommunicator::Abandon(const sdk::Running& running) { mesh_.FailTimeout(Operation(*running.op)); }

void GlooCommunicator::Abort(const std::string& reason) {
  mesh_.Fail(Failure(DTRUN_ABORTED, "'" + mesh_.name() + "' was aborted: " + reason));
}

void GlooCommunicator::Snapshot(const sdk::SnapshotSink& sink) {
  sink.Line("collectives enqueued up to " + std::to_string(last_enqueued_) + ", started up to " +
            std::to_string(last_started_) + ", completed up to " + std::to_string(last_completed_));
  if (mesh_.failure()) sink.Line(std::string("failed: ") + mesh_.failure()->what());
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

}  // namespace
}  // namespace dtrun::gloo_plugin

DTRUN_SDK_PLUGIN(dtrun::gloo_plugin::GlooBackend, .name = DTRUN_PLUGIN_NAME, .version = DTRUN_VERSION,
                 .vendor = "dtrun", .license = "Apache-2.0",
                 .summary = "collectives over TCP for host memory, on Gloo's transport",
                 .options = dtrun::gloo_plugin::kOptions,
                 .option_count = std::size(dtrun::gloo_plugin::kOptions))
