#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <set>
#include <string_view>
#include <thread>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/visit.h"
#include "core/hosts/this_machine.h"
#include "core/log/log.h"
#include "core/options/snapshot.h"
#include "core/plugin/ask_launcher.h"
#include "core/plugin/frame_socket.h"
#include "core/plugin/normalise.h"
#include "core/plugin/plugin.h"
#include "core/plugin/probe_keeper.h"
#include "core/plugin/probe_messages.h"
#include "core/plugin/services.h"
#include "dtrun/plugin/failure.hpp"
#include "dtrun/plugin/names.hpp"

namespace dtrun::plugin {
namespace {

constexpr int kSocket = 3;

// Marks a variable with a NULL value; no C string contains this byte.
const std::string kNoValue(1, '\0');

// MAX_ARG_STRLEN of Linux (execve(2)): "NAME=VALUE" with its NUL.
constexpr std::size_t kMostVariableBytes = 128 << 10;

// A variable that is not valid in an environment, or empty.
std::string WrongVariable(const LaunchInfo& info) {
  std::set<std::string_view> names;
  for (const auto& [name, value] : info.env) {
    if (name.empty() || name.find('=') != name.npos)
      return fmt::format("it sets the variable '{}', which no environment can have", Printable(name));
    if (value == kNoValue) return fmt::format("it sets the variable '{}' to no value", Printable(name));
    if (!names.insert(name).second) return fmt::format("it sets the variable '{}' twice", Printable(name));
    if (name.size() + value.size() + 2 > kMostVariableBytes)  // with '=' and NUL
      return fmt::format("it sets the variable '{}' to {} bytes, and Linux allows {} with its name",
                         Printable(name), value.size(), kMostVariableBytes - 2);
  }
  return {};
}

// Limit for facts and for variables; more is an error of the plugin.
constexpr std::size_t kMostAnswers = 4096;
constexpr std::size_t kMostAnswerBytes = 1 << 20;  // of all of them together
constexpr std::int32_t kMostDevices = 256;

Error TooMany(const char* what) {
  return Error::Of(DTRUN_INVALID_ARGUMENT,
                   "launch_info says more than {} {}; report it to the plugin's author", kMostAnswers, what);
}

struct Collected {
  LaunchInfo info;
  std::size_t bytes = 0;
  Error refused{DTRUN_OK, {}};  // whatever the plugin does with this failure

