#include "peer_access.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "dtrun/plugin/hash.hpp"
#include "peer_trial.h"

namespace dtrun::nccl_plugin {
namespace {

std::string Digest(const std::string& text) {
  sdk::Fnv1a hash;
  hash.Add(text);
  std::ostringstream out;
  out << std::hex << hash.value();
  return out.str();
}

const char* StateName(PeerPair::State state) {
  switch (state) {
    case PeerPair::State::kProven: return "proven";
    case PeerPair::State::kRefused: return "refused";
    default: return "broken";
  }
}

std::filesystem::path FileFor(const std::filesystem::path& cache, const std::string& key) {
  return cache / ("nccl-p2p-" + Digest(key));
}

std::string Recall(const std::filesystem::path& cache, const std::string& key) {
  if (cache.empty()) return {};
  std::ifstream file(FileFor(cache, key));
  std::string first;
  if (!std::getline(file, first) || first != key) return {};
  std::ostringstream rest;
  rest << file.rdbuf();
  return rest.str();
}

// A folder that cannot be written costs the next start a trial, no more.
void Keep(const std::filesystem::path& cache, const PeerReport& report) {
  std::error_code ignored;
  std::filesystem::create_directories(cache, ignored);
  const std::filesystem::path file = FileFor(cache, report.key);
  const std::filesystem::path fresh = file.string() + "." + std::to_string(getpid());
  std::ofstream out(fresh);
  out << report.key << '\n';
  for (const PeerPair& pair : report.pairs) {
    out << StateName(pair.state) << ' ' << pair.from << ' ' << pair.to << ' ';
    if (pair.state == PeerPair::State::kProven) out << static_cast<long long>(pair.bytes_per_second);
    out << pair.reason << '\n';
  }
  out.close();
  if (out) std::filesystem::rename(fresh, file, ignored);
  std::filesystem::remove(fresh, ignored);
}

// In the child, which shares nothing but the pipe.
[[noreturn]] void RunTrial(const PeerTrialOptions& options, int pipe) {
  const auto say = [pipe](const std::string& line) {
    const std::string text = line + "\n";
    if (write(pipe, text.data(), text.size()) != static_cast<ssize_t>(text.size())) _exit(1);
  };
  try {
    const cuda::CudaApi cuda(options.cuda_library, kCudaLibraryOption);
    TryPeers(
        cuda, [&](const std::string& key) { return Recall(options.cache, key); }, say);
  } catch (const std::exception& error) {
    say(std::string("trouble ") + error.what());
  }
  _exit(0);
}

std::string LastLine(const std::string& lines) {
  if (lines.size() < 2) return {};
  const std::size_t before = lines.rfind('\n', lines.size() - 2);
  return lines.substr(before == std::string::npos ? 0 : before + 1);
}

std::string DeviceText(const PeerReport& report, int device) {
  const auto index = static_cast<std::size_t>(device);
  return "GPU " + std::to_string(device) +
         (index < report.devices.size() ? " (" + report.devices[index] + ")" : "");
}

std::string Rate(double bytes_per_second) {
  std::ostringstream out;
  out.precision(3);
  out << bytes_per_second / 1e9 << " GB/s";
  return out.str();
}

// How the child ended. One that is stuck in the driver is left to init; it has been killed.
int Reap(pid_t child) {
  int status = 0;
  const sdk::Deadline deadline(std::chrono::seconds(1));
  while (waitpid(child, &status, WNOHANG) == 0 && !deadline.passed()) usleep(1000);
  return status;
}

// For programs with peer copies of their own, which NCCL_P2P_DISABLE does not reach: custom
// all-reduce kernels, single-process DataParallel (OpenRLHF/OpenRLHF#1064).
constexpr const char* kForPrograms = "DTRUN_P2P";
constexpr const char* kP2pDisable = "NCCL_P2P_DISABLE";
constexpr const char* kShmDisable = "NCCL_SHM_DISABLE";

// What NCCL takes of /dev/shm for a rank, by experience: 64 MiB, which containers get, do for two
// ranks and not for eight (NVIDIA/nccl#290).
constexpr std::uint64_t kShmPerRank = std::uint64_t{32} << 20;

// For `dtrun explain`: each device, and each pair of them with what was found.
void AddPairs(const PeerReport& report, GpuPaths& paths) {
  for (std::size_t device = 0; device < report.devices.size(); ++device)
    paths.facts.emplace_back("peer " + std::to_string(device), report.devices[device]);
  for (const PeerPair& pair : report.pairs)
    paths.facts.emplace_back("peer " + std::to_string(pair.from) + ">" + std::to_string(pair.to),
                             VerdictText(pair));
}

// Whether peers meet directly; unset: unknown.
std::optional<bool> ChoosePeers(const GpuPathInputs& inputs, GpuPaths& paths) {
  const auto fact = [&](const std::string& text) { paths.facts.emplace_back("p2p", text); };
  if (inputs.p2p == Switch::kOff) {
    fact("off, as backend.options.p2p says");
    return false;
  }
  if (const auto own = inputs.inherited(kP2pDisable); own && inputs.p2p == Switch::kAuto) {
    fact("as NCCL_P2P_DISABLE=" + *own + " of your environment says; not tried");
    return *own != "1";
  }
  if (inputs.local_ranks < 2 && inputs.p2p == Switch::kAuto) return std::nullopt;
  const PeerReport report = inputs.ask();
  if (report.devices.empty() && report.trouble.empty())
    return std::nullopt;  // no GPU, which is said elsewhere
  const PeerVerdict verdict = Judge(report);
  AddPairs(report, paths);
  if (inputs.p2p == Switch::kOn) {
    if (verdict.obstacle) {
      throw sdk::Failure(DTRUN_FAILED_PRECONDITION, "backend.options.p2p is \"on\", but " +
                                                        *verdict.obstacle +
                                                        "; \"auto\" goes round it, \"off\" does without");
    }
  } else if (!verdict.usable) {
    paths.variables.emplace_back(kP2pDisable, "1");
  }
  fact((verdict.usable ? "on: " : "off: ") + verdict.reason);
  if (!report.trouble.empty()) return std::nullopt;
  return verdict.usable;
}

}  // namespace

std::filesystem::path CacheFolder() {
  if (const char* const cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/')
    return std::filesystem::path(cache) / "dtrun";
  if (const char* const home = std::getenv("HOME"); home != nullptr && *home == '/')
    return std::filesystem::path(home) / ".cache" / "dtrun";
  return {};
}

std::string VerdictText(const PeerPair& pair) {
  const bool proven = pair.state == PeerPair::State::kProven;
  return StateName(pair.state) + (": " + (proven ? Rate(pair.bytes_per_second) : pair.reason));
}

PeerReport AskPeers(const PeerTrialOptions& options) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {.trouble = std::string("no pipe: ") + std::strerror(errno)};
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    close(ends[0]);
    RunTrial(options, ends[1]);
  }
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return {.trouble = std::string("no child process: ") + std::strerror(errno)};
  }
  const sdk::Deadline deadline(options.limit);
  std::optional<sdk::Deadline> copy;  // of the pair that is being tried
  std::string lines;
  std::string ended;
  for (;;) {
    const bool by_copy = copy && copy->Left() < deadline.Left();
    const sdk::Deadline& next = by_copy ? *copy : deadline;
    pollfd ready{ends[0], POLLIN, 0};
    const int found = poll(&ready, 1, static_cast<int>(next.LeftMilliseconds().count()));
    if (found < 0 && errno == EINTR) continue;
    char bytes[4096];
    const ssize_t got = found > 0 ? read(ends[0], bytes, sizeof bytes) : -1;
    if (got > 0) {
      lines.append(bytes, static_cast<std::size_t>(got));
      copy.reset();
      if (LastLine(lines).rfind("trying ", 0) == 0) copy.emplace(options.copy_limit);
      continue;
    }
    if (found == 0)
      ended = "did not end within " + sdk::DurationText(by_copy ? options.copy_limit : options.limit);
    break;
  }
  close(ends[0]);
  if (!ended.empty()) kill(child, SIGKILL);
  const int status = Reap(child);
  if (ended.empty() && WIFSIGNALED(status)) ended = std::string("was killed: ") + strsignal(WTERMSIG(status));
  PeerReport report = ReadReport(lines, ended);
  if (!options.cache.empty() && !report.key.empty() && !report.cached && report.trouble.empty() &&
      !report.pairs.empty())
    Keep(options.cache, report);
  return report;
}

