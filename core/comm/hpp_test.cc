// The C++ wrapper dtrun.hpp over libdtrun, in a world of one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dtrun/dtrun.hpp"

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Wrapper, LeavesTheJobWhenTheSessionEnds) {
  {
    const dtrun::Session session;
    EXPECT_EQ(dtrun_is_initialized(), 1);
    EXPECT_EQ(session.world().rank(), 0);
    EXPECT_EQ(session.world().size(), 1);
    EXPECT_EQ(session.world().backend(), "self");
  }
  EXPECT_EQ(dtrun_is_initialized(), 0);
}

TEST(Wrapper, RunsTypedOperations) {
  const dtrun::Session session;
  const dtrun::Communicator world = session.world();
  float floats[2] = {1, 2};
  world.allreduce(floats, 2);
  EXPECT_THAT(floats, ElementsAre(1, 2));
  std::int64_t in[1] = {7}, out[1] = {0};
  world.allgather(in, out, 1);
  EXPECT_THAT(out, ElementsAre(7));
  double part[1] = {0}, all[1] = {5};
  world.reduce_scatter(all, part, 1, dtrun::Reduce::avg);
  EXPECT_THAT(part, ElementsAre(5));
  std::uint8_t byte = 9;
  world.broadcast(&byte, 1, 0);
  world.barrier();
}

TEST(Wrapper, WaitsForWorkAndReleasesIt) {
  const dtrun::Session session;
  std::int32_t value = 3;
  dtrun::Work work = session.world().allreduce_async(&value, 1, dtrun::Reduce::max);
  EXPECT_TRUE(static_cast<bool>(work));
  EXPECT_TRUE(work.test());
  work.wait();
  std::uint16_t half = 0x3c00;
  session.world().allreduce_async(&half, 1, DTRUN_FLOAT16, dtrun::Reduce::avg).wait();
  EXPECT_EQ(half, 0x3c00);
}

TEST(Wrapper, ThrowsWhatTheCallReports) {
  const dtrun::Session session;
  const dtrun::Communicator world = session.world();
  float value = 1;
  try {
    world.send(&value, 1, 0);
    FAIL() << "a send to oneself succeeded";
  } catch (const dtrun::Failure& failure) {
    EXPECT_EQ(failure.code(), DTRUN_INVALID_ARGUMENT);
    EXPECT_THAT(failure.what(), HasSubstr("this rank itself"));
    EXPECT_EQ(failure.peer(), -1);
  }
  world.abort("enough");
  EXPECT_THROW(world.barrier(), dtrun::Failure);
}

}  // namespace
