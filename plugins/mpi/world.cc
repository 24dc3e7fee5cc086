#include "world.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>

#include "dtrun/plugin/environment.hpp"

namespace dtrun::mpi_plugin {
namespace {

using sdk::Failure;

// How long a process with failed communicators tries to end MPI in order.
constexpr sdk::Nanoseconds kFarewell = std::chrono::seconds(5);

const char* LevelText(int level) {
  switch (level) {
    case MPI_THREAD_SINGLE: return "MPI_THREAD_SINGLE";
    case MPI_THREAD_FUNNELED: return "MPI_THREAD_FUNNELED";
    case MPI_THREAD_SERIALIZED: return "MPI_THREAD_SERIALIZED";
    default: return "MPI_THREAD_MULTIPLE";
  }
}

// Puts back every signal handler that was replaced while it lived: MPI_Init replaces the program's.
class KeepSignalHandlers {
 public:
  KeepSignalHandlers() {
    for (int number = 1; number < NSIG; ++number)
      sigaction(number, nullptr, &before_[static_cast<std::size_t>(number)]);
  }
  ~KeepSignalHandlers() {
    for (int number = 1; number < NSIG; ++number) {
      const struct sigaction& before = before_[static_cast<std::size_t>(number)];
      struct sigaction now {};
      if (sigaction(number, nullptr, &now) != 0) continue;  // a number that the C library keeps
      if (now.sa_handler != before.sa_handler) sigaction(number, &before, nullptr);
    }
  }
  KeepSignalHandlers(const KeepSignalHandlers&) = delete;
  KeepSignalHandlers& operator=(const KeepSignalHandlers&) = delete;

 private:
  std::array<struct sigaction, NSIG> before_;
};

World* the_world = nullptr;  // lives as long as the process
pid_t process_of_the_world = 0;

}  // namespace

bool EachHasAProcessor(int local_ranks) {
  return local_ranks >= 2 && local_ranks <= sysconf(_SC_NPROCESSORS_ONLN);
}

std::vector<Variable> CollSmVariables(CollSm coll_sm, int local_ranks) {
  if (coll_sm == CollSm::kApart) {
    if (getenv("OMPI_MCA_btl") != nullptr) return {};
    return {{"OMPI_MCA_btl", "^vader,sm"}};
  }
  if (getenv("OMPI_MCA_coll_sm_priority") != nullptr || coll_sm == CollSm::kOff) return {};
  if (coll_sm == CollSm::kAuto && !EachHasAProcessor(local_ranks)) return {};
  // `tuned` has 30. Below it, only communicators that ask for coll/sm get it (team.cc). Fragments as
  // shipped, 8 KiB, lose to `tuned` from 1 MiB on.
  std::vector<Variable> variables = {{"OMPI_MCA_coll_sm_priority", coll_sm == CollSm::kOn ? "90" : "1"}};
  if (getenv("OMPI_MCA_coll_sm_fragment_size") == nullptr)
    variables.push_back({"OMPI_MCA_coll_sm_fragment_size", "131072"});
  return variables;
}

std::string CollSmText(const std::vector<Variable>& variables) {
  if (!variables.empty()) return variables.front().value == std::string("90") ? "on" : "from 32 MiB on";
  const char* const priority = getenv("OMPI_MCA_coll_sm_priority");
  return priority == nullptr ? "as installed" : std::string("at priority ") + priority;
}

World& World::Open(const std::optional<std::string>& library) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const Library& opened = OpenLibrary(library);
  if (the_world == nullptr) {
    the_world = new World(opened);
    process_of_the_world = getpid();
  }
  return *the_world;
}

bool World::usable() const {
  int finalized = 0;
  return started() && api().MPI_Finalized.Try(&finalized) && finalized == 0;
}