PeerReport ReadReport(const std::string& lines, const std::string& ended) {
  PeerReport report;
  std::string under_way;
  PeerPair tried;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "key") {
      std::getline(words >> std::ws, report.key);
    } else if (word == "device") {
      int index = 0;
      std::string bus;
      words >> index >> bus;
      report.devices.push_back(bus);
    } else if (word == "cached") {
      report.cached = true;
    } else if (word == "opening") {
      under_way = "opening";
    } else if (word == "trying") {
      words >> tried.from >> tried.to;
      under_way = "copy";
    } else if (word == "proven" || word == "refused" || word == "broken") {
      PeerPair pair;
      words >> pair.from >> pair.to;
      if (word == "proven") {
        words >> pair.bytes_per_second;
      } else {
        pair.state = word == "refused" ? PeerPair::State::kRefused : PeerPair::State::kBroken;
        std::getline(words >> std::ws, pair.reason);
      }
      report.pairs.push_back(std::move(pair));
      under_way.clear();
    } else if (word == "trouble") {
      std::getline(words >> std::ws, report.trouble);
    }
  }
  if (ended.empty()) return report;
  if (under_way == "copy") {  // the ones after it were not tried
    tried.state = PeerPair::State::kBroken;
    tried.reason = "the copy " + ended;
    report.pairs.push_back(tried);
  } else {
    report.trouble = "the trial " + ended + (under_way.empty() ? "" : " while it opened the GPUs");
  }
  return report;
}

