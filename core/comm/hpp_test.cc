// The C++ wrapper dtrun.hpp over libdtrun, in a world of one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "dtrun/dtrun.hpp"

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Hpp, MetricThrowsForABadName) {
  dtrun::metric("loss", 0.5, 3);
  dtrun::metric("loss", 0.5);
  EXPECT_THROW(dtrun::metric("1st", 0.5), dtrun::Failure);
}

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

TEST(Wrapper, KnowsTheElementTypes) {
  EXPECT_EQ(dtrun::dtype_of<bool>(), DTRUN_BOOL);
  EXPECT_EQ(dtrun::dtype_of<std::int8_t>(), DTRUN_INT8);
  EXPECT_EQ(dtrun::dtype_of<std::uint16_t>(), DTRUN_UINT16);
  EXPECT_EQ(dtrun::dtype_of<long long>(), DTRUN_INT64);
  EXPECT_EQ(dtrun::dtype_of<const std::uint64_t>(), DTRUN_UINT64);
  EXPECT_EQ(dtrun::dtype_of<std::complex<float>>(), DTRUN_COMPLEX64);
  EXPECT_EQ(dtrun::dtype_of<std::complex<double>>(), DTRUN_COMPLEX128);
}

TEST(Wrapper, RunsEveryOperationOfAllRanks) {
  const dtrun::Session session;
  const dtrun::Communicator world = session.world();
  const std::int16_t in[2] = {3, -4};
  const std::uint64_t count = 2;
  const auto expect = [&](auto call) {
    std::int16_t out[2] = {};
    call(out);
    EXPECT_THAT(out, ElementsAre(3, -4));
  };
  expect([&](auto out) { world.reduce(in, out, 2, 0, dtrun::Reduce::bxor); });
  expect([&](auto out) { world.reduce_async(in, out, 2, 0).wait(); });
  expect([&](auto out) { world.allgatherv(in, out, &count); });
  expect([&](auto out) { world.allgatherv_async(in, out, &count).wait(); });
  expect([&](auto out) { world.reduce_scatterv(in, out, &count); });
  expect([&](auto out) { world.reduce_scatterv_async(in, out, &count).wait(); });
  expect([&](auto out) { world.alltoall(in, out, 2); });
  expect([&](auto out) { world.alltoall_async(in, out, 2).wait(); });
  expect([&](auto out) { world.alltoallv(in, &count, nullptr, out, &count, nullptr); });
  expect([&](auto out) { world.alltoallv_async(in, &count, nullptr, out, &count, nullptr).wait(); });
  expect([&](auto out) { world.gather(in, out, 2, 0); });
  expect([&](auto out) { world.gather_async(in, out, 2, 0).wait(); });
  expect([&](auto out) { world.gatherv(in, 2, out, &count, nullptr, 0); });
  expect([&](auto out) { world.gatherv_async(in, 2, out, &count, nullptr, 0).wait(); });
  expect([&](auto out) { world.scatter(in, out, 2, 0); });
  expect([&](auto out) { world.scatter_async(in, out, 2, 0).wait(); });
  expect([&](auto out) { world.scatterv(in, &count, nullptr, out, 2, 0); });
  expect([&](auto out) { world.scatterv_async(in, &count, nullptr, out, 2, 0).wait(); });
  double scaled = 3;
  world.allreduce_premul(&scaled, 1, 0.5);
  world.allreduce_premul_async(&scaled, 1, 2).wait();
  EXPECT_EQ(scaled, 3);
  world.barrier_async().wait();
  dtrun_op op;
  DTRUN_INIT(op);
  op.kind = DTRUN_BARRIER;
  world.submit(op);
  world.submit_async(op).wait();
}

TEST(Wrapper, HasNobodyToExchangeWithAlone) {
  const dtrun::Session session;
  const dtrun::Communicator world = session.world();
  float value = 1;
  std::int32_t source = -1;
  EXPECT_THROW(world.recv(&value, 1, 0), dtrun::Failure);
  EXPECT_THROW(world.recv_any(&value, 1, 0, &source), dtrun::Failure);
  EXPECT_THROW((void)world.recv_any_async(&value, 1, 0, &source), dtrun::Failure);
}

