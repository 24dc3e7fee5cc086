#include "core/comm/trace_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "dtrun/abi/types.h"

namespace dtrun::comm {
namespace {

using contract::ReadTrace;
using contract::Trace;
using contract::TraceRecord;

// The agent's end of the pipe.
class TraceWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/dtrun-trace-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
    end_ = UniqueFd(::open((folder_ / "pipe").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<TraceWriter> Open(std::uint64_t limit = 1 << 20) {
    auto writer = TraceWriter::Open(folder_ / "pipe", limit, 3);
    EXPECT_TRUE(writer);
    return *std::move(writer);
  }
  void Read() {
    char piece[65536];
    for (ssize_t size = 0; (size = ::read(end_.get(), piece, sizeof piece)) > 0;)
      bytes_.append(piece, static_cast<std::size_t>(size));
  }
  Trace All() {
    Read();
    return ReadTrace(bytes_);
  }
  static TraceRecord ACall(TraceWriter& writer, std::uint64_t number) {
    TraceRecord record;
    record.type = contract::TraceType::kCall;
    record.operation = DTRUN_ALLREDUCE;
    record.number = number;
    record.thread = writer.Thread();
    record.start = record.given = static_cast<std::int64_t>(number);
    record.end = record.start + 1;
    return record;
  }

  std::filesystem::path folder_;
  UniqueFd end_;
  std::string bytes_;
};

TEST_F(TraceWriterTest, CarriesTheCallsOfEachThread) {
  auto writer = Open();
  EXPECT_EQ(writer->AddCommunicator("world", "gloo", 0, 2), 1);
  EXPECT_EQ(writer->AddCommunicator(std::string(200, 'x'), "gloo", 0, 2), 2);
  writer->Note(ACall(*writer, 1));
  std::thread([&] { writer->Note(ACall(*writer, 2)); }).join();
  writer.reset();
  const Trace trace = All();
  ASSERT_EQ(trace.sessions.size(), 1u);
  const auto& session = trace.sessions[0];
  EXPECT_EQ(session.generation, 3u);
  EXPECT_EQ(session.pid, static_cast<std::uint64_t>(::getpid()));
  EXPECT_EQ(session.calls.size(), 2u);
  EXPECT_EQ(session.threads.size(), 2u);
  EXPECT_EQ(session.communicators.at(2).name, std::string(200, 'x'));
  EXPECT_EQ(session.communicators.at(2).backend, "gloo");
  EXPECT_THAT(contract::Missing(session), ::testing::IsEmpty());
}

TEST_F(TraceWriterTest, LosesNoCallOfAThreadThatTheWriterCanFollow) {
  constexpr std::uint64_t kCalls = 3 * TraceWriter::kBufferRecords;
  auto writer = Open();
  for (std::uint64_t i = 1; i <= kCalls; ++i) {
    writer->Note(ACall(*writer, i));
    if (i % 512 == 0) {
      // As the agent does; what was noted before this call has arrived then.
      while (All().sessions.empty() || ReadTrace(bytes_).sessions[0].calls.size() < i)
        std::this_thread::yield();
    }
  }
  writer.reset();
  const Trace trace = All();
  ASSERT_EQ(trace.sessions[0].calls.size(), kCalls);
  for (std::uint64_t i = 0; i < kCalls; ++i) ASSERT_EQ(trace.sessions[0].calls[i].number, i + 1);
  EXPECT_EQ(trace.sessions[0].lost, 0u);
}

TEST_F(TraceWriterTest, CountsCallsThatTheAgentDoesNotTake) {
  constexpr std::uint64_t kCalls = 8 * TraceWriter::kBufferRecords;  // more than pipe and buffers take
  auto writer = Open(1 << 30);
  for (std::uint64_t i = 1; i <= kCalls; ++i) writer->Note(ACall(*writer, i));
  std::atomic<bool> ended = false;
  std::thread ends([&] {
    writer.reset();
    ended = true;
  });
  while (!ended) {
    Read();  // no more, as the writer waits for its agent only some time
    std::this_thread::yield();
  }
  ends.join();
  const Trace trace = All();
  EXPECT_EQ(trace.sessions[0].calls.size() + trace.sessions[0].lost, kCalls);
  EXPECT_GT(trace.sessions[0].lost, 0u);
}

TEST_F(TraceWriterTest, EndsAtItsLimitAndSaysSo) {
  auto writer = Open(10 * sizeof(TraceRecord));
  for (std::uint64_t i = 1; i <= 100; ++i) writer->Note(ACall(*writer, i));
  writer.reset();
  const Trace trace = All();
  EXPECT_EQ(bytes_.size(), 11 * sizeof(TraceRecord));  // the last one says that it was cut
  EXPECT_TRUE(trace.sessions[0].cut);
  EXPECT_EQ(trace.partial, 0u);
}

TEST_F(TraceWriterTest, EndsThoughTheAgentDoesNotRead) {
  auto writer = Open(1 << 30);
  for (std::uint64_t i = 1; i <= TraceWriter::kBufferRecords; ++i) writer->Note(ACall(*writer, i));
  writer.reset();  // the pipe is too small for these
  EXPECT_FALSE(All().sessions[0].ended);
}

TEST_F(TraceWriterTest, AnotherWriterOfTheProcessBeginsAnew) {
  for (int i = 0; i < 2; ++i) {
    auto writer = Open();
    writer->Note(ACall(*writer, 1));
  }
  const Trace trace = All();
  ASSERT_EQ(trace.sessions.size(), 2u);
  EXPECT_EQ(trace.sessions[1].calls.size(), 1u);
  EXPECT_TRUE(trace.sessions[0].ended);
}

TEST_F(TraceWriterTest, WithoutAReaderThereIsNoTrace) {
  end_.Reset();
  EXPECT_FALSE(TraceWriter::Open(folder_ / "pipe", 1 << 20, 0));
}

}  // namespace
}  // namespace dtrun::comm
