#include "core/pmi/libpmix/serve.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "core/base/visit.h"
#include "core/pmi/libpmix/pmix_calls.h"
#include "core/pmi/libpmix/pmix_library.h"
#include "core/pmi/pmix_wire.h"
#include "core/pmi/server.h"
#include "core/wire/coder.h"

namespace dtrun::pmi {
namespace {

using Descriptor = boost::asio::posix::stream_descriptor;

constexpr char kHwlocComponents[] = "HWLOC_COMPONENTS";
constexpr int kAgentGone = 1;
constexpr std::size_t kReadBytes = 64 << 10;

std::string Cut(const std::string& text) { return text.substr(0, kMaxPmixTextBytes); }

// A server would take the variables of an outer launcher's client for its own settings.
void ForgetOuterPmix() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with("PMIX_") && !text.starts_with("PMIX_MCA_"))
      names.emplace_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : names) ::unsetenv(name.c_str());
}

// Whether an interface that is up has 127.0.0.1.
bool HasLoopbackAddress() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return true;  // let PMIx try
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_UP) == 0)
      continue;
    if (reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr == htonl(INADDR_LOOPBACK))
      return true;
  }
  return false;
}

// Adds the keys that Open MPI 4 and 5 read, and those that the standard requires of every server. REQUIRES:
// the server was started.
Status DescribeJob(const PmixLibrary& library, const Job& job, const Folders& folders, PmixInfo* info) {
  const JobHost& here = job.host();
  std::vector<std::string> names, ranks_of;
  for (const JobHost& host : job.hosts) {
    std::vector<int> ranks;
    for (int i = 0; i < host.local_size; ++i) ranks.push_back(host.first_rank + i);
    names.push_back(host.name);
    ranks_of.push_back(fmt::format("{}", fmt::join(ranks, ",")));
  }
  char *node_map = nullptr, *process_map = nullptr;
  pmix_status_t status = library.generate_regex(fmt::format("{}", fmt::join(names, ",")).c_str(), &node_map);
  if (status == PMIX_SUCCESS) {
    status = library.generate_ppn(fmt::format("{}", fmt::join(ranks_of, ";")).c_str(), &process_map);
  }
  if (status == PMIX_SUCCESS) {
    const auto size = static_cast<std::uint32_t>(job.size());
    info->Text(PMIX_NODE_MAP, node_map);
    info->Text(PMIX_PROC_MAP, process_map);
    info->Text(PMIX_JOBID, job.name);
    info->Number(PMIX_UNIV_SIZE, size);
    info->Number(PMIX_JOB_SIZE, size);
    info->Number(PMIX_MAX_PROCS, size);
    info->Number(PMIX_JOB_NUM_APPS, 1);
    info->Number(PMIX_APP_SIZE, size);
    info->Number(PMIX_NUM_NODES, static_cast<std::uint32_t>(job.hosts.size()));
    info->Number(PMIX_LOCAL_SIZE, static_cast<std::uint32_t>(here.local_size));
    info->Number(PMIX_NODE_SIZE, static_cast<std::uint32_t>(here.local_size));
    info->Text(PMIX_LOCAL_PEERS, ranks_of[static_cast<std::size_t>(job.here)]);
    info->Rank(PMIX_LOCALLDR, here.first_rank);
    info->Text(PMIX_TMPDIR, folders.disk.string());
    info->Text(PMIX_NSDIR, (folders.disk / job.name).string());
    for (std::size_t host = 0; host < job.hosts.size(); ++host) {
      for (int i = 0; i < job.hosts[host].local_size; ++i) {
        const int rank = job.hosts[host].first_rank + i;
        PmixInfo of_rank(library);
        of_rank.Rank(PMIX_RANK, rank);  // must come first
        of_rank.Rank(PMIX_GLOBAL_RANK, rank);
        of_rank.Rank(PMIX_APP_RANK, rank);
        of_rank.Number(PMIX_APPNUM, 0);
        of_rank.Small(PMIX_LOCAL_RANK, static_cast<std::uint16_t>(i));
        of_rank.Small(PMIX_NODE_RANK, static_cast<std::uint16_t>(i));
        of_rank.Number(PMIX_NODEID, static_cast<std::uint32_t>(host));
        of_rank.Text(PMIX_HOSTNAME, job.hosts[host].name);
        info->List(PMIX_PROC_DATA, of_rank);
      }
    }
  }
  std::free(node_map);
  std::free(process_map);
  if (status != PMIX_SUCCESS) return library.Failed("describe the hosts", status);
  return {};
}