  // Whether a fact or a variable of that many bytes is allowed.
  bool Takes(std::size_t size, bool full, const char* what) {
    if (full) refused = TooMany(what);
    if (size > kMostAnswerBytes || (bytes += size) > kMostAnswerBytes) {
      bytes = kMostAnswerBytes;
      refused = {
          DTRUN_INVALID_ARGUMENT,
          fmt::format("launch_info says more than {} MiB of facts and variables; report it to the plugin's "
                      "author",
                      kMostAnswerBytes >> 20)};
    }
    return refused.code == DTRUN_OK;
  }
};

dtrun_launch_sink MakeSink(Collected* collected) {
  dtrun_launch_sink sink;
  DTRUN_INIT(sink);
  sink.context = collected;
  sink.fact = [](void* context, const char* key, dtrun_string text,
                 dtrun_error* err) noexcept -> dtrun_status {
    Collected& to = *static_cast<Collected*>(context);
    const std::string_view name = key == nullptr ? "" : key;
    if (!to.Takes(name.size() + text.size, to.info.facts.size() >= kMostAnswers, "facts"))
      return to.refused.CopyTo(err);
    to.info.facts.emplace_back(Printable(name), Printable(View(text)));
    return DTRUN_OK;
  };
  sink.env = [](void* context, const char* name, const char* value,
                dtrun_error* err) noexcept -> dtrun_status {
    Collected& to = *static_cast<Collected*>(context);
    const std::size_t size =
        std::strlen(name == nullptr ? "" : name) + std::strlen(value == nullptr ? "" : value);
    if (!to.Takes(size, to.info.env.size() >= kMostAnswers, "variables")) return to.refused.CopyTo(err);
    // Keep a NULL value as a marker; it is rejected below, whatever the plugin does with this failure.
    to.info.env.emplace_back(TextOf(name), value == nullptr ? kNoValue : value);
    if (value == nullptr) return Error{DTRUN_INVALID_ARGUMENT, "a variable has no value"}.CopyTo(err);
    return DTRUN_OK;
  };
  return sink;
}

// The device kinds that the backend moves memory for, beside the host's: "cuda, rocm".
dtrun_status AddDeviceKinds(const dtrun_backend& table, dtrun_instance* instance, LaunchInfo* info,
                            dtrun_error* error) {
  dtrun_backend_caps caps;
  DTRUN_INIT(caps);
  const dtrun_status status = table.query_caps(instance, &caps, error);
  if (status != DTRUN_OK) return status;
  RemoveOtherDraft(table, &caps);
  std::string kinds;
  for (std::int32_t kind = DTRUN_DEVICE_HOST + 1; kind < 64; ++kind) {
    if ((caps.device_kinds >> kind & 1) != 0)
      kinds += (kinds.empty() ? "" : ", ") + sdk::DeviceKindText(kind);
  }
  if (!kinds.empty()) info->facts.emplace_back("device_kinds", kinds);
  return DTRUN_OK;
}

// Calls init, launch_info, query_caps and shutdown. The instance never outlives `options`.
Result<LaunchInfo> AskLaunchInfo(const Plugin& plugin, const LaunchRequest& request) {
  Collected to{{{}, {}, plugin.id()}};
  LaunchInfo& info = to.info;
  if (plugin.table().backend == nullptr) return info;
  Result<dtrun_options> options = options::FromJson(request.options);
  if (!options) return std::move(options).error();
  const std::string name = plugin.file().name;
  const bool stands = options::StackText(name, *options) != name;
  if (plugin.backend().launch_info == nullptr && !stands) return info;
  Result<std::string> id = StackId(plugin, *options);
  if (!id) return std::move(id).error();
  info.file_id = *std::move(id);

  const std::string who = fmt::format("{} plugin '{}'", KindText(plugin.file().kind), name);
  PluginError reported;
  dtrun_instance* instance = nullptr;
  dtrun_status status = sdk::InitPlugin(plugin.table(), &plugin.host(), &*options, &instance, &reported);
  if (status != DTRUN_OK) return Explained(status, reported, who + " cannot be initialised");
  dtrun_launch_query query;
  DTRUN_INIT(query);
  query.host_count = request.host_count;
  query.local_ranks = request.local_ranks;
  const dtrun_launch_sink sink = MakeSink(&to);
  if (plugin.backend().launch_info != nullptr)
    status = plugin.backend().launch_info(instance, &query, &sink, &reported);
  if (status == DTRUN_OK) status = AddDeviceKinds(plugin.backend(), instance, &info, &reported);
  plugin.table().shutdown(instance);
  if (to.refused.code != DTRUN_OK) return Error{to.refused.code, fmt::format("{}: {}", who, to.refused.text)};
  if (std::string wrong = WrongVariable(info); !wrong.empty())
    return Error::Of(DTRUN_INTERNAL, "{}: {}; report it to the plugin's author", who, wrong);
  if (status == DTRUN_OK) return info;
  return Explained(status, reported, who);
}

// The devices of this host as facts.
Result<LaunchInfo> DescribeDevices(const dtrun_device& table, dtrun_instance* instance) {
  LaunchInfo info;
  PluginError error;
  std::int32_t count = 0;
  info.facts.emplace_back("kind", sdk::DeviceKindText(table.kind));
  dtrun_status status = table.count(instance, &count, &error);
  if (status == DTRUN_FAILED_PRECONDITION) {
    info.facts.emplace_back("unusable", Printable(Explained(status, error, "").text));
    return info;
  }
  if (status != DTRUN_OK) return Explained(status, error, "count");
  info.facts.emplace_back("devices", std::to_string(count));
  for (std::int32_t i = 0; i < count && i < kMostDevices && table.describe != nullptr; ++i) {
    char text[256] = {};
    status = table.describe(instance, i, text, sizeof text, &error);
    if (status != DTRUN_OK) return Explained(status, error, fmt::format("describe device {}", i));
    text[sizeof text - 1] = '\0';
    info.facts.emplace_back(fmt::format("device {}", i), Printable(text));
  }
  return info;
}

// Calls init, count, describe for each device, and shutdown. If init fails there is no device.
Result<LaunchInfo> AskDevices(const Plugin& plugin) {
  const Result<dtrun_options> options = plugin.Defaults();
  if (!options) return options.error();
  const std::string who = fmt::format("device plugin '{}'", plugin.file().name);
  PluginError reported;
  dtrun_instance* instance = nullptr;
  const dtrun_status status =
      sdk::InitPlugin(plugin.table(), &plugin.host(), &*options, &instance, &reported);
  if (status != DTRUN_OK) return Explained(status, reported, who + " cannot be initialised");
  Result<LaunchInfo> info = DescribeDevices(plugin.device(), instance);
  plugin.table().shutdown(instance);
  if (!info) return Error{info.error().code, who + ": " + info.error().text};
  info->file_id = plugin.id();
  return info;
}

// A backend answers with its launch information, a launcher with its plan, hosts or commands, a device plugin
// with its devices.
Result<FromProbe> AnswerTo(const ToProbe& request, const Plugin& plugin, FrameSocket* socket) {
  const auto answer = [](auto&& result) {
    return result ? Result<FromProbe>(*std::move(result)) : Result<FromProbe>(std::move(result).error());
  };
  if (const auto* launch = std::get_if<LaunchRequest>(&request))
    return answer(plugin.file().kind == Kind::kDevice ? AskDevices(plugin) : AskLaunchInfo(plugin, *launch));
  const Result<dtrun_options> options = options::FromJson(
      Visit([](const auto& asked) -> const std::string& { return asked.options; }, request));
  if (!options) return options.error();
  if (const auto* hosts = std::get_if<HostsRequest>(&request))
    return answer(AskHosts(plugin, *options, hosts->environment));
  if (const auto* call = std::get_if<ConnectCall>(&request)) {
    auto commands = AskConnect(plugin, *options, call->request);
    if (!commands) return commands.error();
    return FromProbe(StartCommands{*std::move(commands)});
  }
  auto plan = AskPlan(plugin, *options, std::get<PlanRequest>(request).job, [&](const LaunchPlan& part) {
    return socket->Send(Encode(PartOf(part, /*more=*/true)));
  });
  if (!plan) return plan.error();
  return FromProbe(PartOf(*plan, /*more=*/false));
}

// A plugin that forks and lets the copy go on (rule T8): the copy ends here, without a word, with an exit
// code by which the process that it is a copy of knows it.
class Copies {
 public:
  Copies() {
    ::pthread_atfork(
        nullptr, [] { ++forks; }, nullptr);
  }
  void EndIfCopied() const {
    if (::getpid() != owner_) ::_exit(kExitCopied);
  }
  // Whether a copy has ended in this way. Looks for it for a moment if there was a fork.
  bool Seen() const {
    const auto deadline = std::chrono::steady_clock::now() + kMoment;
    siginfo_t ended{};
    while (forks > 0 && ::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0) {
      if (ended.si_pid != 0) return ended.si_code == CLD_EXITED && ended.si_status == kExitCopied;
      if (std::chrono::steady_clock::now() > deadline) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

 private:
  static constexpr int kExitCopied = 117;
  static constexpr std::chrono::milliseconds kMoment{200};
  static inline std::atomic<int> forks{0};
  const pid_t owner_ = ::getpid();
};

Error WasCopied(const Plugin& plugin) {
  return {DTRUN_FAILED_PRECONDITION,
          fmt::format("{} plugin '{}'", KindText(plugin.file().kind), plugin.file().name) +
              ": it makes a copy of the process by fork and lets it go on (T8); report it to the plugin's "
              "author"};
}

// Out of memory is not the plugin's fault; the parent reports it.
Status SendAnswer(FrameSocket* socket, std::string_view frame, const Plugin& plugin, const Copies& copies) {
  Error error;
  try {
    const Result<ToProbe> request = DecodeRequest(frame);
    const Result<FromProbe> answer = request ? AnswerTo(*request, plugin, socket) : request.error();
    copies.EndIfCopied();
    if (copies.Seen()) return socket->Send(Encode(WasCopied(plugin)));
    if (answer) return socket->Send(Encode(*answer));
    error = answer.error();
  } catch (const std::bad_alloc& thrown) {  // before a byte of the frame was sent
    error = {DTRUN_OUT_OF_MEMORY, Exhausted(thrown)};
  }
  return socket->Send(Encode(error));
}

int Serve(const File& file) {
  FrameSocket socket{UniqueFd(kSocket)};
  const Copies copies;
  const Result<const Plugin*> plugin = Load(file, /*in_probe=*/true);
  copies.EndIfCopied();
  if (plugin && copies.Seen()) return socket.Send(Encode(WasCopied(**plugin))).ok() ? 0 : 1;
  if (!plugin) return socket.Send(Encode(plugin.error())).ok() ? 0 : 1;

  const dtrun_plugin& table = (*plugin)->table();
  Description description;
  description.file = (*plugin)->file();
  description.version = Printable(table.version);
  description.vendor = Printable(table.vendor);
  description.license = Printable(table.license);
  description.summary = Printable(table.summary);
  description.abi = fmt::format("{}.{}", table.abi_major, table.abi_minor_built);
  if (file.kind == Kind::kLauncher) {
    const dtrun_launcher& launcher = (*plugin)->launcher();
    if (launcher.plan != nullptr) description.members.emplace_back("plan");
    if (launcher.find_hosts != nullptr) description.members.emplace_back("find_hosts");
    if (launcher.connect != nullptr) description.members.emplace_back("connect");
  }
  description.options = (*plugin)->schema();
  if (!socket.Send(Encode(description))) return 1;

  for (;;) {
    const auto frame = socket.Receive(std::nullopt, -1, nullptr);
    if (!frame) return 1;
    if (!*frame) return 0;  // the parent has finished
    if (!SendAnswer(&socket, **frame, **plugin, copies)) return 1;
  }
}

// Whether the other end of the socket is already closed.
bool ParentIsGone() {
  pollfd socket{kSocket, POLLIN, 0};
  return ::poll(&socket, 1, 0) < 0 || (socket.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

}  // namespace

int ProbeMain(int argc, char** argv) {
  if (argc < 2 || std::strcmp(argv[1], "--probe-plugin") != 0) return -1;
  const std::optional<Kind> kind = argc == 6 ? KindOf(argv[2]) : std::nullopt;
  if (!kind) {
    std::fputs("usage: --probe-plugin backend|launcher|device PATH NAME ID\n", stderr);
    return 2;
  }
  EndWhenExhausted(kExitOutOfMemory);
  // First, then look: a parent that died before is seen at the socket.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::fcntl(kSocket, F_SETFD, FD_CLOEXEC) != 0 || ParentIsGone()) {
    std::fputs("a probe is started by dtrun only, with a socket as descriptor 3\n", stderr);
    return 2;
  }
  if (const Status kept = KeepProbe(kSocket); !kept)
    return FrameSocket{UniqueFd(kSocket)}.Send(Encode(kept.error())).ok() ? 0 : 1;
  // dtrun itself reports invalid log variables.
  log::Start(log::OptionsOfEnvironment(), hosts::HostName(), std::nullopt);
  return Serve(File{*kind, argv[4], argv[3], {}, {}, {}, argv[5]});
}

}  // namespace dtrun::plugin