PeerVerdict Judge(const PeerReport& report) {
  if (!report.trouble.empty())
    return {.usable = true, .reason = "not tried: " + report.trouble, .obstacle = {}};
  if (report.devices.size() < 2 || report.pairs.empty())
    return {.usable = true, .reason = "no peers", .obstacle = {}};
  std::size_t proven = 0;
  double slowest = 0;
  for (const PeerPair& pair : report.pairs) {
    if (pair.state != PeerPair::State::kProven) continue;
    slowest = proven == 0 ? pair.bytes_per_second : std::min(slowest, pair.bytes_per_second);
    ++proven;
  }
  const auto first = [&](auto&& which) -> const PeerPair* {
    const auto found = std::find_if(report.pairs.begin(), report.pairs.end(), which);
    return found == report.pairs.end() ? nullptr : &*found;
  };
  const auto is_refused = [](const PeerPair& pair) { return pair.state == PeerPair::State::kRefused; };
  const PeerPair* const refused = first(is_refused);
  const PeerPair* const broken =
      first([](const PeerPair& pair) { return pair.state == PeerPair::State::kBroken; });
  // One way only: NCCL asks for one direction and uses both.
  const PeerPair* const lopsided = first([&](const PeerPair& pair) {
    return is_refused(pair) && first([&](const PeerPair& other) {
             return other.from == pair.to && other.to == pair.from && other.state == PeerPair::State::kProven;
           });
  });
  const std::string origin = report.cached ? " (found earlier, with this driver since this boot)" : "";
  PeerVerdict verdict;
  const PeerPair* const against = broken != nullptr ? broken : lopsided != nullptr ? lopsided : refused;
  if (against != nullptr) {
    verdict.obstacle = DeviceText(report, against->to) + " cannot read " + DeviceText(report, against->from) +
                       ": " + against->reason + (against == lopsided ? ", though the other way it can" : "");
  }
  verdict.usable = broken == nullptr && lopsided == nullptr && proven > 0;
  if (verdict.usable) {
    verdict.reason = std::to_string(proven) + " of " + std::to_string(report.pairs.size()) +
                     " directions proven, the slowest at " + Rate(slowest) + origin;
    if (refused != nullptr) verdict.reason += "; " + *verdict.obstacle;
  } else {
    verdict.reason = *verdict.obstacle + origin;
  }
  return verdict;
}

GpuPaths ChooseGpuPaths(const GpuPathInputs& inputs) {
  GpuPaths paths;
  const std::optional<bool> peers = ChoosePeers(inputs, paths);
  if (peers) paths.variables.emplace_back(kForPrograms, *peers ? "on" : "off");
  if (peers == false && inputs.shm == Switch::kAuto && !inputs.inherited(kShmDisable) &&
      inputs.shm_free_bytes < kShmPerRank * static_cast<std::uint64_t>(inputs.local_ranks)) {
    paths.variables.emplace_back(kShmDisable, "1");
    paths.facts.emplace_back("shm", "off: /dev/shm has " + std::to_string(inputs.shm_free_bytes >> 20) +
                                        " MiB left for " + std::to_string(inputs.local_ranks) +
                                        " ranks; give the container more (docker run --shm-size)");
  }
  return paths;
}

}  // namespace dtrun::nccl_plugin
