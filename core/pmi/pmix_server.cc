#include "core/pmi/pmix_server.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/pmi/pmix_calls.h"
#include "core/pmi/pmix_job.h"

namespace dtrun::pmi {
namespace {

constexpr char kHwlocComponents[] = "HWLOC_COMPONENTS";

class PmixServer final : public Server, private PmixHost {
 public:
  static Result<std::unique_ptr<Server>> Make(const Job& job, boost::asio::io_context& loop,
                                              const Folders& folders, Events events);
  ~PmixServer() override;

  Status Begin(const Job& job) override;
  Result<Admission> Admit(int rank) override;
  void Complete(const std::string& exchange, const Result<std::string>& all) override;
  void End() override;

 private:
  PmixServer(const PmixLibrary& library, Folders folders, Events events)
      : library_(library), folders_(std::move(folders)), events_(std::move(events)) {}

  void OnStarted(int rank) override { events_.started(rank); }
  void OnFinished(int rank) override { events_.finished(rank); }
  void OnAborted(int rank, int code, const std::string& message) override {
    events_.aborted(rank, code, message);
  }
  void OnSaid(int rank, const std::string& text) override { events_.said(rank, text); }
  void OnFence(const std::string& job, const std::set<int>& ranks, std::string bytes,
               PmixFence fence) override;
  std::vector<int> HostsOf(const std::set<int>& ranks) const;

  const PmixLibrary& library_;
  const Folders folders_;
  const Events events_;
  Job job_;
  bool begun_ = false;
  std::map<std::string, PmixFence> fences_;           // by exchange
  std::map<std::string, std::uint64_t> fence_count_;  // by members
};

// What an outer launcher told this process, as its client, would be taken for orders by a server.
void ForgetOuterPmix() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with("PMIX_") && !text.starts_with("PMIX_MCA_"))
      names.emplace_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : names) ::unsetenv(name.c_str());
}

Result<std::unique_ptr<Server>> PmixServer::Make(const Job& job, boost::asio::io_context& loop,
                                                 const Folders& folders, Events events) {
  Result<const PmixLibrary*> library = OpenPmix();
  if (!library) return library.error();
  for (const std::filesystem::path& folder : {folders.disk, folders.memory}) {
    if (::mkdir(folder.c_str(), 0700) != 0) {
      return Error::System(fmt::format("make the folder '{}'", folder.string()), errno);
    }
  }

  ForgetOuterPmix();
  // Its other stores share memory with the ranks under locks, which a killed rank may hold for ever.
  ::setenv("PMIX_MCA_gds", "hash", 0);
  std::unique_ptr<PmixServer> server(new PmixServer(**library, folders, std::move(events)));
  PmixInfo info(**library);
  info.Text(PMIX_SERVER_NSPACE, "dtrun-agent");
  info.Rank(PMIX_SERVER_RANK, job.here);
  info.Text(PMIX_HOSTNAME, job.host().name);
  info.Text(PMIX_SERVER_TMPDIR, folders.disk.string());
  info.Text(PMIX_SYSTEM_TMPDIR, folders.disk.string());
  info.Text(PMIX_TCP_IF_INCLUDE, "lo");
  pmix_server_module_t module = PmixModule();
  const std::span<pmix_info_t> all = info.Finish();
  // Nobody asks it for devices, and looking for them is half of its start.
  const bool as_usual = std::getenv(kHwlocComponents) != nullptr;
  if (!as_usual) ::setenv(kHwlocComponents, "-pci,-linuxio", 1);
  const pmix_status_t status = (*library)->server_init(&module, all.data(), all.size());
  if (!as_usual) ::unsetenv(kHwlocComponents);
  if (status != PMIX_SUCCESS) return (*library)->Failed("start its server", status);
  SetPmixHost(server.get(), &loop);
  return std::unique_ptr<Server>(std::move(server));
}

// PMIx_server_finalize is not called, nor are ranks and jobs deregistered: when a rank was killed while
// it connected, libpmix (4.2.2) has freed what these touch, and they may wait for ever. What it keeps
// ends with the process.
PmixServer::~PmixServer() {
  End();
  SetPmixHost(nullptr, nullptr);
}