TEST(Wrapper, GroupsOperations) {
  const dtrun::Session session;
  const dtrun::Communicator world = session.world();
  float value = 1;
  {
    dtrun::Group group(world);
    world.allreduce(&value, 1);
    EXPECT_THROW((void)world.barrier_async(), dtrun::Failure);
    group.end();
  }
  dtrun::Work work;
  {
    dtrun::Group group(world);
    world.barrier();
    work = group.end_async();
  }
  work.wait();
  { const dtrun::Group forgotten(world); }
  EXPECT_NO_THROW(world.barrier_async().wait()) << "no group is open any more";
}

TEST(Wrapper, OwnsCommunicatorsAndMemory) {
  const dtrun::Session session;
  const dtrun::SubCommunicator half = dtrun::SubCommunicator::split(session.world(), 1);
  ASSERT_TRUE(static_cast<bool>(half));
  EXPECT_EQ((*half).name(), "world.1:1");
  EXPECT_FALSE(static_cast<bool>(dtrun::SubCommunicator::split(session.world(), -1)));
  EXPECT_EQ(dtrun::SubCommunicator::subset(session.world(), {0}).get().size(), 1);
  EXPECT_THROW(dtrun::SubCommunicator::subset(session.world(), {1}), dtrun::Failure);
  const dtrun::Memory<float> memory(*half, 3);
  EXPECT_EQ(memory.size(), 3u);
  EXPECT_THAT(std::vector<float>(memory.begin(), memory.end()), ElementsAre(0, 0, 0));
  memory[1] = 5;
  (*half).allreduce(memory.data(), memory.size());
  EXPECT_EQ(memory[1], 5);
  EXPECT_THROW(dtrun::Memory<float>(*half, SIZE_MAX), std::length_error);
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
  struct Table {};
  try {
    (void)world.extension<Table>("acme.rma/1");
    FAIL() << "a world of one has an extension";
  } catch (const dtrun::Failure& failure) {
    EXPECT_EQ(failure.code(), DTRUN_NOT_FOUND);
    EXPECT_THAT(failure.what(), HasSubstr("'acme.rma/1'"));
  }
  world.abort("enough");
  EXPECT_THROW(world.barrier(), dtrun::Failure);
}

// Memory of the fake accelerator, which is really host memory, staged over a world of one.
class OnDevice : public ::testing::Test {
 protected:
  static constexpr int kKind = DTRUN_DEVICE_OTHER;
  OnDevice() { ::setenv("DTRUN_PLUGIN_PATH", FAKE_PLUGINS, 1); }
  ~OnDevice() override { ::unsetenv("DTRUN_PLUGIN_PATH"); }
};

TEST_F(OnDevice, RunsOperationsInTheOrderOfAStream) {
  const dtrun::Session session;
  const dtrun::Communicator world = session.world();
  EXPECT_EQ(world.route(kKind), "staging over self");
  EXPECT_EQ(dtrun_comm_orders_on_host(dtrun_world(), kKind), 1);
  EXPECT_EQ(dtrun_comm_orders_on_host(dtrun_world(), DTRUN_DEVICE_HOST), 0);
  world.connect(kKind, 1);
  const dtrun::Memory<float> memory(world, 4, kKind, 1);
  const dtrun::Memory<float> other(world, 4, kKind, 1);
  const dtrun::Stream stream(world, kKind, 1);
  EXPECT_EQ(stream.get().device_index, 1);
  std::fill(memory.begin(), memory.end(), 3.0F);
  const dtrun::OnStream on = world.on(stream);
  on.allreduce(memory.data(), 4, dtrun::Reduce::avg);
  on.broadcast(memory.data(), 4, 0);
  on.reduce(memory.data(), memory.data(), 4, 0);
  on.allreduce(static_cast<void*>(memory.data()), 4, DTRUN_FLOAT32, dtrun::Reduce::max);
  on.allgather(memory.data(), other.data(), 4);
  on.reduce_scatter(other.data(), memory.data(), 4);
  on.alltoall(memory.data(), other.data(), 4);
  on.barrier();
  dtrun::Work work = on.allreduce_async(other.data(), 4);
  work.wait();
  EXPECT_THAT(std::vector<float>(other.begin(), other.end()), ElementsAre(3, 3, 3, 3));
}

