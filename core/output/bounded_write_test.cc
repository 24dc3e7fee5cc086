#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "core/output/file_write.h"
#include "core/output/testing.h"

namespace dtrun::output {
namespace {

TEST(BoundedWrite, WritesAllToASlowReader) {
  Pipe pipe;
  const std::string text(1'000'000, 'x');
  std::thread reading([&] { EXPECT_EQ(ReadUntil(pipe.reader.get(), [](auto&) { return false; }), text); });
  EXPECT_TRUE(WriteWithin(pipe.writer.get(), text, std::chrono::minutes(1)));
  pipe.writer.Reset();
  reading.join();
}

TEST(BoundedWrite, EndsThoughNobodyReads) {
  Pipe pipe;
  EXPECT_FALSE(WriteWithin(pipe.writer.get(), std::string(1'000'000, 'x'), std::chrono::milliseconds(20)));
}

TEST(BoundedWrite, EndsWhenNobodyCanRead) {
  ::signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  pipe.reader.Reset();
  EXPECT_FALSE(WriteWithin(pipe.writer.get(), "x"));
  ::signal(SIGPIPE, SIG_DFL);
}

}  // namespace
}  // namespace dtrun::output
