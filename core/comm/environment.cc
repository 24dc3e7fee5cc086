#include "core/comm/environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/number.h"
#include "core/base/text.h"
#include "core/contract/environment.h"

namespace dtrun::comm {
namespace {

constexpr const char* kRequired[] = {
    contract::kWorldSize, contract::kLocalWorldSize, contract::kNodeRank, contract::kHostCount,
    contract::kJob,       contract::kGeneration,     contract::kStore,    contract::kJobKey,
    contract::kBackend,   contract::kBackendTimeout,
};
constexpr const char* kRequiredOfARank[] = {contract::kRank, contract::kLocalRank};
constexpr const char* kRequiredOfABackend[] = {contract::kBackendPath, contract::kBackendFileId,
                                               contract::kBackendOptions};
// Variables that common launchers set, above all torchrun.
constexpr char kTheirLocalRank[] = "LOCAL_RANK";
constexpr char kTheirLocalWorldSize[] = "LOCAL_WORLD_SIZE";
constexpr char kTheirWorldSize[] = "WORLD_SIZE";

int OwnProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

// Collects the first problem, so that each field can be read in one line.
class Reader {
 public:
  explicit Reader(const Lookup& lookup) : lookup_(lookup) {}

  bool Has(const char* name) const { return !Text(name).empty(); }
  std::string Text(const char* name) const {
    const char* value = lookup_(name);
    return value == nullptr ? "" : value;
  }

  template <class T>
  T Number(const char* name, T min, T max, const char* what) {
    const std::string text = Text(name);
    const std::optional<T> value = NumberOf<T>(text);
    if (!value || *value < min || *value > max) {
      Fail(fmt::format("{} is '{}'; expected {}, a number from {} to {}", name, text, what, min, max));
      return min;
    }
    return *value;
  }

  // Leaves `value` if the variable is not set.
  void Switch(const char* name, const char* on, const char* off, bool* value) {
    const std::string text = Text(name);
    if (text.empty()) return;
    *value = text == on;
    if (text != on && text != off) Fail(fmt::format("{} is '{}'; expected {} or {}", name, text, on, off));
  }

  void Fail(std::string text) {
    if (problem_.empty()) problem_ = std::move(text);
  }
  const std::string& problem() const { return problem_; }

