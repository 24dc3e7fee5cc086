// Calls while a peer takes nothing: its process is stopped.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>

#include "own_process.h"
#include "suite.h"

namespace dtrun::conformance {
namespace {

constexpr std::size_t kPartBytes = 1 << 20;
constexpr std::uint32_t kParts = 32;  // more than a connection holds
constexpr auto kStoppedLimit = std::chrono::seconds(20);
// A send that needs its receiver does not complete, and owes nothing.
constexpr auto kCompletesAlone = std::chrono::milliseconds(20);

// How long rank 1 stays stopped after rank 0 has begun to destroy its communicator; 0: until rank 0 has
// started its operations, among them a collective.
using Late = std::chrono::seconds;

// One of two ranks, each in a process of its own; rank 1 is stopped when it has joined.
int PlayWithAStop(const BackendUnderTest& backend, const std::string& folder, int number, Late late) {
  const Subject subject(backend);
  FolderKv kv(folder);
  Outcome outcome;
  const std::unique_ptr<Rank> rank = subject.Join(&kv, number, 2, kPatience, &outcome);
  if (rank == nullptr) {
    std::cerr << "rank " << number << " could not join: " << outcome << std::endl;
    return 1;
  }
  if (number == 1) raise(SIGSTOP);
  rank->Await("stopped");
  std::vector<unsigned char> data(kParts * kPartBytes, static_cast<unsigned char>(7 - 7 * number));
  std::vector<std::unique_ptr<Pending>> pending;
  for (std::uint32_t tag = 0; tag < kParts; ++tag) {
    unsigned char* const part = data.data() + tag * kPartBytes;
    pending.push_back(rank->Start(number == 0 ? SendOp(part, kPartBytes, DTRUN_UINT8, 1, tag)
                                              : RecvOp(part, kPartBytes, DTRUN_UINT8, 0, tag)));
  }
  std::vector<float> values(kPartBytes, 1);
  if (late == Late(0) && Has(subject.Caps().ops, DTRUN_ALLREDUCE)) {
    pending.push_back(
        rank->Start(AllreduceOp(values.data(), values.data(), values.size(), DTRUN_FLOAT32, DTRUN_SUM)));
  }
  if (number == 0) {
    rank->Tell("started");
    for (const auto& one : pending) {
      if (one != nullptr) one->Wait(kCompletesAlone);
    }
    rank->Tell("leaves");
  }
  bool ok = true;
  for (const auto& one : pending) {
    outcome = one == nullptr ? Outcome{DTRUN_INTERNAL, -1, "it did not start"} : one->Wait();
    if (!outcome.ok()) std::cerr << "rank " << number << ": " << outcome << std::endl;
    ok = ok && outcome.ok();
  }
  pending.clear();
  if (data != std::vector<unsigned char>(data.size(), 7)) {
    std::cerr << "rank " << number << " received other bytes" << std::endl;
    ok = false;
  }
  return ok ? 0 : 1;
}

pid_t StartRank(const BackendUnderTest& backend, const std::string& folder, int number, Late late) {
  const pid_t child = fork();
  if (child != 0) return child;
  ClaimProcess();
  int code = 1;
  try {
    code = PlayWithAStop(backend, folder, number, late);
  } catch (const std::exception& error) {
    std::cerr << "rank " << number << ": " << error.what() << std::endl;
  }
  _exit(code);
}

// The exit code of a child, which is killed when it has none in time: -1.
int CodeOf(pid_t child, std::chrono::steady_clock::time_point deadline) {
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) kill(child, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void APeerIsStopped(const BackendUnderTest& backend, Late late) {
  const char* const given = std::getenv("DTRUN_CONFORMANCE_FOLDER");  // the caller that sets it removes it
  const std::filesystem::path where = given == nullptr ? std::filesystem::temp_directory_path() : given;
  std::string folder = (where / "dtrun-conformance-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const pid_t children[] = {StartRank(backend, folder, 0, late), StartRank(backend, folder, 1, late)};
  int status = 0;
  const bool stopped = waitpid(children[1], &status, WUNTRACED) == children[1] && WIFSTOPPED(status);
  EXPECT_TRUE(stopped) << "rank 1 has ended";
  if (stopped) {
    FolderKv kv(folder);
    kv.Set("suite/stopped", "told");
    EXPECT_TRUE(kv.WaitFor({"suite/started"}, std::chrono::steady_clock::now() +
                                                  std::min<nanoseconds>(kStoppedLimit, kPatience)))
        << "enqueue waits for a peer that takes nothing, because its process is stopped (B6)";
    if (late > Late(0)) {
      EXPECT_TRUE(kv.WaitFor({"suite/leaves"}, std::chrono::steady_clock::now() + kPatience));
      std::this_thread::sleep_for(late);  // the point of the case is that this time passes
    }
    kill(children[1], SIGCONT);
  }
  const auto deadline = std::chrono::steady_clock::now() + (stopped ? kPatience : nanoseconds(0));
  EXPECT_EQ(CodeOf(children[0], deadline), 0) << "of rank 0, when rank 1 was stopped for a while";
  if (stopped) {
    EXPECT_EQ(CodeOf(children[1], deadline), 0) << "of rank 1, which was stopped for a while";
  }
  std::filesystem::remove_all(folder);
}

}  // namespace

void AddStoppedCases(const BackendUnderTest& backend) {
  const auto stop_for = [=](Late late) {
    if (backend.process.size != 0) GTEST_SKIP() << "the launcher's processes are not the suite's to stop";
    if (backend.most_ranks == 1) GTEST_SKIP() << "needs 2 ranks, of which 1 is allowed";
    APeerIsStopped(backend, late);
  };
  AddCase("Requests", "OfMessagesStartWhileAPeerIsStopped", "B6", backend, [=] { stop_for(Late(0)); });
  AddCase("Messages", "ReachARankThatWasStopped", "B21", backend,
          [=] { stop_for(Late(backend.wide ? 8 : 2)); });
}

}  // namespace dtrun::conformance
