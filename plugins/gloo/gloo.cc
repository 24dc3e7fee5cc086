// The entry point, the backend (which interface, which library, what it can do) and its communicators.
#include <gloo/config.h>
#include <gloo/transport/tcp/device.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "direct.h"
#include "dtrun/kernels.hpp"
#include "dtrun/plugin/call_queue.hpp"
#include "dtrun/plugin/shared_library.hpp"
#include "timer.h"
#include "transfer.h"

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

// Gloo cannot be asked whether something is complete, only be waited for and interrupted.
// A completed exchange is reported by the wait at once; this is how long one looks.
constexpr std::chrono::microseconds kShortestLook{200};
// The last look before an operation is declared late.
constexpr std::chrono::microseconds kLongestLook{200'000};

// A send or a receive under way: Gloo has it from the start.
//
// Made by the communicator, owned by core. All methods: any thread; one thread at a time
// waits inside Gloo, the others wait for that one.
class PointToPointRequest final : public sdk::Request {
 public:
  // Starts it. `op` is a DTRUN_SEND or DTRUN_RECV.
  PointToPointRequest(Mesh& mesh, const dtrun_op& op)
      : mesh_(mesh),
        sending_(op.kind == DTRUN_SEND),
        source_(op.source),
        operation_(op),
        transfer_(mesh, op.peer, sending_ ? op.send : op.recv, op.count * kernels::ElementBytes(op.dtype)) {
    operation_.waiting_for = op.peer == DTRUN_ANY_SOURCE ? Operation::kAnyone : op.peer;
    const std::size_t bytes = op.count * kernels::ElementBytes(op.dtype);
    const NoSigpipe quiet;
    if (sending_) {
      transfer_.Send(MessageSlot(op), 0, bytes);
    } else {
      transfer_.Recv(MessageSlot(op), 0, bytes);
    }
    timeout_.emplace(*mesh.timer(), sdk::Deadline(operation_.timeout), [this] { Expire(); });
  }
  ~PointToPointRequest() override {
    try {
      Wait(sdk::kNoLimit);
    } catch (const sdk::Failure&) {
      // Core has dropped the request: its end matters, its outcome does not.
    }
    timeout_.reset();
  }

  bool Test() override { return Wait(sdk::Nanoseconds(0)); }

  bool Wait(sdk::Nanoseconds timeout) override {
    const sdk::Deadline deadline(timeout);
    std::unique_lock lock(mutex_);
    for (bool looked = false;;) {
      if (done_) {
        if (failure_) throw *failure_;
        return true;
      }
      if (looked && deadline.passed()) return false;
      if (waiting_) {
        looked = true;
        changed_.wait_until(lock, deadline.at(), [this] { return done_ || !waiting_; });
        continue;
      }
      waiting_ = true;
      lock.unlock();
      bool done = false;
      std::optional<sdk::Failure> failure;
      try {
        const TimerEntry entry(*mesh_.timer(), deadline.AtLeast(kShortestLook),
                               [this] { transfer_.Interrupt(); });
        done = WaitForTransfer();
      } catch (const sdk::Failure& thrown) {
        failure = thrown;
      }
      lock.lock();
      waiting_ = false;
      looked = true;
      done_ = done || failure;
      failure_ = std::move(failure);
      changed_.notify_all();
    }
  }

 private:
  bool WaitForTransfer() {
    if (sending_) return transfer_.WaitSend(operation_);
    if (!transfer_.WaitRecv(operation_)) return false;
    if (source_ != nullptr) *source_ = transfer_.source();
    return true;
  }

  // The deadline of the operation, on the timer's thread. It may be complete without anybody
  // having looked.
  void Expire() {
    {
      const std::lock_guard lock(mutex_);
      if (!waiting_ && !done_) {
        try {
          done_ = LookForCompletion();
        } catch (const sdk::Failure& thrown) {
          failure_ = thrown;
          done_ = true;
        }
        if (done_) changed_.notify_all();
      }
      if (done_) return;
    }
    mesh_.FailTimeout(operation_);
  }

  // An interruption that comes before the wait has begun hides a completion, as when this
  // thread loses its core in between. So it looks again, longer.
  bool LookForCompletion() {
    for (std::chrono::microseconds look = kShortestLook; look <= kLongestLook; look *= 10) {
      std::thread interrupter([this, look] {
        std::this_thread::sleep_for(look);
        transfer_.Interrupt();
      });
      struct Join {
        std::thread& thread;
        ~Join() { thread.join(); }
      } const join{interrupter};
      if (WaitForTransfer()) return true;
    }
    return false;
  }

  Mesh& mesh_;
  const bool sending_;
  std::int32_t* const source_;  // the caller's; null when it does not ask
  Operation operation_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool waiting_ = false;  // a thread is inside Gloo
  bool done_ = false;
  std::optional<sdk::Failure> failure_;

  Transfer transfer_;
  std::optional<TimerEntry> timeout_;
};

// Collectives run one after another in the order in which they were enqueued (sdk::CallQueue). Sends and
// receives go to Gloo at once, so that two ranks that send to each other first and receive second never
// block. Owned by core; thread classes as in dtrun/abi/backend.h.
class GlooCommunicator final : public sdk::Communicator<sdk::Request>, private sdk::Runner {
 public:
  GlooCommunicator(const sdk::Host& host, const sdk::CommParams& params,
                   const interfaces::Interface& interface)
      : mesh_(host, params, interface), messenger_(mesh_), calls_(host, *this, "gloo-worker", params.size) {}

  std::unique_ptr<sdk::Request> Enqueue(const dtrun_op& op, const dtrun_stream*) override {
    mesh_.ThrowIfFailed();
    if (!sdk::IsCollective(op.kind)) return std::make_unique<PointToPointRequest>(mesh_, op);
    last_enqueued_ = op.sequence;
    return calls_.Enqueue(op);
  }
  void Abort(const std::string& reason) override {
    mesh_.Fail(Failure(DTRUN_ABORTED, "'" + mesh_.name() + "' was aborted: " + reason));
  }
  void Snapshot(const sdk::SnapshotSink& sink) override {
    sink.Line("collectives enqueued up to " + std::to_string(last_enqueued_) + ", started up to " +
              std::to_string(last_started_) + ", completed up to " + std::to_string(last_completed_));
    if (mesh_.failure()) sink.Line(std::string("failed: ") + mesh_.failure()->what());
  }

 private:
  void Run(sdk::Running& running) override {
    const dtrun_op& op = *running.op;
    last_started_ = op.sequence;
    if (mesh_.size() == 1) {
      algorithms::RunAlone(op);
    } else {
      mesh_.ThrowIfFailed();
      const NoSigpipe quiet;
      Operation operation(op);
      const TimerEntry timeout(*mesh_.timer(), running.deadline.Start(),
                               [&] { mesh_.FailTimeout(operation); });
      try {
        messenger_.Begin(operation, op);
        if (ServesDirectly(op, mesh_.size())) {
          RunDirectly(mesh_, operation, op, messenger_.slot());
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

  void Abandon(const sdk::Running& running) override { mesh_.FailTimeout(Operation(*running.op)); }

  Mesh mesh_;
  MeshMessenger messenger_;
  std::atomic<std::uint64_t> last_enqueued_{0};
  std::atomic<std::uint64_t> last_started_{0};
  std::atomic<std::uint64_t> last_completed_{0};
  sdk::CallQueue calls_;  // its thread uses the rest
};

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