Status PmixServer::Begin(const Job& job) {
  End();
  job_ = job;
  begun_ = true;
  if (::mkdir((folders_.memory / job.name).c_str(), 0700) != 0) {
    return Error::System(fmt::format("make a folder in '{}'", folders_.memory.string()), errno);
  }
  PmixInfo info(library_);
  if (Status described = DescribeJob(library_, job, folders_, &info); !described) return described;
  const std::span<pmix_info_t> all = info.Finish();
  return AwaitPmix(library_, "register the job", [&](pmix_op_cbfunc_t done, void* context) {
    return library_.server_register_nspace(job.name.c_str(), job.host().local_size, all.data(), all.size(),
                                           done, context);
  });
}

Result<Admission> PmixServer::Admit(int rank) {
  pmix_proc_t process{};
  std::strncpy(process.nspace, job_.name.c_str(), PMIX_MAX_NSLEN);
  process.rank = static_cast<pmix_rank_t>(rank);
  const Status registered = AwaitPmix(library_, "register a rank", [&](pmix_op_cbfunc_t done, void* context) {
    return library_.server_register_client(&process, ::getuid(), ::getgid(), nullptr, done, context);
  });
  if (!registered) return registered.error();
  char** block = nullptr;
  const pmix_status_t status = library_.server_setup_fork(&process, &block);
  Admission admission;
  // Else these lie in /dev/shm itself, where nobody would remove them.
  admission.defaults["OMPI_MCA_btl_vader_backing_directory"] = (folders_.memory / job_.name).string();
  for (char** entry = block; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != text.npos) admission.variables[text.substr(0, equals)] = text.substr(equals + 1);
    std::free(*entry);
  }
  std::free(block);
  if (status != PMIX_SUCCESS) return library_.Failed("make the environment of a rank", status);
  return admission;
}

std::vector<int> PmixServer::HostsOf(const std::set<int>& ranks) const {
  std::vector<int> hosts;
  for (std::size_t i = 0; i < job_.hosts.size(); ++i) {
    const JobHost& host = job_.hosts[i];
    const auto first = ranks.lower_bound(host.first_rank);
    if (ranks.empty() || (first != ranks.end() && *first < host.first_rank + host.local_size)) {
      hosts.push_back(static_cast<int>(i));
    }
  }
  return hosts;
}

void PmixServer::OnFence(const std::string& job, const std::set<int>& ranks, std::string bytes,
                         PmixFence fence) {
  if (!begun_ || job != job_.name) return fence.Fail(PMIX_ERR_NOT_SUPPORTED);
  const std::string members = fmt::format("{}", fmt::join(ranks, ","));
  // Fences of the same ranks come one after the other, in the same order on every host.
  const std::string exchange = fmt::format("pmix/{}/{}", members, fence_count_[members]++);
  fences_[exchange] = fence;
  events_.offered({exchange, HostsOf(ranks), std::move(bytes)});
}

void PmixServer::Complete(const std::string& exchange, const Result<std::string>& all) {
  const auto found = fences_.extract(exchange);
  if (found.empty()) return;
  all ? found.mapped().Complete(*all) : found.mapped().Fail(PMIX_ERR_PROC_ABORTED);
}

void PmixServer::End() {
  if (!std::exchange(begun_, false)) return;
  for (const auto& [exchange, fence] : std::exchange(fences_, {})) {
    fence.Fail(PMIX_ERR_PROC_ABORTED);
  }
  fence_count_.clear();
  for (const std::filesystem::path& folder : {folders_.disk, folders_.memory}) {
    std::error_code error;  // whoever removes the folder itself reports what cannot be removed
    std::filesystem::remove_all(folder / job_.name, error);
  }
}

}  // namespace

Status PmixBuilt() { return {}; }

Status PmixOpens() {
  const Result<const PmixLibrary*> library = OpenPmix();
  return library ? Status() : library.error();
}

Result<std::unique_ptr<Server>> MakePmixServer(const Job& job, boost::asio::io_context& loop,
                                               const Folders& folders, Events events) {
  return PmixServer::Make(job, loop, folders, std::move(events));
}

}  // namespace dtrun::pmi
