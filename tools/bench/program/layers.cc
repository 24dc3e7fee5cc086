#include "tools/bench/program/layers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/program_files.h"

namespace dtrun::bench {
namespace {

namespace fs = std::filesystem;

// Debian's own interpreter is often not the first one on PATH, but it has torch.
constexpr char kTorchCommand[] =
    "for python in python3 /usr/bin/python3; do "
    "\"$python\" -c 'import importlib.util as u, sys; sys.exit(u.find_spec(\"torch\") is None)' 2>/dev/null "
    "&& exec \"$python\" -B \"$0\" \"$1\"; done; echo 'bench: no python3 here has torch' >&2; exit 1";

// MPI's ranks are mpirun's children and join the job in which rank 0 runs mpirun. The job's other processes
// wait until mpirun has ended: they read a pipe that it holds open.
constexpr char kMpirunCommand[] =
    "pipe=$1; shift; mkfifo \"$pipe\" 2>/dev/null; "
    "[ \"$DTRUN_RANK\" != 0 ] && exec cat \"$pipe\"; exec 9<>\"$pipe\"; exec \"$@\"";
constexpr char kMpiRankCommand[] =
    "DTRUN_RANK=$OMPI_COMM_WORLD_RANK DTRUN_LOCAL_RANK=$OMPI_COMM_WORLD_RANK exec \"$@\"";

bool IsProgram(const std::string& program) {
  if (program.find('/') != program.npos) return IsExecutable(program);
  const char* path = std::getenv("PATH");
  return path != nullptr && FindOnPath(program, path, ".").has_value();
}

class Planner {
 public:
  Planner(const Request& request, const Programs& programs, const fs::path& folder)
      : request_(request), programs_(programs), folder_(folder), socket_((folder / "socket").string()) {}

  std::vector<Layer> Plan() {
    if (request_.operation != Operation::kBarrier) {
      Add("memcpy",
          Job("none", {}, {programs_.rank.string(), socket_, "memcpy", (folder_ / "page").string()}));
      layers_.back().operation = Operation::kCopy;
    }
    for (const std::string& local : request_.locals) AddOurs(local);
    for (const std::string& peer : request_.peers) AddPeer(peer);
    return std::move(layers_);
  }

 private:
  // Within one host everything goes through shared memory, whatever the backend: one column.
  bool hosts_are_emulated() const {
    return std::any_of(request_.sets.begin(), request_.sets.end(),
                       [](const Set& set) { return set.assignment.rfind("comm.emulate_hosts=", 0) == 0; });
  }

  // The backend for a job on shared memory: the first usable one here, unless an option is for a specific
  // backend.
  std::string Alone() const {
    const bool chosen = std::any_of(request_.sets.begin(), request_.sets.end(), [](const Set& set) {
      return set.backend.empty() && set.assignment.starts_with("backend.");
    });
    return chosen ? request_.backends.front() : fmt::format("{}", fmt::join(request_.backends, ","));
  }

  void AddOurs(const std::string& local) {
    for (const std::string& backend : request_.backends) {
      const bool alone = local == "shm" && !hosts_are_emulated();
      const std::string name = alone ? "shm" : local == "shm" ? "shm+" + backend : backend;
      const std::vector<std::string> rank = {programs_.rank.string(), socket_, "dtrun"};
      const std::vector<std::string> more = {"comm.local=" + local};
      const bool mpi = backend == "mpi" && !alone;
      Add(name, mpi ? MpiJob(more, rank) : Job(alone ? Alone() : backend, more, rank));
      layers_.back().registered = request_.registered;
      if (mpi) NeedMpirun();
      if (alone) return;
    }
  }

  void AddPeer(const std::string& peer) {
    if (peer == "raw-gloo") {
      Add(peer, Job("none", {}, {Peer("raw_gloo"), socket_, folder_.string()}));
      Need("raw_gloo", "it was not built; libgloo-dev was not found then");
    } else if (peer == "raw-mpi") {
      Add(peer, Mpirun({Peer("raw_mpi"), socket_}));
      NeedMpirun();
      Need("raw_mpi", "it was not built; no MPI was found then");
    } else if (peer == "raw-ucx") {
      Add(peer, Job("none", {}, {Peer("raw_ucx"), socket_, folder_.string()}));
      Need("raw_ucx", "it was not built; libucx-dev was not found then");
    } else {
      Add(peer, Job("none", {}, {"sh", "-c", kTorchCommand, Peer("torch_gloo.py"), socket_}));
      Need("torch_gloo.py", "the program is not installed");
    }
  }