TEST_F(OnDevice, OrdersAnotherStreamAfterAWork) {
  const dtrun::Session session;
  const dtrun::Communicator world = session.world();
  world.connect(kKind, 0);
  dtrun::Stream first(world, kKind, 0), second(world, kKind, 0, 1);
  const dtrun::Memory<std::int32_t> memory(world, 2, kKind, 0);
  memory[0] = memory[1] = 8;
  dtrun::Work work = world.on(first).allreduce_async(memory.data(), 2);
  work.wait_on(second);
  work = {};  // does not wait for it
  dtrun_op op;
  DTRUN_INIT(op);
  op.kind = DTRUN_BROADCAST;
  op.dtype = DTRUN_INT32;
  op.count = 2;
  op.recv = memory.data();
  world.on(second).submit(op);
  world.on(second).submit_async(op).wait();
  EXPECT_THAT(std::vector<std::int32_t>(memory.begin(), memory.end()), ElementsAre(8, 8));
  first = std::move(second);
  EXPECT_NE(first.get().native, nullptr);
}

TEST_F(OnDevice, AStreamThatIsMadeNeedsOnlyItsSize) {
  const dtrun::Session session;
  const dtrun::Communicator world = session.world();
  world.connect(kKind, 0);
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  dtrun_stream stream;
  std::memset(&stream, 0xff, sizeof stream);
  stream.struct_size = sizeof stream;
  ASSERT_EQ(dtrun_stream_create(world.get(), kKind, 0, 0, &stream, &error), DTRUN_OK) << error.message;
  EXPECT_EQ(stream.flags, 0u);
  dtrun_stream_destroy(world.get(), &stream);
  stream.struct_size = 0;
  EXPECT_EQ(dtrun_stream_create(world.get(), kKind, 0, 0, &stream, &error), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("has a struct_size of 0; DTRUN_INIT sets it"));
}

TEST_F(OnDevice, AStreamWaitsForNoWorkOfTheHost) {
  const dtrun::Session session;
  const dtrun::Communicator world = session.world();
  float value = 1;
  dtrun::Work work = world.allreduce_async(&value, 1);
  try {
    work.wait_on(dtrun::stream_of(kKind, 0, nullptr));
    FAIL();
  } catch (const dtrun::Failure& error) {
    EXPECT_THAT(error.what(), HasSubstr("moves host memory, which no stream waits for"));
  }
}

TEST_F(OnDevice, OfAKindThatHasNoNameIsCalledByItsPlugin) {
  const dtrun::Session session;
  const dtrun::Communicator world = session.world();
  const auto said = [&](auto&& call) {
    try {
      call();
    } catch (const dtrun::Failure& failure) {
      return std::string(failure.what());
    }
    return std::string();
  };
  EXPECT_THAT(said([&] { world.connect(kKind, 99); }), HasSubstr("there is no fake 99: this process has"));
  world.connect(kKind, 0);
  float value = 1;
  const dtrun::Stream stream(world, kKind, 0);
  EXPECT_THAT(said([&] { world.on(stream).allreduce(&value, 1); }), HasSubstr("and the stream is of fake 0"));
  EXPECT_THAT(said([&] { world.connect(kKind, 1); }), HasSubstr("is connected to fake 0"));
}

TEST_F(OnDevice, RefusesWhatIsNotOfTheStreamsDevice) {
  const dtrun::Session session;
  const dtrun::Communicator world = session.world();
  EXPECT_THROW(dtrun::Stream(world, kKind, 0), dtrun::Failure) << "the ranks are not connected";
  world.connect(kKind, 0);
  EXPECT_THROW(dtrun::Stream(world, kKind, 99), dtrun::Failure);
  EXPECT_THROW((void)world.route(DTRUN_DEVICE_LEVEL_ZERO), dtrun::Failure);
  EXPECT_THROW((void)dtrun::Memory<float>(world, 1, DTRUN_DEVICE_LEVEL_ZERO, 0), dtrun::Failure);
  const dtrun::Stream stream(world, kKind, 0);
  float value = 1;
  EXPECT_THROW(world.on(stream).allreduce(&value, 1), dtrun::Failure) << "host memory";
  EXPECT_THROW((void)world.on(dtrun::stream_of(DTRUN_DEVICE_HOST, 0, nullptr)).allreduce_async(&value, 1),
               dtrun::Failure);
  EXPECT_THROW(world.on(stream).send(&value, 1, 0), dtrun::Failure);
  EXPECT_THROW((void)world.on(stream).recv_async(&value, 1, 0), dtrun::Failure);
}

}  // namespace