class Service final : private PmixHost {
 public:
  Service(boost::asio::io_context& loop, UniqueFd agent) : agent_(loop, agent.Release()), loop_(loop) {}

  void Run() {
    Read();
    loop_.run();
  }

 private:
  void Read() {
    agent_.async_read_some(boost::asio::buffer(chunk_),
                           [this](const boost::system::error_code& error, std::size_t size) {
                             if (error) Leave();
                             reader_.Append({chunk_.data(), size});
                             TakeAll();
                             Read();
                           });
  }

  void TakeAll() {
    for (;;) {
      const Result<std::optional<std::string_view>> frame = reader_.Next();
      if (!frame) Leave();
      if (!*frame) return;
      const Result<ToPmix> message = DecodeToPmix(**frame);
      if (!message) Leave();
      Visit([this](const auto& given) { On(given); }, *message);
    }
  }

  void On(const PmixBegin& begin) {
    job_ = begin.job;
    Result<PmixReady> ready = Start({begin.disk, begin.memory});
    ready ? Send(*std::move(ready)) : Send(PmixRefused{Cut(ready.error().text)});
  }

  void On(const PmixAnswer& answer) {
    const auto found = fences_.extract(answer.fence);
    if (found.empty()) return;
    answer.complete ? found.mapped().Complete(answer.bytes) : found.mapped().Fail(PMIX_ERR_PROC_ABORTED);
  }

  Result<PmixReady> Start(const Folders& folders) {
    Result<const PmixLibrary*> opened = OpenPmix();
    if (!opened) return opened.error();
    const PmixLibrary& library = **opened;
    if (Status started = StartServer(library, folders); !started) return started.error();
    SetPmixHost(this, &loop_);
    PmixInfo info(library);
    if (Status described = DescribeJob(library, job_, folders, &info); !described) return described.error();
    const std::span<pmix_info_t> all = info.Finish();
    const Status registered =
        AwaitPmix(library, "register the job", [&](pmix_op_cbfunc_t done, void* context) {
          return library.server_register_nspace(job_.name.c_str(), job_.host().local_size, all.data(),
                                                all.size(), done, context);
        });
    if (!registered) return registered.error();
    PmixReady ready;
    for (int i = 0; i < job_.host().local_size; ++i) {
      Result<std::map<std::string, std::string>> one = Admit(library, job_.host().first_rank + i);
      if (!one) return one.error();
      ready.variables.push_back(*std::move(one));
    }
    return ready;
  }

  Status StartServer(const PmixLibrary& library, const Folders& folders) {
    if (!HasLoopbackAddress()) {
      return Error{
          DTRUN_FAILED_PRECONDITION,
          "PMIx's server listens on 127.0.0.1, which no interface of this host, or of this container's "
          "network, has; run `ip link set lo up` there"};
    }
    ForgetOuterPmix();
    // Its other stores share memory with the ranks under locks that a killed rank may hold forever.
    ::setenv("PMIX_MCA_gds", "hash", 0);
    PmixInfo info(library);
    info.Text(PMIX_SERVER_NSPACE, "dtrun-agent");
    info.Rank(PMIX_SERVER_RANK, job_.here);
    info.Text(PMIX_HOSTNAME, job_.host().name);
    info.Text(PMIX_SERVER_TMPDIR, folders.disk.string());
    info.Text(PMIX_SYSTEM_TMPDIR, folders.disk.string());
    info.Text(PMIX_TCP_IF_INCLUDE, "lo");  // it supports only TCP
    info.Flag(PMIX_SERVER_TOOL_SUPPORT, false);
    info.Flag(PMIX_SERVER_REMOTE_CONNECTIONS, false);
    pmix_server_module_t module = PmixModule();
    const std::span<pmix_info_t> all = info.Finish();
    // Device discovery is not needed and takes half of the startup time.
    const bool as_usual = std::getenv(kHwlocComponents) != nullptr;
    if (!as_usual) ::setenv(kHwlocComponents, "-pci,-linuxio", 1);
    const pmix_status_t status = library.server_init(&module, all.data(), all.size());
    if (!as_usual) ::unsetenv(kHwlocComponents);
    if (status != PMIX_SUCCESS) return library.Failed("start its server", status);
    return {};
  }

