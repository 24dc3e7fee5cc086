// A rank's side of the protocol, with a peer that is a world of one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <thread>

#include "tools/bench/program/channel.h"
#include "tools/bench/program/peer.h"

namespace dtrun::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Optional;
using ::testing::StartsWith;

bool wrong_results = false;

class Alone : public Peer {
 public:
  int rank() const override { return 0; }
  int ranks() const override { return 1; }
  std::string description() const override { return "a world of one"; }
  void Run(const Call& call) override {
    if (call.operation == Operation::kAlltoall) throw Unsupported("it has no alltoall");
    if (call.operation == Operation::kReduce) throw std::runtime_error("the peer is gone");
    if (!wrong_results) std::memcpy(call.recv, call.send, call.shape.bytes);
  }
  void Barrier() override {}
};

class Serve : public ::testing::Test {
 protected:
  void SetUp() override {
    wrong_results = false;
    std::string pattern = std::filesystem::temp_directory_path() / "dtrun-serve-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    const std::string path = folder_ / "socket";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    ASSERT_LT(path.size(), sizeof address.sun_path);
    std::memcpy(address.sun_path, path.data(), path.size());
    const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(listener.get(), 1), 0);
    rank_ = std::thread([this, path] {
      std::string program = "rank", socket = path;
      char* argv[] = {program.data(), socket.data(), nullptr};
      code_ = ServeAsRank(2, argv, [](int, char**) -> Peer* { return new Alone; });
    });
    channel_.emplace(UniqueFd(::accept(listener.get(), nullptr, nullptr)));
    EXPECT_THAT(channel_->Receive(), Optional(MatchesRegex("hello 0 1 [0-9.]+ a world of one")));
  }
  void TearDown() override {
    channel_.reset();
    if (rank_.joinable()) rank_.join();
    EXPECT_EQ(code_, 0);  // the stream ended in an orderly way
    std::filesystem::remove_all(folder_);
  }
  std::string Ask(const std::string& line) {
    channel_->Send(line);
    return channel_->Receive().value_or("nothing");
  }

  std::filesystem::path folder_;
  std::thread rank_;
  std::optional<Channel> channel_;
  int code_ = -1;
};

TEST_F(Serve, PreparesChecksAndTakesTimes) {
  EXPECT_EQ(Ask("prepare private allreduce float32 4096"), "ok");
  EXPECT_EQ(Ask("check private"), "ok");
  std::istringstream times(Ask("run private 2 3 4"));
  std::string word;
  double nanoseconds = 0;
  times >> word;
  EXPECT_EQ(word, "times");
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(times >> nanoseconds);
    EXPECT_GT(nanoseconds, 0);
  }
  EXPECT_FALSE(times >> nanoseconds);
}

TEST_F(Serve, KeepsACallWithEachKindOfBuffers) {
  EXPECT_EQ(Ask("prepare private allreduce float32 8"), "ok");
  EXPECT_EQ(Ask("prepare registered broadcast int8 1024"), "ok");
  EXPECT_EQ(Ask("check private"), "ok");
  EXPECT_THAT(Ask("run registered 0 1 1"), StartsWith("times "));
}

TEST_F(Serve, AWrongResultIsNamed) {
  wrong_results = true;
  EXPECT_EQ(Ask("prepare private allreduce float32 4096"), "ok");
  EXPECT_THAT(Ask("check private"), StartsWith("wrong rank 0: element 0 is"));
}

TEST_F(Serve, WhatThePeerCannotDoIsUnsupportedAndWhatFailsIsAnError) {
  EXPECT_EQ(Ask("prepare private alltoall float32 4096"), "ok");
  EXPECT_EQ(Ask("check private"), "unsupported it has no alltoall");
  EXPECT_EQ(Ask("prepare private reduce float32 4096"), "ok");
  EXPECT_EQ(Ask("check private"), "error the peer is gone");
}

TEST_F(Serve, ARequestThatItDoesNotKnowIsAnError) {
  EXPECT_THAT(Ask("dance"), HasSubstr("'dance'"));
  EXPECT_THAT(Ask("prepare private allreduce float31 8"), HasSubstr("'float31'"));
  EXPECT_THAT(Ask("check registered"), StartsWith("error "));  // nothing is prepared
}

}  // namespace
}  // namespace dtrun::bench
