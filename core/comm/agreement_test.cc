#include "core/comm/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "core/comm/testing/local_spaces.h"

namespace dtrun::comm {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

Result<std::string> By(std::string carrier) { return "cuda memory by " + carrier; }

class Agreement : public ::testing::Test {
 protected:
  static constexpr int kRanks = 3;

  // The result on each rank for the answers `mine`. The timeout only bounds the test.
  std::vector<Status> All(const std::vector<Result<std::string>>& mine, Nanoseconds timeout = 60s) {
    ++attempt_;
    std::vector<std::future<Status>> ranks;
    for (int rank = 0; rank < static_cast<int>(mine.size()); ++rank) {
      ranks.push_back(std::async(std::launch::async, [=, this] {
        const auto kv = spaces_.Space("device/");
        Making making;
        making.name = "world";
        making.rank = rank;
        making.size = kRanks;
        making.timeout = timeout;
        making.device_kv = kv.get();
        return Agree(making, attempt_, "cuda", mine[static_cast<std::size_t>(rank)], usable_);
      }));
    }
    std::vector<Status> heard;
    for (auto& rank : ranks) heard.push_back(rank.get());
    return heard;
  }
  static std::vector<std::string> Texts(const std::vector<Status>& heard) {
    std::vector<std::string> texts;
    for (const Status& one : heard) texts.push_back(one ? "ok" : one.error().text);
    return texts;
  }

  testing::LocalSpaces spaces_;
  std::function<Status()> usable_ = [] { return Status(); };
  int attempt_ = 0;
};

TEST_F(Agreement, OfAllLetsAllGoOn) {
  EXPECT_THAT(Texts(All({By("nccl"), By("nccl"), By("nccl")})), Each("ok"));
}

TEST_F(Agreement, TellsARefusalOfOneToAllAtOnceAndTheyMayTryAgain) {
  const auto began = std::chrono::steady_clock::now();
  const auto heard = All({By("nccl"), By("nccl"), Error{DTRUN_NOT_FOUND, "no libnccl"}});
  EXPECT_LT(std::chrono::steady_clock::now() - began, 30s) << "no rank waits for its timeout of 60 s";
  for (const std::size_t rank : {0u, 1u}) {
    ASSERT_FALSE(heard[rank].ok());
    EXPECT_EQ(heard[rank].error().code, DTRUN_REMOTE_FAILURE);
    EXPECT_EQ(heard[rank].error().peer, 2);
    EXPECT_EQ(heard[rank].error().text, "rank 2 cannot connect 'world' to cuda: no libnccl");
  }
  EXPECT_EQ(heard[2].error().text, "no libnccl");
  EXPECT_THAT(Texts(All({By("ucx"), By("ucx"), By("ucx")})), Each("ok"));
}

TEST_F(Agreement, NamesTwoThatDiffer) {
  EXPECT_THAT(Texts(All({By("nccl"), By("nccl"), By("staging over shm")})),
              Each(AllOf(HasSubstr("cuda memory by nccl"), HasSubstr("cuda memory by staging over shm"),
                         HasSubstr("all ranks use one kind of device"))));
}

TEST_F(Agreement, NamesTheRankThatDoesNotCome) {
  EXPECT_THAT(Texts(All({By("nccl"), By("nccl")}, 1s)),
              Each("rank 2 of 'world' made no call on memory of cuda within 1s; the first call connects "
                   "all ranks"));
}

TEST_F(Agreement, ARankThatWaitsHearsWhyTheCommunicatorHasFailed) {
  const auto began = std::chrono::steady_clock::now();
  usable_ = [] { return Error{DTRUN_MISMATCH, "call 1 on 'world' differs", 2}; };
  EXPECT_THAT(Texts(All({By("nccl"), By("nccl")})), Each("call 1 on 'world' differs"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 30s) << "no rank waits for its timeout of 60 s";
}

}  // namespace
}  // namespace dtrun::comm