  void Add(std::string name, std::vector<std::string> argv) {
    layers_.push_back({std::move(name), std::move(argv), "", request_.operation, {false}});
  }
  void Need(const char* program, const char* otherwise) {
    if (layers_.back().absent.empty() && !fs::exists(programs_.peers / program))
      layers_.back().absent = otherwise;
  }
  void NeedMpirun() {
    const std::string& program = request_.mpirun.front();
    if (!IsProgram(program)) layers_.back().absent = fmt::format("there is no {} on PATH", program);
  }
  std::string Peer(const char* program) const { return (programs_.peers / program).string(); }

  std::vector<std::string> Job(const std::string& backend, const std::vector<std::string>& more,
                               const std::vector<std::string>& command) const {
    return Launch(backend, more, Joined({request_.wrap, command}));
  }

  std::vector<std::string> Mpirun(const std::vector<std::string>& command) const {
    return Joined({request_.mpirun, {"-n", std::to_string(request_.ranks)}, command});
  }

  std::vector<std::string> MpiJob(const std::vector<std::string>& more,
                                  const std::vector<std::string>& command) const {
    const std::string pipe = (folder_ / ("pipe" + std::to_string(layers_.size()))).string();
    return Launch("mpi", more,
                  Joined({{"sh", "-c", kMpirunCommand, "mpirun", pipe},
                          Mpirun(Joined({{"sh", "-c", kMpiRankCommand, "rank"}, command}))}));
  }

  static std::vector<std::string> Joined(const std::vector<std::vector<std::string>>& parts) {
    std::vector<std::string> words;
    for (const auto& part : parts) words.insert(words.end(), part.begin(), part.end());
    return words;
  }

  std::vector<std::string> Launch(const std::string& backend, const std::vector<std::string>& more,
                                  const std::vector<std::string>& command) const {
    std::vector<std::string> sets;
    for (const Set& set : request_.sets) {
      if (set.backend.empty() || set.backend == backend) sets.push_back(set.assignment);
    }
    sets.push_back(fmt::format("job.processes_per_host={}", request_.ranks));
    sets.push_back("backend.name=" + backend);
    sets.push_back("logs.dir=" + (folder_ / "logs" / std::to_string(layers_.size())).string());
    sets.push_back("output.prefix=none");
    sets.insert(sets.end(), more.begin(), more.end());
    std::vector<std::string> argv = {programs_.dtrun.string(), "bench-layer", "--socket", socket_};
    for (const std::string& dir : request_.plugin_dirs) argv.insert(argv.end(), {"--plugin-dir", dir});
    for (const std::string& set : sets) argv.insert(argv.end(), {"--set", set});
    argv.emplace_back("--");
    argv.insert(argv.end(), command.begin(), command.end());
    return argv;
  }

  const Request& request_;
  const Programs& programs_;
  const fs::path& folder_;
  const std::string socket_;
  std::vector<Layer> layers_;
};

}  // namespace

Programs Programs::Find() {
  std::error_code unknown;  // leaves an empty path, which fails to start with its own message
  const fs::path self = fs::read_symlink("/proc/self/exe", unknown);
  const fs::path folder = self.parent_path();
  return {self, folder / "dtrun-bench", folder.parent_path() / "lib/dtrun/bench"};
}

std::vector<Layer> PlanLayers(const Request& request, const Programs& programs, const fs::path& folder) {
  return Planner(request, programs, folder).Plan();
}

std::uint64_t BufferBytes(const Request& request, const std::vector<Layer>& layers) {
  const Shape& largest = request.shapes.back();
  std::uint64_t columns = 0;
  for (const Layer& layer : layers) columns += layer.absent.empty() ? layer.registered.size() : 0;
  return columns * static_cast<std::uint64_t>(request.ranks) * (largest.send + largest.recv) *
         request.element.size;
}

}  // namespace dtrun::bench