 private:
  const Lookup& lookup_;
  std::string problem_;
};

Error Incomplete(const std::vector<const char*>& missing) {
  return Error{
      DTRUN_FAILED_PRECONDITION,
      fmt::format("the environment of dtrun is incomplete: {} {} missing; start this program with dtrun and "
                  "pass its environment on whole",
                  fmt::join(missing, ", "), missing.size() == 1 ? "is" : "are")};
}

// Which rank of its host this process is, if the user's own launcher started the ranks. That launcher must
// start as many as the job has here; the job would wait in vain for missing ones.
void ReadPlaceOnHost(Reader& reader, Environment* e) {
  const auto expect = [&](const char* name, int ranks, const char* where) {
    if (!reader.Has(name) || reader.Text(name) == std::to_string(ranks)) return;
    reader.Fail(
        fmt::format("{} is '{}', but the job has {} ranks {}; let the program that starts them make as "
                    "many, or change job.processes_per_host",
                    name, reader.Text(name), ranks, where));
  };
  expect(kTheirLocalWorldSize, e->local_world_size, "on this host");
  expect(kTheirWorldSize, e->world_size, "in all");
  const int first = reader.Number(contract::kFirstRank, 0, e->world_size - e->local_world_size,
                                  "the first rank of this host");
  e->local_rank = reader.Number(kTheirLocalRank, 0, e->local_world_size - 1, "a rank of this host");
  e->rank = first + e->local_rank;
}

// Empty if the variable is not set.
std::vector<int> ReadHostRanks(Reader& reader, const Environment& e) {
  if (!reader.Has(contract::kHostRanks)) return {};
  const std::string text = reader.Text(contract::kHostRanks);
  auto ranks = ReadCountList(text, static_cast<std::size_t>(e.host_count));
  if (!ranks || std::ssize(*ranks) != e.host_count ||
      std::accumulate(ranks->begin(), ranks->end(), std::int64_t{0}) != e.world_size) {
    reader.Fail(fmt::format("{} is '{}'; expected the numbers of ranks of {} hosts, {} in all",
                            contract::kHostRanks, text, e.host_count, e.world_size));
    return {};
  }
  return *std::move(ranks);
}

std::string ReadPath(Reader& reader, const char* variable) {
  std::string path = reader.Text(variable);
  if (path.empty() || path.front() != '/')
    reader.Fail(fmt::format("{} is '{}'; expected an absolute path", variable, path));
  return path;
}

PluginSetting ReadPlugin(Reader& reader, const char* name, const char* path, const char* id,
                         const char* options) {
  PluginSetting plugin{reader.Text(name), ReadPath(reader, path), reader.Text(id), reader.Text(options)};
  if (plugin.file_id == contract::kAnyFile) plugin.file_id.clear();
  return plugin;
}

// "cuda=/path#build-id 0f". Empty for other texts: a path with ':' or '#' is split wrongly.
std::optional<PluginSetting> DeviceIn(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::size_t hash = std::min(text.find('#'), text.size());
  if (equals == 0 || equals == text.npos || equals > hash) return std::nullopt;
  PluginSetting device;
  device.name = text.substr(0, equals);
  device.path = text.substr(equals + 1, hash - equals - 1);
  if (hash < text.size()) device.file_id = text.substr(hash + 1);
  const bool is_id = hash == text.size() ||
                     (!device.file_id.empty() && device.file_id.find_first_of("/#") == std::string::npos);
  const bool whole = device.path.starts_with('/') && is_id;
  return whole ? std::optional(device) : std::nullopt;
}

std::vector<PluginSetting> ReadDevices(Reader& reader) {
  std::vector<PluginSetting> devices;
  const std::string text = reader.Text(contract::kDevices);
  for (const std::string_view one : text.empty() ? std::vector<std::string_view>() : Split(text, ':')) {
    std::optional<PluginSetting> device = DeviceIn(one);
    if (!device) {
      reader.Fail(
          fmt::format("{} has '{}'; expected name=/path or name=/path#id between colons, where no path has "
                      "':' or '#': move such a plugin",
                      contract::kDevices, one));
    } else if (std::ranges::find(devices, device->name, &PluginSetting::name) != devices.end()) {
      reader.Fail(fmt::format("{} has the device '{}' twice; leave one of them out", contract::kDevices,
                              device->name));
    } else {
      devices.push_back(*std::move(device));
    }
  }
  return devices;
}

}  // namespace

std::vector<int> Environment::HostOfRanks() const {
  std::vector<int> hosts;
  if (emulated_hosts > 1) {
    for (int of = 0; of < world_size; ++of) hosts.push_back(Emulated(of));
  } else if (host_count == 1) {
    hosts.assign(static_cast<std::size_t>(world_size), 0);
  } else {
    for (std::size_t of = 0; of < host_ranks.size(); ++of)
      hosts.insert(hosts.end(), static_cast<std::size_t>(host_ranks[of]), static_cast<int>(of));
  }
  return hosts;
}

Result<Environment> ReadEnvironment(const Lookup& lookup) {
  Reader reader(lookup);
  std::vector<const char*> missing;
  const auto require = [&](std::span<const char* const> names) {
    std::ranges::copy_if(names, std::back_inserter(missing),
                         [&](const char* name) { return !reader.Has(name); });
  };
  require(kRequired);
  if (missing.size() == std::size(kRequired)) return Environment{};
  const bool one_of_several = reader.Has(contract::kFirstRank);
  if (!one_of_several) {
    require(kRequiredOfARank);
  } else if (!reader.Has(kTheirLocalRank)) {
    return Error{DTRUN_FAILED_PRECONDITION,
                 "dtrun started one process for all ranks of this host: LOCAL_RANK does not say which of "
                 "them this process is; set it in each process that you start, or let dtrun start them: "
                 "launcher.name = \"per-process\""};
  }
  const bool has_backend = reader.Text(contract::kBackend) != "none";
  if (has_backend) require(kRequiredOfABackend);
  if (!missing.empty()) return Incomplete(missing);

  constexpr int kMax = std::numeric_limits<int>::max();
  Environment e;
  e.launched = true;
  e.world_size = reader.Number(contract::kWorldSize, 1, kMax, "the number of ranks");
  e.local_world_size =
      reader.Number(contract::kLocalWorldSize, 1, e.world_size, "the number of ranks on this host");
  if (one_of_several) {
    e.own_launcher = true;
    ReadPlaceOnHost(reader, &e);
  } else {
    e.rank = reader.Number(contract::kRank, 0, e.world_size - 1, "a rank of the world");
    e.local_rank = reader.Number(contract::kLocalRank, 0, e.local_world_size - 1, "a rank of this host");
  }
  e.host_count = reader.Number(contract::kHostCount, 1, e.world_size, "the number of hosts");
  e.node_rank = reader.Number(contract::kNodeRank, 0, e.host_count - 1, "a host of the job");
  e.host_ranks = ReadHostRanks(reader, e);
  e.generation = reader.Number<std::uint64_t>(
      contract::kGeneration, 0, std::numeric_limits<std::uint64_t>::max(), "the start of the world");
  e.job = reader.Text(contract::kJob);
  e.store = ReadPath(reader, contract::kStore);
  e.job_key = reader.Text(contract::kJobKey);
  if (e.job_key.size() != 64 || !IsLowerHex(e.job_key)) {
    reader.Fail(fmt::format("{} has {} characters that are not the 64 hex digits expected", contract::kJobKey,
                            e.job_key.size()));
  }
  e.backend.name = reader.Text(contract::kBackend);
  if (has_backend) {
    e.backend = ReadPlugin(reader, contract::kBackend, contract::kBackendPath, contract::kBackendFileId,
                           contract::kBackendOptions);
  }
  if (reader.Has(contract::kDeviceBackend)) {
    e.device_backend = ReadPlugin(reader, contract::kDeviceBackend, contract::kDeviceBackendPath,
                                  contract::kDeviceBackendFileId, contract::kDeviceBackendOptions);
  }
  e.devices = ReadDevices(reader);
  reader.Switch(contract::kStaging, "auto", "off", &e.staging);
  Result<Nanoseconds> timeout = ParseDuration(reader.Text(contract::kBackendTimeout));
  if (timeout) {
    e.timeout = *timeout;
  } else {
    reader.Fail(fmt::format("{}: {}", contract::kBackendTimeout, timeout.error().text));
  }
  e.interface_name = reader.Text(contract::kInterface);
  e.address = reader.Text(contract::kAddress);
  if (reader.Has(contract::kLocalProcessors)) {
    e.local_processors = reader.Number(contract::kLocalProcessors, 0, kMax, "a number of processors");
  }
  if (e.local_processors == 0)
    e.local_processors = OwnProcessors();  // no rank is bound to fewer than all may use
  if (reader.Has(contract::kTrace))
    e.trace_bytes = reader.Number<std::uint64_t>(
        contract::kTrace, 0, std::numeric_limits<std::int64_t>::max(), "the size of a trace in bytes");
  e.recorder = reader.Text(contract::kRecorder);
  reader.Switch(contract::kLocal, "shm", "none", &e.shared_memory);
  if (reader.Has(contract::kEmulatedHosts)) {
    e.emulated_hosts = reader.Number(contract::kEmulatedHosts, 1, kMax, "a number of hosts");
    e.emulated_hosts = std::min(e.emulated_hosts, e.world_size);
  }
  if (!reader.problem().empty()) return Error{DTRUN_INVALID_ARGUMENT, reader.problem()};
  return e;
}

std::string OtherLauncherText(const Lookup& lookup) {
  for (const char* const name : {kTheirWorldSize, "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}) {
    const char* const given = lookup(name);
    const auto ranks = NumberOf<int>(given == nullptr ? "" : given);
    const bool batch = std::string_view(name) == "SLURM_NTASKS" && lookup("SLURM_PROCID") == nullptr;
    if (!ranks || *ranks < 2 || batch) continue;
    return fmt::format(
        "this process is alone, a world of one, but {0}={1} means that a launcher started {1} ranks; start "
        "the program with dtrun -n {1}, or unset {0} if it is meant to be alone",
        name, *ranks);
  }
  return {};
}

}  // namespace dtrun::comm