  Result<std::map<std::string, std::string>> Admit(const PmixLibrary& library, int rank) {
    pmix_proc_t process{};
    std::strncpy(process.nspace, job_.name.c_str(), PMIX_MAX_NSLEN);
    process.rank = static_cast<pmix_rank_t>(rank);
    const Status registered =
        AwaitPmix(library, "register a rank", [&](pmix_op_cbfunc_t done, void* context) {
          return library.server_register_client(&process, ::getuid(), ::getgid(), nullptr, done, context);
        });
    if (!registered) return registered.error();
    char** block = nullptr;
    const pmix_status_t status = library.server_setup_fork(&process, &block);
    std::map<std::string, std::string> variables;
    for (char** entry = block; entry != nullptr && *entry != nullptr; ++entry) {
      const std::string text = *entry;
      const std::size_t equals = text.find('=');
      if (equals != text.npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
      std::free(*entry);
    }
    std::free(block);
    if (status != PMIX_SUCCESS) return library.Failed("make the environment of a rank", status);
    return variables;
  }

  void OnStarted(int rank) override { Send(PmixStarted{rank}); }
  void OnFinished(int rank) override { Send(PmixFinished{rank}); }
  void OnAborted(int rank, int code, const std::string& message) override {
    Send(PmixAborted{rank, code, Cut(message)});
  }
  void OnSaid(int rank, const std::string& text) override { Send(PmixSaid{rank, Cut(text)}); }

  void OnFence(const std::string& job, const std::set<int>& ranks, std::string bytes,
               PmixFence fence) override {
    if (job != job_.name || bytes.size() > kMaxPmixFenceBytes) return fence.Fail(PMIX_ERR_NOT_SUPPORTED);
    fences_[next_fence_] = fence;
    Send(PmixFenced{next_fence_++, {ranks.begin(), ranks.end()}, std::move(bytes)});
  }

  // Blocks until the agent has taken the message: there is nothing else to do.
  void Send(const FromPmix& message) {
    const std::string frame = Encode(message);
    for (std::string_view rest = frame; !rest.empty();) {
      const ssize_t size = ::send(agent_.native_handle(), rest.data(), rest.size(), MSG_NOSIGNAL);
      if (size >= 0) {
        rest.remove_prefix(static_cast<std::size_t>(size));
        continue;
      }
      if (errno != EINTR && errno != EAGAIN) Leave();
      pollfd room{agent_.native_handle(), POLLOUT, 0};
      ::poll(&room, 1, -1);
    }
  }

  // Skips PMIx_server_finalize and deregistration of ranks and jobs: if a rank was killed while connecting,
  // libpmix (4.2.2) has freed what they use, and they may wait forever.
  [[noreturn]] static void Leave() { ::_exit(kAgentGone); }

  Descriptor agent_;
  boost::asio::io_context& loop_;
  std::array<char, kReadBytes> chunk_;
  wire::FrameReader reader_{kMaxPmixAnswerBytes + kMaxPmixTextBytes};
  Job job_;
  std::map<std::uint64_t, PmixFence> fences_;
  std::uint64_t next_fence_ = 0;
};

}  // namespace

void ServePmix(UniqueFd agent) {
  boost::asio::io_context loop(1);
  Service(loop, std::move(agent)).Run();
}

Status CheckPmix() {
  const Result<const PmixLibrary*> library = OpenPmix();
  return library ? Status() : library.error();
}

}  // namespace dtrun::pmi
