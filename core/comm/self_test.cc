#include "core/comm/self.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/comm/communicator.h"

namespace dtrun::comm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Self : public ::testing::Test {
 protected:
  Self() {
    Making making;
    making.backend = SelfBackend();
    making.backend_name = "self";
    making.name = "world";
    comm_ = std::move(dtrun_comm::Create(std::move(making))).value();
    DTRUN_ERROR_INIT(error_);
  }
  dtrun_op Op(std::int32_t kind, const void* send, void* recv, std::uint64_t count = 2) {
    dtrun_op op;
    DTRUN_INIT(op);
    op.kind = kind;
    op.dtype = DTRUN_FLOAT32;
    op.reduce = DTRUN_SUM;
    op.root = 0;
    op.peer = 0;
    op.send = send;
    op.recv = recv;
    op.count = count;
    return op;
  }
  dtrun_status Run(std::int32_t kind, std::int32_t reduce, const float* send, float* recv) {
    dtrun_op op = Op(kind, send, recv);
    op.reduce = reduce;
    return comm_->Start(op, nullptr, &error_);
  }
  std::unique_ptr<dtrun_comm> comm_;
  dtrun_error error_{};
};

TEST_F(Self, ResultOfEveryReductionIsTheOnlyContribution) {
  const float in[2] = {3, -4};
  for (std::int32_t reduce = DTRUN_SUM; reduce <= DTRUN_AVG; ++reduce) {
    for (const std::int32_t kind : {DTRUN_ALLREDUCE, DTRUN_REDUCE, DTRUN_REDUCE_SCATTER}) {
      float out[2] = {};
      EXPECT_EQ(Run(kind, reduce, in, out), DTRUN_OK);
      EXPECT_THAT(out, ElementsAre(3, -4));
    }
  }
}

TEST_F(Self, ScalesAndTellsTrueFromFalse) {
  float data[2] = {3, -4};
  dtrun_op op = Op(DTRUN_ALLREDUCE, data, data);
  op.reduce = DTRUN_PREMUL_SUM;
  op.scale = 0.5;
  EXPECT_EQ(comm_->Start(op, nullptr, &error_), DTRUN_OK);
  EXPECT_THAT(data, ElementsAre(1.5, -2));
  const std::int32_t in[3] = {0, 7, -1};
  std::int32_t out[3] = {};
  op = Op(DTRUN_ALLREDUCE, in, out, 3);
  op.dtype = DTRUN_INT32;
  op.reduce = DTRUN_LAND;
  EXPECT_EQ(comm_->Start(op, nullptr, &error_), DTRUN_OK);
  EXPECT_THAT(out, ElementsAre(0, 1, 1));
  std::uint8_t flags[3] = {0, 7, 1};
  op = Op(DTRUN_ALLREDUCE, flags, flags, 3);
  op.dtype = DTRUN_BOOL;
  op.reduce = DTRUN_SUM;
  EXPECT_EQ(comm_->Start(op, nullptr, &error_), DTRUN_OK);
  EXPECT_THAT(flags, ElementsAre(0, 1, 1));
}

TEST_F(Self, PutsTheOnlyPartWhereItsOffsetSays) {
  const float in[4] = {1, 2, 3, 4};
  const std::uint64_t count = 2, first = 2, second = 1;
  float out[4] = {};
  dtrun_op op = Op(DTRUN_ALLTOALLV, in, out, 0);
  op.send_counts = op.recv_counts = &count;
  op.send_offsets = &first;
  op.recv_offsets = &second;
  EXPECT_EQ(comm_->Start(op, nullptr, &error_), DTRUN_OK) << error_.message;
  EXPECT_THAT(out, ElementsAre(0, 3, 4, 0));
  float gathered[4] = {};
  for (const std::int32_t kind : {DTRUN_ALLGATHERV, DTRUN_GATHERV}) {
    op = Op(kind, in, gathered);
    op.recv_counts = &count;
    op.recv_offsets = &first;
    EXPECT_EQ(comm_->Start(op, nullptr, &error_), DTRUN_OK) << error_.message;
  }
  EXPECT_THAT(gathered, ElementsAre(0, 0, 1, 2));
  float scattered[2] = {};
  op = Op(DTRUN_SCATTERV, in, scattered);
  op.send_counts = &count;
  op.send_offsets = &second;
  EXPECT_EQ(comm_->Start(op, nullptr, &error_), DTRUN_OK) << error_.message;
  EXPECT_THAT(scattered, ElementsAre(2, 3));
  op = Op(DTRUN_REDUCE_SCATTERV, in, scattered, 0);
  op.recv_counts = &count;
  EXPECT_EQ(comm_->Start(op, nullptr, &error_), DTRUN_OK) << error_.message;
  EXPECT_THAT(scattered, ElementsAre(1, 2));
}

TEST_F(Self, GathersBroadcastsAndWorksInPlace) {
  float data[2] = {3, -4}, out[2] = {};
  for (const std::int32_t kind : {DTRUN_ALLGATHER, DTRUN_ALLTOALL, DTRUN_GATHER, DTRUN_SCATTER}) {
    EXPECT_EQ(Run(kind, 0, data, out), DTRUN_OK);
    EXPECT_THAT(out, ElementsAre(3, -4));
    out[0] = out[1] = 0;
  }
  EXPECT_EQ(Run(DTRUN_BROADCAST, 0, nullptr, data), DTRUN_OK);
  EXPECT_EQ(Run(DTRUN_ALLREDUCE, DTRUN_SUM, data, data), DTRUN_OK);
  EXPECT_THAT(data, ElementsAre(3, -4));
  EXPECT_EQ(Run(DTRUN_BARRIER, 0, nullptr, nullptr), DTRUN_OK);
}

TEST_F(Self, HasNobodyToSendTo) {
  float data[2] = {};
  EXPECT_EQ(Run(DTRUN_SEND, 0, data, nullptr), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("this rank itself"));
}

TEST_F(Self, CanBeAborted) {
  EXPECT_EQ(comm_->Abort("enough", nullptr), DTRUN_OK);
  EXPECT_EQ(Run(DTRUN_BARRIER, 0, nullptr, nullptr), DTRUN_ABORTED);
}

}  // namespace
}  // namespace dtrun::comm