void World::Start(const sdk::Host& host, CollSm coll_sm, int local_ranks, const sdk::Deadline& deadline) {
  if (getpid() != process_of_the_world)
    throw Failure(
        DTRUN_FAILED_PRECONDITION,
        "this process was forked from one that uses MPI, which does not survive that; start it anew "
        "(multiprocessing: use 'spawn' or 'forkserver')");
  const std::lock_guard lock(starting_);
  if (!started()) {
    host_.emplace(host);
    if (!thread_.Run(
            host, [this, coll_sm, local_ranks] { StartOnThread(coll_sm, local_ranks); }, deadline)) {
      SetStuck();
      throw Failure(
          DTRUN_TIMEOUT,
          "MPI_Init did not end in time: it waits until every process of the MPI job has called it; "
          "look for processes of the job that have ended or use no communicator");
    }
  }
  if (!usable()) {
    throw Failure(DTRUN_FAILED_PRECONDITION,
                  "the program has called MPI_Finalize, and MPI cannot be started again; finalize after the "
                  "last communicator");
  }
}

void World::StartOnThread(CollSm coll_sm, int local_ranks) {
  int initialized = 0;
  int finalized = 0;
  int level = MPI_THREAD_SINGLE;
  std::string coll_sm_text;
  api().MPI_Initialized(&initialized);
  api().MPI_Finalized(&finalized);
  if (finalized != 0) {
    throw Failure(DTRUN_FAILED_PRECONDITION,
                  "the program has called MPI_Finalize already, and MPI cannot be started again");
  }
  const bool started_here = initialized == 0;
  if (!started_here) {
    api().MPI_Query_thread(&level);
    coll_sm_text = "as the program's MPI_Init found it";
  } else {
    const std::vector<Variable> variables = CollSmVariables(coll_sm, local_ranks);
    coll_sm_text =
        coll_sm == CollSm::kApart ? "off: ranks are in containers of their own" : CollSmText(variables);
    const KeepSignalHandlers handlers;
    const sdk::KeepEnvironment environment;
    for (const Variable& variable : variables) setenv(variable.name, variable.value, 1);
    api().MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
    // A rank that fails must not wait for the others there.
    ::on_exit(
        [](int code, void*) {
          if (code == 0) the_world->FinishAtExit();
        },
        nullptr);
  }
  if (level < MPI_THREAD_SERIALIZED) {
    throw Failure(
        DTRUN_FAILED_PRECONDITION,
        !started_here
            ? std::string("the program has initialised MPI with ") + LevelText(level) +
                  ", so no other thread may call it; use MPI_Init_thread(MPI_THREAD_MULTIPLE), or let "
                  "dtrun initialise MPI"
            : "'" + library_.path + "' offers " + LevelText(level) +
                  " only; use an MPI that was built with support for threads");
  }
  serialized_ = level == MPI_THREAD_SERIALIZED;
  api().MPI_Comm_rank(api().comm_world, &rank_);
  api().MPI_Comm_size(api().comm_world, &size_);
  int* tag = nullptr;
  int found = 0;
  api().MPI_Comm_get_attr(api().comm_world, MPI_TAG_UB, &tag, &found);
  largest_tag_ = found != 0 ? *tag : 32767;  // what the standard promises
  combiners_.emplace(api());
  started_.store(true, std::memory_order_release);
  sdk::Log(*host_, "mpi")
      .Info(ShortVersion(library_.version) + " (" + library_.path + "), " + LevelText(level) +
            ", shared-memory collectives " + coll_sm_text);
}

// MPI_Finalize waits for all other processes, which is right at the end of a job that went
// well, and may be forever at the end of another. The plugin's instance, and the host that it served, are
// gone.
void World::FinishAtExit() {
  int finalized = 0;
  if (getpid() != process_of_the_world || stuck()) return;
  if (!api().MPI_Finalized.Try(&finalized) || finalized != 0) return;
  const bool shaken = shaken_.load(std::memory_order_acquire);
  std::packaged_task<void()> finalize([this] { api().MPI_Finalize.Try(); });
  const std::future<void> done = finalize.get_future();
  try {
    const sdk::BlockSignals block;
    std::thread(std::move(finalize)).detach();
  } catch (const std::system_error&) {
    return;  // no thread can be started: it ends unfinalized
  }
  if (shaken) return static_cast<void>(done.wait_for(kFarewell));
  done.wait();
}

}  // namespace dtrun::mpi_plugin
