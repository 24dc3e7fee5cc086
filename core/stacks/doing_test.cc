#include "core/stacks/doing.h"

#include <gmock/gmock.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "core/stacks/kernel.h"
#include "core/stacks/memory.h"

namespace dtrun::stacks {
namespace {

using ::testing::HasSubstr;

// The interpreter itself, if a script wraps it (pyenv); empty if there is none.
std::string RealPython(const std::string& file) {
  if (::access(file.c_str(), X_OK) != 0) return {};
  const std::string command =
      file + " -c 'import os; print(os.path.realpath(\"/proc/self/exe\"))' 2>/dev/null";
  std::FILE* const out = ::popen(command.c_str(), "r");
  std::array<char, 4096> line{};
  if (out != nullptr && std::fgets(line.data(), line.size(), out) == nullptr) line[0] = '\0';
  if (out != nullptr) ::pclose(out);
  const std::string text = line.data();
  return text.substr(0, text.find('\n'));
}

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

  // Runs it in the installed Python of that version; false: there is none.
  bool Python(const std::string& version, const std::string& script) {
    std::string folders = "/usr/bin:/usr/local/bin";
    if (const char* path = ::getenv("PATH")) folders += ":" + std::string(path);
    if (const char* home = ::getenv("HOME")) {
      std::error_code none;
      for (const auto& one :
           std::filesystem::directory_iterator(std::string(home) + "/.pyenv/versions", none))
        folders += ":" + (one.path() / "bin").string();
    }
    std::istringstream all(folders);
    for (std::string folder; std::getline(all, folder, ':');) {
      const std::string python = RealPython(folder + "/python" + version);
      if (python.empty()) continue;
      std::string name = "/tmp/dtrun-doing-XXXXXX";
      if (folder_.empty()) folder_ = ::mkdtemp(name.data());
      std::ofstream(folder_ / "train.py") << script;
      Fork([&] { ::execl(python.c_str(), python.c_str(), (folder_ / "train.py").c_str(), nullptr); });
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

TEST_F(DoingTest, TellsANapFromALongSleep) {
  for (const bool absolute : {false, true}) {
    for (const bool naps : {true, false}) {
      Fork([=] {
        for (;;) {
          timespec time{naps ? 0 : 1000, 990'000'000};
          timespec now{};
          if (absolute) ::clock_gettime(CLOCK_MONOTONIC, &now);
          time.tv_sec += now.tv_sec;
          ::clock_nanosleep(CLOCK_MONOTONIC, absolute ? TIMER_ABSTIME : 0, &time, nullptr);
        }
      });
      const Doing doing = Until([&](const Doing& seen) { return seen.what == "clock_nanosleep"; });
      EXPECT_EQ(doing.naps, naps) << absolute;
      EXPECT_EQ(doing.stand, naps ? Stand::kMayWait : Stand::kElsewhere);
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
  }
  child_ = -1;
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

class PythonTest : public DoingTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(PythonTest, ReadsItsPlace) {
  if (!Python(GetParam(), "import time\ndef main():\n    time.sleep(1000)\nmain()\n"))
    GTEST_SKIP() << "no CPython " << GetParam() << " here";
  const Doing doing = Until([](const Doing& seen) { return seen.what == "time.sleep"; });
  EXPECT_EQ(PhraseOf(doing), "in time.sleep at train.py:3");
  EXPECT_THAT(doing.text, HasSubstr("train.py\", line 3, in main\n"));
  EXPECT_THAT(doing.text, HasSubstr("train.py\", line 4, in <module>\n"));
}

// Functions called from C, for example by sorting, have interpreter frames between them.
TEST_P(PythonTest, ReadsThroughFramesOfC) {
  if (!Python(GetParam(),
              "import time\ndef kéy(x):\n    time.sleep(1000)\ndef main():\n    sorted([1, 2], "
              "key=kéy)\nmain()\n"))
    GTEST_SKIP() << "no CPython " << GetParam() << " here";
  const Doing doing = Until([](const Doing& seen) { return seen.what == "time.sleep"; });
  EXPECT_EQ(PhraseOf(doing), "in time.sleep at train.py:3");
  EXPECT_THAT(doing.text, HasSubstr("line 3, in kéy\n"));
  EXPECT_THAT(doing.text, HasSubstr("line 5, in main\n"));
  EXPECT_THAT(doing.text, HasSubstr("line 6, in <module>\n"));
}

TEST_P(PythonTest, NamesTheThreadThatKeepsItsLock) {
  if (!Python(GetParam(),
              "import ctypes, threading\n"
              "def keep():\n"
              "    ctypes.PyDLL(None).sleep(1000)\n"
              "threading.Thread(target=keep).start()\n"
              "while True: pass\n")) {
    GTEST_SKIP() << "no CPython " << GetParam() << " here";
  }
  const Doing doing = Until(
      [](const Doing& seen) { return seen.more.find("keeps Python's lock, in sleep") != std::string::npos; });
  EXPECT_THAT(doing.more, HasSubstr("keeps Python's lock, in sleep at train.py:3"));
  EXPECT_EQ(doing.stand, Stand::kElsewhere);
}

TEST_P(PythonTest, NamesTheThreadThatTheExitWaitsFor) {
  if (!Python(GetParam(),
              "import threading, time\nthreading.Thread(target=lambda: time.sleep(1000)).start()\n"))
    GTEST_SKIP() << "no CPython " << GetParam() << " here";
  const auto exits = [](const Doing& seen) {
    return PhraseOf(seen).starts_with("in the wait for its threads at exit") &&
           seen.beside == "a thread is in time.sleep at train.py:2";
  };
  const Doing doing = Until(exits);
  EXPECT_TRUE(exits(doing)) << PhraseOf(doing) << ": " << doing.beside;
  EXPECT_EQ(doing.stand, Stand::kElsewhere);
}

TEST_P(PythonTest, NamesTheThreadOfAFutureThatItWaitsFor) {
  if (!Python(GetParam(),
              "import concurrent.futures, time\ndef work():\n  time.sleep(1000)\n"
              "concurrent.futures.ThreadPoolExecutor().submit(work).result()\n"))
    GTEST_SKIP() << "no CPython " << GetParam() << " here";
  const auto waits = [](const Doing& seen) {
    return PhraseOf(seen) == "in concurrent.futures.Future.result at train.py:4" &&
           seen.beside == "a thread is in time.sleep at train.py:3";
  };
  const Doing doing = Until(waits);
  EXPECT_TRUE(waits(doing)) << PhraseOf(doing) << ": " << doing.beside;
}

TEST_P(PythonTest, TakesASocketsRecvInAThreadForNoWaitForRanks) {
  if (!Python(GetParam(),
              "import concurrent.futures, socket\nend, other = socket.socketpair()\n"
              "concurrent.futures.ThreadPoolExecutor().submit(lambda: end.recv(1)).result()\n"))
    GTEST_SKIP() << "no CPython " << GetParam() << " here";
  const auto waits = [](const Doing& seen) {
    return seen.what == "concurrent.futures.Future.result" &&
           seen.beside == "a thread is in end.recv at train.py:3";
  };
  const Doing doing = Until(waits);
  EXPECT_TRUE(waits(doing)) << PhraseOf(doing) << ": " << doing.beside;
  EXPECT_EQ(doing.stand, Stand::kElsewhere);
}

TEST_P(PythonTest, WaitsForRanksInTheThreadThatItWaitsFor) {
  std::string root = "/tmp/dtrun-package-XXXXXX";
  ASSERT_NE(::mkdtemp(root.data()), nullptr);
  const std::string packages = root + "/site-packages";
  std::filesystem::create_directories(packages + "/horovod/common");
  std::ofstream(packages + "/horovod/common/ops.py") << "def all_reduce(lock):\n  lock.acquire()\n";
  for (const char* folder : {"/horovod", "/horovod/common"})
    std::ofstream(packages + folder + "/__init__.py");
  for (const std::string work : {"dist.all_reduce(lock)", "threading.Event().wait()"}) {
    const std::string script = "import concurrent.futures, sys, threading\nsys.path[0:0] = ['" + packages +
                               "']\nfrom horovod.common import ops as dist\nlock = "
                               "threading.Lock(); lock.acquire()\n"
                               "def work():\n  " +
                               work + "\nconcurrent.futures.ThreadPoolExecutor().submit(work).result()\n";
    if (!Python(GetParam(), script)) break;
    const auto waits = [&](const Doing& seen) {
      return seen.what == "concurrent.futures.Future.result" && seen.beside.ends_with(" at train.py:6") &&
             (seen.stand == Stand::kWaits) == work.starts_with("dist");
    };
    const Doing doing = Until(waits);
    EXPECT_TRUE(waits(doing)) << work << ": " << PhraseOf(doing) << ": " << doing.beside;
    ::kill(child_, SIGKILL);
    ::waitpid(std::exchange(child_, -1), nullptr, 0);
  }
  std::filesystem::remove_all(root);
}

TEST_P(PythonTest, KnowsForWhomACallOfTorchWaits) {
  std::string root = "/tmp/dtrun-package-XXXXXX";
  const std::string folder = ::mkdtemp(root.data()) + std::string("/site-packages/torch/distributed");
  std::filesystem::create_directories(folder);
  for (const char* package : {"/__init__.py", "/../__init__.py"}) std::ofstream(folder + package);
  std::ofstream(folder + "/distributed_c10d.py")
      << "import threading\nlock = threading.Lock(); lock.acquire()\nclass Group: pass\ngroup = Group()\n"
         "_pg_group_ranks = {Group(): {0: 0}, group: {3: 0, 0: 1, 5: 2, 10**8: 3}}\n"
         "def all_reduce(tensor, group=None):\n  lock.acquire()\n"
         "def recv(tensor, src=None, group=None):\n  lock.acquire()\n";
  const auto awaited = [&](const std::string& call) -> std::optional<std::vector<int>> {
    const std::string import = "import sys; sys.path[0:0] = ['" + root + "/site-packages']\n";
    if (!Python(GetParam(), import + "import torch.distributed.distributed_c10d as dist; " + call + "\n"))
      return std::vector<int>{-1};
    const Doing doing = Until([](const Doing& seen) { return seen.stand == Stand::kWaits; });
    ::kill(child_, SIGKILL);
    ::waitpid(std::exchange(child_, -1), nullptr, 0);
    return doing.awaited;
  };
  const auto sender = awaited("dist.recv(1, 7)").value_or(std::vector<int>());
  if (sender == std::vector<int>{-1}) GTEST_SKIP() << "no CPython " << GetParam() << " here";
  EXPECT_EQ(sender, std::vector<int>{7});
  EXPECT_EQ(awaited("dist.all_reduce(1, dist.group)"), (std::vector<int>{3, 0, 5}));
  EXPECT_EQ(awaited("dist.all_reduce(1)"), std::nullopt);
  std::filesystem::remove_all(root);
}

INSTANTIATE_TEST_SUITE_P(Versions, PythonTest, ::testing::Values("3.11", "3.12", "3.13"),
                         [](const auto& version) {
                           return "Python3_" + std::string(version.param).substr(2);
                         });

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

// A process with one thread, of this name, that reads all the time.
class Reader {
 public:
  explicit Reader(const std::string& name) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    std::thread([name] {
      ::pthread_setname_np(::pthread_self(), name.c_str());
      std::ifstream zeros("/dev/zero", std::ios::binary);
      std::array<char, 1 << 16> block{};
      while (zeros.read(block.data(), block.size()))
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }).detach();
    for (;;) ::pause();
  }
  ~Reader() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  pid_t pid() const { return pid_; }
  // Waits until it has read for a while, under its name.
  void Await() const {
    const std::int64_t before = All();
    const auto begin = std::chrono::steady_clock::now();
    while (All() < before + (std::int64_t{20} << 16)) {
      ASSERT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

 private:
  std::int64_t All() const {
    std::ifstream io("/proc/" + std::to_string(pid_) + "/io");
    std::string name;
    std::int64_t value = 0;
    io >> name >> value;
    return value;
  }

  pid_t pid_ = -1;
};

TEST(UsedBy, CountsMemoryThatIsThere) {
  const Used before = UsedBy(::getpid());
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  const std::vector<char> memory(kBytes, 'x');
  EXPECT_GT(UsedBy(::getpid()).resident, before.resident + static_cast<std::int64_t>(kBytes / 2));
  EXPECT_EQ(memory.back(), 'x');
}

TEST(NetworkBytes, AreOfAllInterfacesButLoopback) {
  EXPECT_EQ(
      NetworkBytes("Inter-|   Receive                                                |  Transmit\n"
                   " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets\n"
                   "    lo: 9000 10 0 0 0 0 0 0 9000 10 0 0 0 0 0 0\n"
                   "  eth0: 1000 10 0 0 0 0 0 0 200 10 0 0 0 0 0 0\n"
                   "eth1:30 1 0 0 0 0 0 0 4 1 0 0 0 0 0 0\n"),
      1234);
  EXPECT_EQ(NetworkBytes("eth0: 1 2"), 0);
}

TEST(UsedBy, CountsBytesOfAnyThread) {
  const Reader reader("loader");
  reader.Await();
  const Used before = UsedBy(reader.pid());
  reader.Await();
  EXPECT_GT(UsedBy(reader.pid()).bytes, before.bytes);
}

TEST(UsedBy, IgnoresBytesOfTorchsStoreServer) {
  const Reader reader("pt_tcpstore_uv");
  reader.Await();
  const Used before = UsedBy(reader.pid());
  reader.Await();
  EXPECT_EQ(UsedBy(reader.pid()).bytes, before.bytes);
}

}  // namespace
}  // namespace dtrun::stacks
