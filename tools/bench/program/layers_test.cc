#include "tools/bench/program/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::bench {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

Request TheRequest() {
  Request request;
  request.shapes = {ShapeOf(request.operation, 2, 1024, 4)};
  request.element = *ParseElement("float32");
  request.backends = {"gloo", "ucx"};
  request.locals = {"shm", "none"};
  request.peers = {"raw-gloo", "raw-mpi"};
  request.mpirun = {"no-such-mpirun", "--oversubscribe"};
  request.registered = {false};
  return request;
}

std::vector<Layer> Plan(const Request& request) {
  return PlanLayers(request, {"/x/bin/dtrun", "/x/bin/dtrun-bench", "/x/lib/dtrun/bench"}, "/run/here");
}

std::vector<std::string> Names(const std::vector<Layer>& layers) {
  std::vector<std::string> names;
  for (const Layer& layer : layers) names.push_back(layer.name);
  return names;
}

TEST(Layers, SharedMemoryOfOneHostIsOneLayerWhateverTheBackend) {
  EXPECT_THAT(Names(Plan(TheRequest())), ElementsAre("memcpy", "shm", "gloo", "ucx", "raw-gloo", "raw-mpi"));
}

TEST(Layers, ThatOneTakesTheFirstBackendThatCanBeUsed) {
  Request request = TheRequest();
  EXPECT_THAT(Plan(request)[1].argv, Contains("backend.name=gloo,ucx"));
  request.sets = {{"", "backend.options.interface=lo"}};
  EXPECT_THAT(Plan(request)[1].argv, Contains("backend.name=gloo"));
}

TEST(Layers, BetweenEmulatedHostsItIsOneForEachBackend) {
  Request request = TheRequest();
  request.sets = {{"", "comm.emulate_hosts=2"}};
  request.peers.clear();
  EXPECT_THAT(Names(Plan(request)), ElementsAre("memcpy", "shm+gloo", "shm+ucx", "gloo", "ucx"));
}

TEST(Layers, ABarrierHasNothingToCopy) {
  Request request = TheRequest();
  request.operation = Operation::kBarrier;
  EXPECT_EQ(Names(Plan(request)).front(), "shm");
}

TEST(Layers, OursAreJobsOfDtrunWithTheirBackend) {
  Request request = TheRequest();
  request.sets = {{"", "comm.local_timeout=1s"}, {"gloo", "backend.options.interface=lo"}};
  request.plugin_dirs = {"/mine"};
  const Layer gloo = Plan(request)[2];
  EXPECT_EQ(gloo.argv.front(), "/x/bin/dtrun");
  for (const char* word :
       {"bench-layer", "backend.name=gloo", "comm.local=none", "job.processes_per_host=2", "/mine",
        "backend.options.interface=lo", "/x/bin/dtrun-bench", "/run/here/socket"}) {
    EXPECT_THAT(gloo.argv, Contains(word));
  }
  EXPECT_THAT(Plan(request)[3].argv,
              AllOf(Contains("comm.local_timeout=1s"), Not(Contains("backend.options.interface=lo"))));
}

TEST(Layers, RanksAreWrappedWhereDtrunStartsThem) {
  Request request = TheRequest();
  request.backends = {"gloo", "mpi"};
  request.locals = {"none"};
  request.wrap = {"enter", "room-${RANK}"};
  request.mpirun = {"sh", "-x"};
  const std::vector<Layer> layers = Plan(request);
  ASSERT_THAT(Names(layers), ElementsAre("memcpy", "gloo", "mpi", "raw-gloo", "raw-mpi"));
  for (const std::size_t ours : {0u, 1u, 3u}) {
    EXPECT_THAT(layers[ours].argv, IsSupersetOf({"--", "enter", "room-${RANK}"})) << ours;
  }
  for (const std::size_t theirs : {2u, 4u}) {
    EXPECT_THAT(layers[theirs].argv, AllOf(IsSupersetOf({"sh", "-x", "-n", "2"}), Not(Contains("enter"))));
  }
  EXPECT_EQ(layers[2].absent, "");
}

TEST(Layers, WhatIsNotThereSaysWhy) {
  const std::vector<Layer> layers = Plan(TheRequest());
  EXPECT_EQ(layers[0].absent, "");
  EXPECT_THAT(layers[4].absent, HasSubstr("libgloo-dev"));
  EXPECT_THAT(layers[5].absent, HasSubstr("no no-such-mpirun on PATH"));
}

TEST(Layers, BuffersOfAllColumnsAndRanksCount) {
  Request request = TheRequest();
  const std::uint64_t before = BufferBytes(request, Plan(request));
  EXPECT_EQ(before, 4u * 2 * 2 * 1024);  // absent peers have no buffers
  request.registered = {false, true};
  EXPECT_EQ(BufferBytes(request, Plan(request)), 7u * 2 * 2 * 1024);
}

}  // namespace
}  // namespace dtrun::bench
