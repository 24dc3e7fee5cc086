#include "core/stacks/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "core/base/read_file.h"

namespace dtrun::stacks {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::map<std::string, std::string> Now(pid_t pid, const std::vector<std::string>& names) {
  const ProcessMemory memory(pid);
  return EnvironmentNow(memory, ReadKernelFile("/proc/" + std::to_string(pid) + "/maps"), names);
}

class EnvironmentNowTest : public ::testing::Test {
 protected:
  // Returns after the child has run `act`.
  template <class Act>
  void Fork(const Act& act) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    child_ = ::fork();
    if (child_ == 0) {
      act(ready[1]);
      ::_exit(1);
    }
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
  }
  ~EnvironmentNowTest() override {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  pid_t child_ = 0;
};

TEST_F(EnvironmentNowTest, HasWhatTheProgramHasSetSinceItsStart) {
  Fork([](int ready) {
    ::setenv("MASTER_PORT", "12355", 1);
    ::setenv("MASTER_ADDR", std::string(5000, 'x').c_str(), 1);
    ::unsetenv("RANK");
    [[maybe_unused]] const ssize_t told = ::write(ready, "r", 1);
    for (;;) ::pause();
  });
  EXPECT_THAT(Now(child_, {"MASTER_PORT", "RANK"}), ElementsAre(Pair("MASTER_PORT", "12355")));
  EXPECT_EQ(Now(child_, {"MASTER_ADDR"})["MASTER_ADDR"], std::string(256, 'x'));
  EXPECT_THAT(Now(child_, {}), IsEmpty());
}

TEST_F(EnvironmentNowTest, HasWhatAPythonProgramHasSet) {
  if (::access("/usr/bin/python3", X_OK) != 0) GTEST_SKIP() << "there is no /usr/bin/python3";
  Fork([](int ready) {
    ::dup2(ready, STDOUT_FILENO);
    ::execl("/usr/bin/python3", "python3", "-c",
            "import os, time; os.environ['RANK'] = '7'; print('r', flush=True); time.sleep(1000)", nullptr);
  });
  EXPECT_THAT(Now(child_, {"RANK"}), ElementsAre(Pair("RANK", "7")));
}

TEST_F(EnvironmentNowTest, IsEmptyWhereNothingCanBeRead) {
  const ProcessMemory none(0);
  EXPECT_THAT(EnvironmentNow(none, "55d0-55d1 r--p 00000000 fe:00 1 /bin/x\n\nx", {"RANK"}), IsEmpty());
}

}  // namespace
}  // namespace dtrun::stacks
