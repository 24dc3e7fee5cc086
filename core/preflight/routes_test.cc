#include "core/preflight/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::preflight {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using ByHost = std::vector<std::pair<std::string, Answer>>;

BackendAnswer Usable(const char* name, const char* memory) {
  return {name, "", "", {{{"library", name}, {"memory", memory}}, {}}};
}

RouteWish List(const std::vector<std::string>& names) {
  RouteWish wish;
  for (const std::string& name : names) wish.candidates.push_back({name, true, true, false, name == "nccl"});
  wish.falls_back = names.size() > 1;
  return wish;
}

RouteWish BesideNccl() {
  RouteWish wish = List({"nccl"});
  for (const char* name : {"ucx", "gloo"}) wish.candidates.push_back({name, true, false, true});
  return wish;
}

TEST(ChooseRoutes, OfAListTakesTheFirstThatNoHostObjectsTo) {
  const ByHost hosts = {{"node0", {{{"nccl", ""}, {"ucx", "no libucp"}, {"gloo", ""}}}},
                        {"node1", {{{"nccl", "no GPU"}, {"ucx", "no libucp"}, {"gloo", ""}}}}};
  const auto routes = ChooseRoutes(List({"nccl", "ucx", "gloo"}), hosts);
  ASSERT_TRUE(routes.ok());
  EXPECT_EQ(routes->host, 2u);
  EXPECT_THAT(routes->passed_over,
              ElementsAre("nccl cannot be used: on node1: no GPU", "ucx cannot be used: no libucp"));
  EXPECT_FALSE(routes->device);
  EXPECT_EQ(routes->no_device, "nccl cannot be used: on node1: no GPU");
}

TEST(ChooseRoutes, SaysWhyNoneWillDo) {
  const auto routes =
      ChooseRoutes(List({"nccl", "ucx"}), {{"node0", {{{"nccl", "no GPU"}, {"ucx", "no libucp"}}}}});
  ASSERT_FALSE(routes.ok());
  EXPECT_EQ(routes.error().text,
            "none of the backends can be used; nccl cannot be used: no GPU; ucx cannot be used: "
            "no libucp");
}

TEST(ChooseRoutes, RefusesAnswersToAnotherRequest) {
  EXPECT_FALSE(ChooseRoutes(List({"nccl"}), {{"node0", {{{"nccl", ""}}}}, {"node1", {}}}).ok());
}

TEST(ChooseRoutes, OfAListTakesOneForEachKindOfMemory) {
  const Answer answer{{Usable("nccl", "device"), Usable("ucx", "host"), Usable("gloo", "host")}};
  const auto routes = ChooseRoutes(List({"nccl", "ucx", "gloo"}), {{"node0", answer}});
  ASSERT_TRUE(routes.ok());
  EXPECT_EQ(routes->host, 1u);
  EXPECT_EQ(routes->device, 0u);
  EXPECT_THAT(routes->passed_over, IsEmpty());
}

TEST(ChooseRoutes, FindsTheHostsBesideADeviceBackend) {
  const Answer answer{{Usable("nccl", "device"), {"ucx", "no libucp"}, Usable("gloo", "host")}};
  const auto routes = ChooseRoutes(BesideNccl(), {{"node0", answer}});
  ASSERT_TRUE(routes.ok());
  EXPECT_EQ(routes->host, 2u);
  EXPECT_EQ(routes->device, 0u);
  EXPECT_THAT(routes->passed_over, ElementsAre("ucx cannot be used: no libucp"));
}

TEST(ChooseRoutes, NeverLeavesASingleName) {
  const Answer answer{{{"nccl", "no GPU"}, Usable("ucx", "host"), Usable("gloo", "host")}};
  EXPECT_EQ(ChooseRoutes(BesideNccl(), {{"node0", answer}}).error().text,
            "backend nccl cannot be used: no GPU");
}

TEST(ChooseRoutes, SaysWhatToNameWhereNothingMovesHostMemory) {
  const Answer answer{{Usable("nccl", "device"), {"ucx", "no libucp"}, {"gloo", "no plugin"}}};
  EXPECT_EQ(
      ChooseRoutes(BesideNccl(), {{"node0", answer}}).error().text,
      "nccl moves device memory only, and no backend can be used for host memory: ucx cannot be used: no "
      "libucp; gloo cannot be used: no plugin; name one, as in backend.name = \"cpu:gloo,cuda:nccl\"");
}

TEST(ChooseRoutes, ByMemoryNeedEach) {
  RouteWish wish;
  wish.candidates = {{"gloo", true, false}, {"nccl", false, true, false, true}};
  const auto routes = ChooseRoutes(wish, {{"node0", {{Usable("gloo", "host"), Usable("nccl", "device")}}}});
  ASSERT_TRUE(routes.ok());
  EXPECT_EQ(routes->host, 0u);
  EXPECT_EQ(routes->device, 1u);
  EXPECT_THAT(ChooseRoutes(wish, {{"node0", {{Usable("gloo", "host"), {"nccl", "no GPU"}}}}}).error().text,
              HasSubstr("backend nccl cannot be used: no GPU"));
}

TEST(ChooseRoutes, ByMemoryRefusesWhatABackendDoesNotMove) {
  RouteWish wish;
  wish.candidates = {{"nccl", true, false}};
  EXPECT_THAT(
      ChooseRoutes(wish, {{"node0", {{Usable("nccl", "device")}}}}).error().text,
      HasSubstr("nccl moves device memory only, and no backend can be used for host memory; name one"));
  wish.candidates = {{"ucx", true, false}, {"gloo", false, true}};
  EXPECT_THAT(
      ChooseRoutes(wish, {{"node0", {{Usable("ucx", "host"), Usable("gloo", "host")}}}}).error().text,
      HasSubstr("backend gloo moves host memory only, and device memory is staged over the backend for host "
                "memory; name ucx for both"));
}

TEST(ChooseRoutes, OfADeviceRefusesABackendOfAnother) {
  RouteWish wish;
  wish.candidates = {{"gloo", true, false}, {"fake", false, true}};
  const auto refusal = [&wish](const char* wanted, const char* kinds) {
    wish.device_kind = wanted;
    BackendAnswer fake = Usable("fake", "device");
    fake.info.facts.emplace_back("device_kinds", kinds);
    const auto routes = ChooseRoutes(wish, {{"node0", {{Usable("gloo", "host"), fake}}}});
    return routes ? "" : routes.error().text;
  };
  EXPECT_THAT(refusal("cuda", "rocm, level_zero"),
              HasSubstr("backend fake does not move memory of cuda, but of rocm, level_zero; name another"));
  EXPECT_THAT(refusal("cuda", "device kind 32"), HasSubstr("but of a device with a plugin of its own; name"));
  EXPECT_EQ(refusal("cuda", "cuda, rocm"), "");
  EXPECT_EQ(refusal("npu", "device kind 32"), "");
}

TEST(ChooseRoutes, OneThatMovesBothCarriesBoth) {
  const auto routes = ChooseRoutes(List({"ucx"}), {{"node0", {{Usable("ucx", "host and device")}}}});
  ASSERT_TRUE(routes.ok());
  EXPECT_EQ(routes->host, 0u);
  EXPECT_EQ(routes->device, 0u);
}

}  // namespace
}  // namespace dtrun::preflight
