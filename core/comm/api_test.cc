// The C API in a world of one, through the shared library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dtrun/dtrun.h"

namespace {

using ::testing::HasSubstr;

class Api : public ::testing::Test {
 protected:
  Api() { DTRUN_INIT(error_); }
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
  dtrun_finalize();  // without an init: nothing
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

TEST_F(Api, RefusesNullHandles) {
  std::int32_t done = 0;
  EXPECT_EQ(dtrun_work_wait(nullptr, -1, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(dtrun_work_test(nullptr, &done, nullptr), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(dtrun_comm_abort(nullptr, nullptr, nullptr), DTRUN_INVALID_ARGUMENT);
  dtrun_work_release(nullptr);
}

TEST_F(Api, LeavesTheErrorAloneOnSuccessAndFillsItOnFailure) {
  ASSERT_EQ(dtrun_init(&error_), DTRUN_OK);
  error_.code = 77;
  EXPECT_EQ(dtrun_barrier(dtrun_world(), nullptr, &error_), DTRUN_OK);
  EXPECT_EQ(error_.code, 77);
  EXPECT_EQ(dtrun_broadcast(dtrun_world(), &x_, 1, DTRUN_FLOAT32, 1, nullptr, &error_),
            DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(error_.code, DTRUN_INVALID_ARGUMENT);
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
