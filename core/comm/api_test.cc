// The C API in a world of one, through the shared library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>

#include "dtrun/failure.h"

namespace {

using ::testing::HasSubstr;

class Api : public ::testing::Test {
 protected:
  Api() { DTRUN_ERROR_INIT(error_); }
  dtrun_error error_{};
  float x_ = 3;
};

TEST_F(Api, KnowsNothingBeforeInit) {
  EXPECT_EQ(dtrun_is_initialized(), 0);
  EXPECT_EQ(dtrun_world(), nullptr);
  EXPECT_EQ(dtrun_rank(), -1);
  EXPECT_EQ(dtrun_world_size(), -1);
  EXPECT_EQ(dtrun_local_rank(), -1);
  EXPECT_EQ(dtrun_local_world_size(), -1);
  EXPECT_EQ(dtrun_comm_rank(nullptr), -1);
  EXPECT_STREQ(dtrun_comm_backend(nullptr), "");
  EXPECT_EQ(dtrun_allreduce(nullptr, &x_, &x_, 1, DTRUN_FLOAT32, DTRUN_SUM, nullptr, &error_),
            DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("dtrun_init"));
  dtrun_finalize();  // without an init: no effect
}

TEST_F(Api, CountsInits) {
  ASSERT_EQ(dtrun_init(&error_), DTRUN_OK);
  ASSERT_EQ(dtrun_init(&error_), DTRUN_OK);
  dtrun_finalize();
  EXPECT_EQ(dtrun_is_initialized(), 1);
  EXPECT_EQ(dtrun_rank(), 0);
  EXPECT_EQ(dtrun_world_size(), 1);
  EXPECT_EQ(dtrun_local_rank(), 0);
  EXPECT_EQ(dtrun_local_world_size(), 1);
  EXPECT_STREQ(dtrun_comm_backend(dtrun_world()), "self");
  dtrun_finalize();
  EXPECT_EQ(dtrun_is_initialized(), 0);
  ASSERT_EQ(dtrun_init(&error_), DTRUN_OK) << "a new session may follow";
  dtrun_finalize();
}

TEST_F(Api, MetricsNeedNoInitAndNoJob) {
  EXPECT_EQ(dtrun_metric("loss", 0.5, 3, &error_), DTRUN_OK);
  EXPECT_EQ(dtrun_metric("loss", 0.5, -1, nullptr), DTRUN_OK);
  EXPECT_EQ(dtrun_metric("train/loss", 0.5, 3, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("use 'train_loss'"));
  EXPECT_EQ(dtrun_metric(nullptr, 0.5, 3, &error_), DTRUN_INVALID_ARGUMENT);
}

TEST_F(Api, RefusesNullHandles) {
  std::int32_t done = 0;
  EXPECT_EQ(dtrun_work_wait(nullptr, -1, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(dtrun_work_test(nullptr, &done, nullptr), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(dtrun_comm_abort(nullptr, nullptr, nullptr), DTRUN_INVALID_ARGUMENT);
  dtrun_work_release(nullptr);
}

TEST_F(Api, RefusesNullCommunicatorsAndOutputs) {
  dtrun_comm* made = nullptr;
  void* memory = nullptr;
  EXPECT_EQ(dtrun_comm_split(nullptr, 0, 0, &made, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(dtrun_group_begin(nullptr, nullptr), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(dtrun_group_end(nullptr, nullptr, nullptr), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(dtrun_alloc(nullptr, 8, &memory, nullptr), DTRUN_INVALID_ARGUMENT);
  dtrun_comm_free(nullptr);
  dtrun_free(nullptr, nullptr);
  EXPECT_STREQ(dtrun_comm_name(nullptr), "");
  ASSERT_EQ(dtrun_init(&error_), DTRUN_OK);
  EXPECT_EQ(dtrun_comm_split(dtrun_world(), 0, 0, nullptr, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(dtrun_comm_subset(dtrun_world(), nullptr, 1, &made, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(dtrun_comm_subset(dtrun_world(), nullptr, -1, &made, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(dtrun_comm_subset(dtrun_world(), nullptr, 0, &made, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("the list of ranks is empty"));
  EXPECT_EQ(dtrun_alloc(dtrun_world(), 8, nullptr, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(dtrun_submit(dtrun_world(), nullptr, nullptr, &error_), DTRUN_INVALID_ARGUMENT);
  dtrun_comm_free(dtrun_world());
  EXPECT_EQ(dtrun_barrier(dtrun_world(), nullptr, &error_), DTRUN_OK) << "the world is the runtime's";
  dtrun_finalize();
}

TEST_F(Api, SubmitsOperationsAndReadsNothingElse) {
  ASSERT_EQ(dtrun_init(&error_), DTRUN_OK);
  dtrun_op op;
  std::memset(&op, 0xff, sizeof op);  // members that the kind does not use are not read
  op.struct_size = sizeof op;
  op.flags = 0xffff;  // hints
  op.kind = DTRUN_ALLGATHER;
  op.dtype = DTRUN_FLOAT32;
  op.count = 1;
  float y = 0;
  op.send = &x_;
  op.recv = &y;
  op.timeout_ns = 0;
  EXPECT_EQ(dtrun_submit(dtrun_world(), &op, nullptr, &error_), DTRUN_OK) << error_.message;
  EXPECT_EQ(y, 3);
  op.flags = 1U << 20;
  EXPECT_EQ(dtrun_submit(dtrun_world(), &op, nullptr, &error_), DTRUN_UNSUPPORTED);
  EXPECT_THAT(error_.message, HasSubstr("submit: op has the unknown flags 0x100000"));
  op.flags = 0;
  op.struct_size = sizeof op - 8;  // no struct is smaller than at 1.0
  EXPECT_EQ(dtrun_submit(dtrun_world(), &op, nullptr, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("DTRUN_INIT sets it"));
  dtrun_finalize();
}

TEST_F(Api, FindsNoExtensionWithoutAPlugin) {
  dtrun_extension found;
  std::memset(&found, 0x55, sizeof found);
  EXPECT_EQ(dtrun_comm_extension(nullptr, "acme.rma/1", &found, &error_), DTRUN_INVALID_ARGUMENT);
  ASSERT_EQ(dtrun_init(&error_), DTRUN_OK);
  EXPECT_EQ(dtrun_comm_extension(dtrun_world(), "acme.rma/1", nullptr, &error_), DTRUN_INVALID_ARGUMENT);
  found.struct_size = sizeof found - 1;
  EXPECT_EQ(dtrun_comm_extension(dtrun_world(), "acme.rma/1", &found, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("extension: the struct has a struct_size of 31; DTRUN_INIT sets it"));
  found.struct_size = sizeof found + 8;  // of later headers
  EXPECT_EQ(dtrun_comm_extension(dtrun_world(), "acme.rma", &found, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(dtrun_comm_extension(dtrun_world(), "acme.rma/1", &found, &error_), DTRUN_NOT_FOUND);
  EXPECT_STREQ(
      error_.message,
      "extension: 'world' has no extension 'acme.rma/1': dtrun's own backend 'self' carries it, and no "
      "plugin; start the program with dtrun");
  EXPECT_EQ(found.flags, 0x55555555u) << "a failure leaves it alone";
  EXPECT_EQ(dtrun_barrier(dtrun_world(), nullptr, &error_), DTRUN_OK) << "asking breaks nothing";
  dtrun_finalize();
}

TEST_F(Api, EndsWhatWasMadeFromTheWorld) {
  ASSERT_EQ(dtrun_init(&error_), DTRUN_OK);
  dtrun_comm *made = nullptr, *left = nullptr;
  ASSERT_EQ(dtrun_comm_split(dtrun_world(), 4, 0, &made, &error_), DTRUN_OK);
  EXPECT_STREQ(dtrun_comm_name(made), "world.1:4");
  EXPECT_STREQ(dtrun_comm_backend(made), "self");
  const std::int32_t me = 0;
  ASSERT_EQ(dtrun_comm_subset(made, &me, 1, &left, &error_), DTRUN_OK);
  EXPECT_STREQ(dtrun_comm_name(left), "world.1:4.{0}");
  dtrun_work* work = nullptr;
  ASSERT_EQ(dtrun_barrier(made, &work, &error_), DTRUN_OK);
  dtrun_comm_free(made);
  EXPECT_EQ(dtrun_work_wait(work, -1, &error_), DTRUN_FAILED_PRECONDITION);
  EXPECT_THAT(error_.message, HasSubstr("finalize or free"));
  dtrun_work_release(work);
  EXPECT_EQ(dtrun_barrier(left, nullptr, &error_), DTRUN_OK) << "it does not need its parent";
  dtrun_finalize();
}

TEST_F(Api, NamesAHandleThatIsReleasedTwice) {
  ASSERT_EQ(dtrun_init(&error_), DTRUN_OK);
  dtrun_work *work = nullptr, *other = nullptr;
  ASSERT_EQ(dtrun_barrier(dtrun_world(), &work, &error_), DTRUN_OK);
  dtrun_work_release(work);
  ASSERT_EQ(dtrun_barrier(dtrun_world(), &other, &error_), DTRUN_OK);
  EXPECT_EQ(dtrun_work_wait(work, -1, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("was released before; release each handle once"));
  EXPECT_EQ(dtrun_barrier(dtrun_world(), nullptr, &error_), DTRUN_OK) << "asking breaks nothing";
  dtrun_work_release(work);
  EXPECT_EQ(dtrun_barrier(dtrun_world(), nullptr, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("work_release: the work handle "));
  dtrun_work_release(other);
  dtrun_finalize();
}

TEST_F(Api, LeavesTheErrorAloneOnSuccessAndFillsItOnFailure) {
  ASSERT_EQ(dtrun_init(&error_), DTRUN_OK);
  error_.code = 77;
  EXPECT_EQ(dtrun_barrier(dtrun_world(), nullptr, &error_), DTRUN_OK);
  EXPECT_EQ(error_.code, 77);
  EXPECT_EQ(dtrun_broadcast(dtrun_world(), &x_, 1, DTRUN_FLOAT32, 1, nullptr, &error_),
            DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(error_.code, DTRUN_INVALID_ARGUMENT);
  EXPECT_STREQ(dtrun_error_id(&error_), "invalid_argument");
  EXPECT_EQ(dtrun_error_ranks(&error_, nullptr, 0), 0);
  EXPECT_THAT(error_.message, HasSubstr("root 1"));
  dtrun_finalize();
}

TEST_F(Api, SpellsStatusesTypesAndItsVersion) {
  EXPECT_STREQ(dtrun_version(), DTRUN_VERSION);
  EXPECT_STREQ(dtrun_status_text(DTRUN_TIMEOUT), "timeout");
  EXPECT_STREQ(dtrun_status_text(1234), "internal error");
  EXPECT_EQ(dtrun_dtype_size(DTRUN_BFLOAT16), 2u);
  EXPECT_EQ(dtrun_dtype_size(0), 0u);
}

}  // namespace
