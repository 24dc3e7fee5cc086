// Ends the test program when ranks hang: a backend's call may never return, and no thread can be stopped.
//
// Subject::PlayWithoutJoining owns one for each set of ranks that it runs as threads. Enter and Leave are
// called by a rank's thread, Await by the thread that started the ranks, Doing by any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <vector>

#include "dtrun/abi.h"

namespace dtrun::conformance {

// How long one set of ranks may take: DTRUN_CONFORMANCE_TIMEOUT in seconds, else 120.
std::chrono::seconds RankTimeLimit();

class RankWatch {
 public:
  RankWatch(std::string name, int ranks);

  // The calling thread plays `rank`.
  void Enter(int rank);
  // It has returned.
  void Leave(int rank);
  // Notes what the calling thread's rank does; nothing on a thread that plays none. `op` may be null: it
  // goes on with its last operation.
  static void Doing(const char* action, const dtrun_op* op);

  // Returns when all ranks have left. After `limit` it says what each rank was doing, to the listener if
  // there is one, else on stderr, and ends the process with exit code 1.
  void Await(std::chrono::seconds limit);

  // `rank` has thrown, for which the others may wait. Of several at once one ends the process, with its
  // error.
  [[noreturn]] static void EndProcess(int rank, const std::exception& error);

  // Set before any case runs.
  using Listener = void (*)(const std::string& text);
  static void ListenForHangs(Listener listener);

 private:
  struct Rank {
    bool left = false;
    const char* action = "joins the communicator";
    bool has_op = false;
    dtrun_op op;
  };

  const std::string name_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Rank> ranks_;
};

}  // namespace dtrun::conformance
