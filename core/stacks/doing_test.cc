#include "core/stacks/doing.h"

#include <gmock/gmock.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "core/stacks/kernel.h"
#include "core/stacks/memory.h"
#include "core/stacks/symbol.h"

namespace dtrun::stacks {
namespace {

using ::testing::HasSubstr;

class DoingTest : public ::testing::Test {
 protected:
  ~DoingTest() override {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    std::filesystem::remove_all(folder_);
  }

  void Fork(const std::function<void()>& act) {
    child_ = ::fork();
    if (child_ != 0) return;
    act();
    ::_exit(1);
  }

  // The first Python that is tried here; false: there is none.
  bool Python(const std::string& script) {
    for (const char* python : {"/usr/bin/python3.11", "/usr/local/bin/python3.11"}) {
      if (::access(python, X_OK) != 0) continue;
      std::string name = "/tmp/dtrun-doing-XXXXXX";
      if (::mkdtemp(name.data()) == nullptr) return false;
      folder_ = name;
      std::ofstream(folder_ / "train.py") << script;
      Fork([&] { ::execl(python, python, (folder_ / "train.py").c_str(), nullptr); });
      return true;
    }
    return false;
  }

  Doing Until(const std::function<bool(const Doing&)>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    Doing doing = LookAt(child_, {});
    while (!condition(doing) && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      doing = LookAt(child_, {});
    }
    return doing;
  }

  pid_t child_ = 0;
  std::filesystem::path folder_;
};

TEST_F(DoingTest, SaysInWhichCallAProgramSleeps) {
  Fork([] { ::sleep(1000); });
  const Doing doing = Until([](const Doing& seen) { return !seen.what.empty(); });
  EXPECT_THAT(doing.what, HasSubstr("nanosleep"));
  EXPECT_EQ(doing.stand, Stand::kElsewhere);
}

TEST_F(DoingTest, NamesTheDescriptorThatIsRead) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Fork([&] {
    char byte = 0;
    while (::read(ends[0], &byte, 1) < 0) {
    }
  });
  const Doing doing = Until([](const Doing& seen) { return seen.what.starts_with("read"); });
  EXPECT_EQ(doing.what, "read of descriptor " + std::to_string(ends[0]) + " (a pipe)");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(DoingTest, LooksAtAProcessThatIsStopped) {
  Fork([] {
    for (;;) ::pause();
  });
  ::kill(child_, SIGSTOP);
  const Doing doing = Until([](const Doing& seen) { return seen.stopped; });
  EXPECT_TRUE(doing.stopped);
  EXPECT_EQ(doing.stand, Stand::kElsewhere);
  EXPECT_THAT(PhraseOf(doing), HasSubstr("stopped"));
}

TEST_F(DoingTest, SaysNothingOfAProcessThatIsGone) {
  const Doing doing = LookAt(1 << 30, {});
  EXPECT_EQ(doing.stand, Stand::kUnknown);
  EXPECT_EQ(PhraseOf(doing), "at a place that is not known");
}

TEST_F(DoingTest, ReadsThePlaceOfAPython) {
  if (!Python("import time\ndef main():\n    time.sleep(1000)\nmain()\n"))
    GTEST_SKIP() << "no CPython 3.11 here";
  const Doing doing = Until([](const Doing& seen) { return seen.what == "time.sleep"; });
  EXPECT_EQ(PhraseOf(doing), "in time.sleep at train.py:3");
  EXPECT_THAT(doing.text, HasSubstr("train.py\", line 3, in main\n"));
  EXPECT_THAT(doing.text, HasSubstr("train.py\", line 4, in <module>\n"));
}

TEST_F(DoingTest, NamesTheThreadThatKeepsPythonsLock) {
  if (!Python("import ctypes, threading\n"
              "def keep():\n"
              "    ctypes.PyDLL(None).sleep(1000)\n"
              "threading.Thread(target=keep).start()\n"
              "while True: pass\n")) {
    GTEST_SKIP() << "no CPython 3.11 here";
  }
  const Doing doing = Until([](const Doing& seen) { return seen.more.find("keeps") != std::string::npos; });
  EXPECT_THAT(doing.more, HasSubstr("keeps Python's lock, in sleep at train.py:3"));
  EXPECT_EQ(doing.stand, Stand::kElsewhere);
}

TEST(Symbol, IsFoundInTheProcessItself) {
  std::ifstream maps("/proc/self/maps");
  std::uint64_t base = 0;
  for (std::string line; base == 0 && std::getline(maps, line);) {
    if (line.find("/libc.so.6") != std::string::npos) base = std::stoull(line, nullptr, 16);
  }
  ASSERT_NE(base, 0u);
  EXPECT_EQ(FindSymbol(ProcessMemory(::getpid()), base, "gnu_get_libc_version"),
            reinterpret_cast<std::uint64_t>(&gnu_get_libc_version));
  EXPECT_EQ(FindSymbol(ProcessMemory(::getpid()), base, "no_such_symbol_of_c"), 0u);
  EXPECT_EQ(FindSymbol(ProcessMemory(::getpid()), base + 4096, "gnu_get_libc_version"), 0u);
  EXPECT_EQ(FindSymbol(ProcessMemory(::getpid()), 0, "gnu_get_libc_version"), 0u);
}

TEST(UsedBy, CountsProcessorTime) {
  const Used before = UsedBy(::getpid());
  const auto begin = std::chrono::steady_clock::now();
  while (UsedBy(::getpid()).processor_ms < before.processor_ms + 30) {
    ASSERT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  }
}

}  // namespace
}  // namespace dtrun::stacks
