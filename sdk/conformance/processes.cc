#include "processes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "own_process.h"

namespace dtrun::conformance {
namespace {

using Clock = std::chrono::steady_clock;

int FailuresSoFar() {
  return testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
}

[[noreturn]] void PlayRank(const BackendUnderTest& backend, const std::string& folder, int rank,
                           const ProcessBody& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  ClaimProcess();
  const int before = FailuresSoFar();
  {
    SCOPED_TRACE("rank " + std::to_string(rank) + ", a process");
    try {
      FolderKv kv(folder);
      const Subject subject(backend);
      body(subject, &kv, rank);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  std::fflush(nullptr);
  _exit(FailuresSoFar() > before ? 1 : 0);
}

// The processes of the ranks.
class Ranks {
 public:
  explicit Ranks(const Victim& victim) : victim_(victim) {}
  void Add(pid_t child) { children_.push_back({child}); }

  // Until all have ended; after `limit` they are killed.
  void Await(Clock::duration limit) {
    const auto deadline = Clock::now() + limit;
    while (Look() > 0) {
      if (Clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        continue;
      }
      for (std::size_t rank = 0; rank < children_.size(); ++rank) {
        if (children_[rank].ended) continue;
        ADD_FAILURE() << "rank " << rank << " did not end within "
                      << std::chrono::duration_cast<std::chrono::seconds>(limit).count()
                      << " s and was killed";
        kill(children_[rank].pid, SIGKILL);
      }
      while (Look() > 0) std::this_thread::yield();
      return;
    }
    for (std::size_t rank = 0; rank < children_.size(); ++rank) Judge(static_cast<int>(rank));
  }

 private:
  struct Child {
    pid_t pid;
    bool ended = false;
    int status = 0;
  };

  // How many run.
  std::size_t Look() {
    std::size_t running = 0;
    for (Child& child : children_) {
      int status = 0;
      if (!child.ended && waitpid(child.pid, &status, WNOHANG | WUNTRACED) == child.pid) {
        if (WIFSTOPPED(status)) {
          stopped_ = &child;
          stopped_at_ = Clock::now();
        } else {
          child.ended = true;
          child.status = status;
        }
      }
      running += child.ended ? 0 : 1;
    }
    const bool others_wait = victim_.pause.count() >= 0;
    if (stopped_ != nullptr && (others_wait ? Clock::now() >= stopped_at_ + victim_.pause : running == 1)) {
      kill(stopped_->pid, SIGCONT);
      stopped_ = nullptr;
    }
    return running;
  }

  void Judge(int rank) const {
    const int status = children_[static_cast<std::size_t>(rank)].status;
    if (rank == victim_.rank && victim_.killed) {
      if (!WIFSIGNALED(status)) ADD_FAILURE() << "rank " << rank << " was not killed";
      return;
    }
    if (WIFSIGNALED(status))
      ADD_FAILURE() << "the process of rank " << rank << " died of " << strsignal(WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
      ADD_FAILURE() << "rank " << rank << " has failed, see above";
  }

  const Victim victim_;
  std::vector<Child> children_;
  Child* stopped_ = nullptr;
  Clock::time_point stopped_at_;
};

// For the key-value space.
class Folder {
 public:
  Folder() {
    const char* const given = std::getenv("DTRUN_CONFORMANCE_FOLDER");  // the caller that sets it removes it
    const std::filesystem::path where = given == nullptr ? std::filesystem::temp_directory_path() : given;
    path_ = (where / "dtrun-conformance-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr)
      throw std::runtime_error("cannot make a folder '" + path_ + "'; set TMPDIR");
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

std::string ReasonAgainstProcesses(const BackendUnderTest& backend, int size) {
  if (backend.process.size > 0) return "the launcher would end the whole job";
  if (backend.most_ranks == 0 || size <= backend.most_ranks) return "";
  return "needs " + std::to_string(size) + " ranks, of which " + std::to_string(backend.most_ranks) +
         " are allowed";
}

void PlayInProcesses(const BackendUnderTest& backend, int size, const Victim& victim,
                     const ProcessBody& body) {
  const Folder folder;
  Ranks ranks(victim);
  std::fflush(nullptr);
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = fork();
    if (child == 0) PlayRank(backend, folder.path(), rank, body);
    EXPECT_GT(child, 0) << "fork for rank " << rank;
    if (child > 0) ranks.Add(child);
  }
  ranks.Await(kPatience);
}

}  // namespace dtrun::conformance
