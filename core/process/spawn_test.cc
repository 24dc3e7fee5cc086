#include "core/process/spawn.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>

#include "core/process/testing.h"

namespace dtrun::process {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

SpawnRequest Shell(const std::string& script) {
  SpawnRequest request;
  request.rank = 3;
  request.argv = {"/bin/sh", "-c", script};
  request.env = {"PATH=/usr/bin:/bin", "COLOUR=blue"};
  request.cwd = "/";
  return request;
}

struct Finished {
  std::string out;
  int status = -1;
};

// Reads stdout to its end and reaps.
Finished Finish(Child& child) {
  Finished finished;
  char buffer[4096];
  for (;;) {
    pollfd wait{child.out.get(), POLLIN, 0};
    ::poll(&wait, 1, -1);
    const ssize_t size = ::read(child.out.get(), buffer, sizeof buffer);
    if (size == 0) break;
    if (size > 0) finished.out.append(buffer, static_cast<std::size_t>(size));
  }
  ::waitpid(child.pid, &finished.status, 0);
  return finished;
}

Finished RunShell(const std::string& script) {
  Result<Child> child = Spawn(Shell(script));
  if (!child) {
    ADD_FAILURE() << child.error().text;
    return {};
  }
  return Finish(*child);
}

std::string ErrorOf(const SpawnRequest& request) {
  Result<Child> child = Spawn(request);
  if (child) {
    ::waitpid(child->pid, nullptr, 0);
    return "";
  }
  return child.error().text;
}

std::string MakeFile(const testing::ScratchDir& dir, const std::string& content, mode_t mode) {
  std::string path = dir / "train";
  std::ofstream(path) << content;
  ::chmod(path.c_str(), mode);
  return path;
}

TEST(Spawn, GivesExactlyTheEnvironmentAndTheFolder) {
  EXPECT_EQ(RunShell("echo $COLOUR $HOME $PWD").out, "blue /\n");
}

TEST(Spawn, MakesTheChildLeaderOfItsOwnProcessGroup) {
  Result<Child> child = Spawn(Shell("read never < /dev/null; kill -STOP $$"));
  ASSERT_TRUE(child);
  EXPECT_EQ(::getpgid(child->pid), child->pid);
  ::kill(child->pid, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(Finish(*child).status));
}

TEST(Spawn, LooksUpABareNameInThePathOfTheChild) {
  testing::ScratchDir dir;
  MakeFile(dir, "#!/bin/sh\necho found\n", 0755);
  SpawnRequest request = Shell("");
  request.argv = {"train"};
  request.env = {"PATH=/nowhere:" + dir.path().string()};
  Result<Child> child = Spawn(request);
  ASSERT_TRUE(child) << child.error().text;
  EXPECT_EQ(Finish(*child).out, "found\n");
}

TEST(Spawn, ResetsIgnoredSignalsAndTheMask) {
  ::signal(SIGUSR1, SIG_IGN);
  sigset_t usr2, before;
  ::sigemptyset(&usr2);
  ::sigaddset(&usr2, SIGUSR2);
  ::sigprocmask(SIG_BLOCK, &usr2, &before);
  const std::string status = RunShell("grep -E '^Sig(Blk|Ign)' /proc/self/status").out;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  ::signal(SIGUSR1, SIG_DFL);
  EXPECT_EQ(status, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST(Spawn, LeaksNoDescriptor) {
  UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  UniqueFd leaky(::fcntl(null.get(), F_DUPFD, 50));  // deliberately without close-on-exec
  const std::string look =
      "[ -e /proc/$$/fd/" + std::to_string(leaky.get()) + " ] && echo leaked; echo looked";
  EXPECT_EQ(RunShell(look).out, "looked\n");
}

TEST(Spawn, ConnectsStdinToNothingByDefault) {
  EXPECT_EQ(RunShell("readlink /proc/self/fd/0").out, "/dev/null\n");
}

TEST(Spawn, GivesTheStdinAsked) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd reader(ends[0]), writer(ends[1]);
  ASSERT_EQ(::write(writer.get(), "hello", 5), 5);
  writer.Reset();
  SpawnRequest request = Shell("cat");
  request.stdin_fd = reader.get();
  Result<Child> child = Spawn(request);
  ASSERT_TRUE(child);
  EXPECT_EQ(Finish(*child).out, "hello");
}

TEST(Spawn, RestoresTheLimitOfOpenFiles) {
  SpawnRequest request = Shell("ulimit -n");
  request.open_files = 77;
  Result<Child> child = Spawn(request);
  ASSERT_TRUE(child);
  EXPECT_EQ(Finish(*child).out, "77\n");
}

TEST(Spawn, BindsToTheCpusAsked) {
  SpawnRequest request = Shell("grep Cpus_allowed_list /proc/self/status");
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  int first = 0;
  while (!CPU_ISSET(first, &allowed)) ++first;
  request.binding = std::to_string(first);
  Result<Child> child = Spawn(request);
  ASSERT_TRUE(child) << child.error().text;
  EXPECT_EQ(Finish(*child).out, "Cpus_allowed_list:\t" + std::to_string(first) + "\n");
}

TEST(Spawn, RefusesACpuListThatIsNone) {
  for (const char* list : {"x", "1-", "3-1", "1,,2", "99999", "-1"}) {
    SpawnRequest request = Shell("");
    request.binding = list;
    EXPECT_THAT(ErrorOf(request), AllOf(HasSubstr("rank 3"), HasSubstr(list))) << list;
  }
}

TEST(Spawn, KillsTheChildWhenItsParentDies) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd reader(ends[0]), writer(ends[1]);
  const pid_t parent = ::fork();
  if (parent == 0) {
    Result<Child> child = Spawn(Shell("exec sleep 1000"));
    const pid_t pid = child ? child->pid : -1;
    if (::write(writer.get(), &pid, sizeof pid) != sizeof pid) ::_exit(1);
    ::pause();
  }
  pid_t pid = -1;
  ASSERT_EQ(::read(reader.get(), &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
  ASSERT_GT(pid, 0);
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  EXPECT_TRUE(testing::Eventually([&] {
    const auto process = ReadProcess(pid);
    return !process || process->state == 'Z';
  }));
  KillDescendants(std::chrono::seconds(10));  // reaps it if this process inherited it
}

TEST(Spawn, NamesRankCommandAndPlaceWhenThereIsNoSuchFile) {
  SpawnRequest request = Shell("");
  request.argv = {"./train"};
  request.cwd = "/tmp";
  EXPECT_THAT(ErrorOf(request), AllOf(StartsWith("rank 3: cannot run './train': no such file or directory"),
                                      HasSubstr("looked in '/tmp'")));
}

TEST(Spawn, SaysWhereItLookedForABareName) {
  testing::ScratchDir dir;
  MakeFile(dir, "#!/bin/sh\n", 0755);
  SpawnRequest request = Shell("");
  request.argv = {"train"};
  EXPECT_THAT(ErrorOf(request), HasSubstr("looked in PATH: /usr/bin:/bin"));
  request.cwd = dir.path().string();
  EXPECT_THAT(ErrorOf(request), HasSubstr("'./train'"));
}

TEST(Spawn, SaysHowToMakeAFileExecutable) {
  testing::ScratchDir dir;
  SpawnRequest request = Shell("");
  request.argv = {MakeFile(dir, "#!/bin/sh\n", 0644)};
  EXPECT_THAT(ErrorOf(request), HasSubstr("not executable; run: chmod +x"));
}

TEST(Spawn, AsksForAFirstLineInAScriptWithoutOne) {
  testing::ScratchDir dir;
  SpawnRequest request = Shell("");
  request.argv = {MakeFile(dir, "echo hello\n", 0755)};
  EXPECT_THAT(ErrorOf(request), AllOf(HasSubstr("exec format error"), HasSubstr("#!/bin/sh")));
}

TEST(Spawn, NamesAMissingInterpreter) {
  testing::ScratchDir dir;
  SpawnRequest request = Shell("");
  request.argv = {MakeFile(dir, "#!/nowhere/python3\n", 0755)};
  EXPECT_THAT(ErrorOf(request), HasSubstr("interpreter '/nowhere/python3' does not exist"));
  MakeFile(dir, "#!/bin/sh\r\n", 0755);
  EXPECT_THAT(ErrorOf(request),
              AllOf(HasSubstr("'/bin/sh'"), HasSubstr("carriage return"), Not(HasSubstr("\r"))));
}

TEST(Spawn, RefusesAFolderAndAnEmptyCommand) {
  SpawnRequest request = Shell("");
  request.argv = {"/tmp"};
  EXPECT_THAT(ErrorOf(request), HasSubstr("it is a folder"));
  request.argv = {};
  EXPECT_THAT(ErrorOf(request), HasSubstr("empty command"));
}

TEST(Spawn, NamesAMissingWorkingDirectory) {
  SpawnRequest request = Shell("");
  request.cwd = "/nowhere/at/all";
  EXPECT_THAT(ErrorOf(request), AllOf(HasSubstr("rank 3"), HasSubstr("working directory '/nowhere/at/all'")));
}

TEST(Spawn, HandsOnOneMoreDescriptor) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd read(ends[0]), write(ends[1]);
  ASSERT_EQ(::write(write.get(), "given\n", 6), 6);
  SpawnRequest request = Shell("ls /proc/self/fd | tr '\\n' ' '; head -c 6 <&3");
  request.extra_fd = read.get();
  Result<Child> child = Spawn(request);
  ASSERT_TRUE(child) << child.error().text;
  // `ls` also shows the folder that it has opened.
  EXPECT_EQ(Finish(*child).out, "0 1 2 3 4 given\n");
}

TEST(Spawn, LeavesNoChildBehindWhenItFails) {
  SpawnRequest request = Shell("");
  request.argv = {"/nowhere/train"};
  EXPECT_NE(ErrorOf(request), "");
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace dtrun::process
