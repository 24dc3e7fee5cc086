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
    DTRUN_INIT(error_);
  }
  dtrun_status Run(std::int32_t kind, std::int32_t reduce, const float* send, float* recv) {
    dtrun_op op;
    DTRUN_INIT(op);
    op.kind = kind;
    op.dtype = DTRUN_FLOAT32;
    op.reduce = reduce;
    op.root = 0;
    op.peer = 0;
    op.send = send;
    op.recv = recv;
    op.count = 2;
    return comm_->Start(op, nullptr, &error_);
  }
  std::unique_ptr<dtrun_comm> comm_;
  dtrun_error error_{};
};

TEST_F(Self, ResultOfEveryReductionIsTheOnlyContribution) {
  const float in[2] = {3, -4};
  for (std::int32_t reduce = DTRUN_SUM; reduce < DTRUN_REDUCE_COUNT; ++reduce) {
    float out[2] = {};
    EXPECT_EQ(Run(DTRUN_ALLREDUCE, reduce, in, out), DTRUN_OK);
    EXPECT_THAT(out, ElementsAre(3, -4));
    float part[2] = {};
    EXPECT_EQ(Run(DTRUN_REDUCE_SCATTER, reduce, in, part), DTRUN_OK);
    EXPECT_THAT(part, ElementsAre(3, -4));
  }
}

TEST_F(Self, GathersBroadcastsAndWorksInPlace) {
  float data[2] = {3, -4}, out[2] = {};
  EXPECT_EQ(Run(DTRUN_ALLGATHER, 0, data, out), DTRUN_OK);
  EXPECT_THAT(out, ElementsAre(3, -4));
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
