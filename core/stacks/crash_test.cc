#include "core/stacks/crash.h"

#include <gtest/gtest.h>
#include <stdlib.h>  // mkdtemp

#include <fstream>
#include <string>

#include "core/base/text.h"

namespace dtrun::stacks {
namespace {

namespace fs = std::filesystem;

// What Open MPI 4.1 prints.
constexpr char kPrinted[] =
    "[node1:04711] *** Process received signal ***\n"
    "[node1:04711] Signal: Segmentation fault (11)\n"
    "[node1:04711] [ 0] /lib/x86_64-linux-gnu/libc.so.6(+0x3c050)[0x7f0]\n"
    "[node1:04711] [ 1] /lib/x86_64-linux-gnu/libc.so.6(memcpy+0x12)[0x7f1]\n"
    "[node1:04711] [ 2] ./a train(step+0x1d)[0x55d0c0de1198]\n"
    "[node1:04711] [ 3] ./a train() [0x401136]\n"
    "[node1:04711] *** End of error message ***\n";

TEST(PrintedStack, HasModulesSymbolsAndOffsets) {
  const std::vector<PrintedFrame> frames = PrintedStack(LinesOf(kPrinted), 4711, 11);
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(frames[0].symbol, "memcpy");
  EXPECT_EQ(frames[1].module, "./a train");
  EXPECT_EQ(frames[1].symbol, "step");
  EXPECT_EQ(frames[1].offset, 0x1dU);
  EXPECT_EQ(frames[2].symbol, "");
  EXPECT_EQ(frames[2].offset, 0x401136U);
}

// What UCX 1.13 prints, under MPICH.
TEST(PrintedStack, OfUcxBeginsBehindItsHandler) {
  constexpr char kOfUcx[] =
      "[vm:6672 :0:6672] Caught signal 11 (Segmentation fault: address not mapped to object at address "
      "(nil))\n"
      "==== backtrace (tid:   6672) ====\n"
      " 0  /lib/x86_64-linux-gnu/libucs.so.0(ucs_handle_error+0x2dc) [0x7fd72ce80e9c]\n"
      " 1  /lib/x86_64-linux-gnu/libucs.so.0(+0x2908c) [0x7fd72ce8108c]\n"
      " 2  /lib/x86_64-linux-gnu/libc.so.6(+0x3c050) [0x7fd72d05a050]\n"
      " 3  /tmp/w/m_mpich(+0x1175) [0x55ff1c5d9175]\n"
      "10  /tmp/w/m_mpich(+0x11c3) [0x55ff1c5d91c3]\n"
      "=================================\n";
  const std::vector<PrintedFrame> frames = PrintedStack(LinesOf(kOfUcx), 6672, 11);
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0].module, "/tmp/w/m_mpich");
  EXPECT_EQ(frames[0].offset, 0x1175U);
  EXPECT_TRUE(PrintedStack(LinesOf(kOfUcx), 667, 11).empty());
  std::string longer(kOfUcx);  // of a process id of five digits
  longer.replace(longer.find("6672 :0:6672"), 12, "16672:0:16672");
  EXPECT_EQ(PrintedStack(LinesOf(longer), 16672, 11).size(), 2U);
  EXPECT_TRUE(PrintedStack(LinesOf(kOfUcx), 6672, 6).empty());
}

// Of another process, another signal, one that was printed for debugging.
TEST(PrintedStack, IsOfThisCrash) {
  EXPECT_TRUE(PrintedStack(LinesOf(kPrinted), 4712, 11).empty());
  EXPECT_TRUE(PrintedStack(LinesOf(kPrinted), 4711, 6).empty());
  const std::string stack = "/lib/libc.so.6(+0x3c050)[0x1]\n/x/train(+0x2)[0x2]\n";
  EXPECT_TRUE(PrintedStack(LinesOf(stack), 4711, 11).empty());
  EXPECT_EQ(PrintedStack(LinesOf("dtrun: process 4711 got signal 11; SIGSEGV in its thread 4711:\n[ 0] " +
                                 stack + "a line\n/x/later(+0x1)[0x1]\n"),
                         4711, 11)
                .size(),
            1U);
}

TEST(PrintedStack, OtherLinesAreNone) {
  for (const char* const line :
       {"", "]", "[0x", "[0x]", "loss [0x12]", "values: [0xzz]", "a/b(+0x1)", "[1, 2, 3]", "x/y(+0x1)[0x1"})
    EXPECT_TRUE(PrintedStack({"dtrun: process 1 got signal 6;", line, line}, 1, 6).empty()) << line;
}

class CoreFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "crash-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  void Put(const std::string& name) { std::ofstream(folder_ / name) << "core"; }
  std::string Found(std::string_view pattern, fs::file_time_type since = fs::file_time_type::min()) {
    return CoreFile(pattern, folder_, 4711, since).filename().string();
  }

  fs::path folder_;
};

TEST_F(CoreFileTest, IsNamedByThePattern) {
  Put("core");
  Put("core.4711");
  Put("core.4712");
  EXPECT_EQ(Found("core.%p\n"), "core.4711");
  EXPECT_EQ(Found("|/usr/lib/systemd-coredump %p"), "");
  EXPECT_EQ(Found("dump.%e"), "");
  EXPECT_EQ(Found("core", fs::file_time_type::clock::now() + std::chrono::hours(1)), "") << "an older one";
}

TEST_F(CoreFileTest, MayHaveThePidWhereThePatternHasNot) {
  Put("core.4711");
  EXPECT_EQ(Found("core"), "core.4711");
}

TEST(CrashPlace, IsUnknownWithoutToolsOrAStack) {
  const auto soon = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  EXPECT_EQ(CrashPlace({}, "/usr/bin:/bin", soon), "");
  const Crash crash{.pid = 4711, .signal = 11, .printed = kPrinted, .folder = "/", .core = "/nowhere/core"};
  EXPECT_EQ(CrashPlace(crash, "", soon), "in step");  // the symbol that was printed
  EXPECT_EQ(CrashPlace({.pid = 1, .signal = 11, .printed = kPrinted, .folder = "/", .core = "/nowhere/core"},
                       "/usr/bin:/bin", soon),
            "");
}

}  // namespace
}  // namespace dtrun::stacks
