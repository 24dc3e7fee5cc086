#include "core/plan/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/number.h"
#include "core/binding/machine.h"
#include "core/contract/environment.h"
#include "core/plan/hosts.h"

namespace dtrun::plan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

spec::JobSpec With(std::vector<std::string> sets) {
  spec::Request request;
  request.command = {"true"};
  request.sets = std::move(sets);
  spec::Loaded loaded = spec::Load(request, {});
  EXPECT_EQ(spec::Render(loaded.problems), "");
  return std::move(loaded.spec);
}

// Two sockets of four cores, two hardware threads each; two GPUs at the second socket.
Hardware Server() {
  Hardware out;
  out.topology = *binding::ParseTopology("0.0=0+8,1+9,2+10,3+11;1.1=4+12,5+13,6+14,7+15");
  out.gpus = {{"GPU-a", 1, "0"}, {"GPU-b", 1, "1"}};
  return out;
}

std::vector<std::string> Sets(const Placement& placement) {
  std::vector<std::string> out;
  for (const auto& set : placement.processors.processors) out.push_back(NumberList(set));
  return out;
}

Process LocalRanks(int first, int count) {
  Process process;
  process.local_rank = first;
  process.rank_count = count;
  return process;
}

class Bound : public ::testing::Test {
  void SetUp() override {
    if (!binding::KnowsMachine()) GTEST_SKIP() << "built without hwloc";
  }
};

TEST(ProcessesPerHost, CountsWholeCores) {
  EXPECT_EQ(*ProcessesPerHost(With({"job.processes_per_host=cpu"}), Server()), 8);
}

TEST(ProcessesPerHost, CountsTheGpusThatAreVisible) {
  EXPECT_EQ(*ProcessesPerHost(With({"job.processes_per_host=gpu"}), Server()), 2);
  EXPECT_EQ(*ProcessesPerHost(With({"job.processes_per_host=auto"}), Server()), 2);
}

TEST(ProcessesPerHost, WithoutAGpuIsCoresOrAnErrorAsAsked) {
  Hardware none = Server();
  none.gpus.clear();
  EXPECT_EQ(*ProcessesPerHost(With({"job.processes_per_host=auto"}), none), 8);
  EXPECT_THAT(
      ProcessesPerHost(With({"job.processes_per_host=gpu"}), none).error().text,
      AllOf(HasSubstr("--set job.processes_per_host"), HasSubstr("no GPU is visible on this host: there is "),
            HasSubstr("; write a number or \"cpu\"")));
  none.gpu_list = "CUDA_VISIBLE_DEVICES is 'x'";
  EXPECT_THAT(ProcessesPerHost(With({"job.processes_per_host=gpu"}), none).error().text,
              HasSubstr("no AMD device (CUDA_VISIBLE_DEVICES is 'x'); write a number"));
  none.gpus_there = 2;
  EXPECT_THAT(
      ProcessesPerHost(With({"job.processes_per_host=gpu"}), none).error().text,
      HasSubstr(
          "this host: CUDA_VISIBLE_DEVICES is 'x', which selects none of its 2 GPUs; correct that list"));
}

TEST(Place, KnowsEveryWordOfTheOption) {
  const spec::JobSpec spec = With({});
  EXPECT_EQ(spec.Find("job.bind")->choices, binding::PolicyNames());
}

TEST_F(Bound, RanksGetWhatWasAsked) {
  const auto placement = Place(With({"job.bind=compact"}), Server(), 4, false);
  ASSERT_TRUE(placement);
  EXPECT_THAT(Sets(*placement), ElementsAre("0-1,8-9", "2-3,10-11", "4-5,12-13", "6-7,14-15"));
  EXPECT_EQ(placement->processor_count, 16);
}

TEST_F(Bound, RanksKeepNearTheirGpusWhicheverWayTheyUseThem) {
  const Hardware server = Server();
  for (const auto& sets :
       {std::vector<std::string>{"job.processes_per_host=gpu"}, {"job.gpu_visibility=own"}}) {
    const auto placement = Place(With(sets), server, 2, false);
    ASSERT_TRUE(placement);
    EXPECT_THAT(Sets(*placement), ElementsAre("4-7,12-15", "4-7,12-15")) << sets[0];
  }
  EXPECT_THAT(Sets(*Place(With({}), server, 2, true)), ElementsAre("4-7,12-15", "4-7,12-15"));
}

TEST_F(Bound, RanksWithoutGpusHaveTheWholeHost) {
  EXPECT_THAT(Sets(*Place(With({"job.processes_per_host=2"}), Server(), 2, false)),
              ElementsAre("0-3,8-11", "4-7,12-15"));
  EXPECT_THAT(Sets(*Place(With({}), Server(), 4, true)),
              ElementsAre("0-3,8-11", "0-3,8-11", "4-7,12-15", "4-7,12-15"))
      << "more ranks than GPUs: none is its own";
}

TEST(Place, WithoutHwlocBindsNothingAndRefusesToPretend) {
  if (binding::KnowsMachine()) GTEST_SKIP() << "built with hwloc";
  EXPECT_EQ(Place(With({}), Server(), 2, false)->processors.text, "none (built without hwloc)");
  EXPECT_THAT(Place(With({"job.bind=compact"}), Server(), 2, false).error().text,
              AllOf(HasSubstr("--set job.bind"), HasSubstr("'compact' needs hwloc")));
}

TEST(Place, RefusesMoreRanksThanOwnGpus) {
  EXPECT_THAT(Place(With({"job.gpu_visibility=own"}), Server(), 3, false).error().text,
              AllOf(HasSubstr("--set job.gpu_visibility"), HasSubstr("3 ranks"), HasSubstr("(0,1)")));
}

TEST(Place, RefusesTwoOwnersOfTheList) {
  EXPECT_THAT(Place(With({"job.gpu_visibility=own", "job.env.CUDA_VISIBLE_DEVICES=${LOCAL_RANK}"}), Server(),
                    2, false)
                  .error()
                  .text,
              AllOf(HasSubstr("'${LOCAL_RANK}'"), HasSubstr("job.env")));
}

TEST_F(Bound, ProcessesAreToldTheirProcessorsAndGpus) {
  const auto placement = Place(With({"job.bind=compact", "job.gpu_visibility=own"}), Server(), 2, false);
  ASSERT_TRUE(placement);
  Process process = LocalRanks(1, 1);
  PutInPlace(*placement, &process);
  EXPECT_EQ(process.binding, "6-7,14-15");
  EXPECT_EQ(process.env.at("CUDA_VISIBLE_DEVICES"), "1");
  EXPECT_EQ(process.env.at(contract::kLocalProcessors), "8");
}

TEST_F(Bound, ProcessesOfSeveralRanksGetAllThatIsTheirs) {
  const auto placement = Place(With({"job.bind=compact", "job.gpu_visibility=own"}), Server(), 2, false);
  ASSERT_TRUE(placement);
  Process process = LocalRanks(0, 2);
  PutInPlace(*placement, &process);
  EXPECT_EQ(process.binding, "4-7,12-15");
  EXPECT_EQ(process.env.at("CUDA_VISIBLE_DEVICES"), "0,1");
}

TEST(PutInPlace, TellsAnUnboundProcessThatItsMaskTellsAll) {
  const auto placement = Place(With({"job.bind=none"}), Server(), 2, false);
  ASSERT_TRUE(placement);
  Process process = LocalRanks(1, 1);
  PutInPlace(*placement, &process);
  EXPECT_EQ(process.binding, "");
  EXPECT_THAT(process.env, ElementsAre(Pair(contract::kLocalProcessors, "0")));
}

TEST(HardwareOf, TakesTheListOfVisibleGpusFromJobEnvFirst) {
  const auto here = OfferHere();
  ASSERT_TRUE(here) << here.error().text;
  // A list cannot show more GPUs than this machine has; one that selects nothing shows none.
  const auto hardware =
      HardwareOf(With({"job.env.CUDA_VISIBLE_DEVICES=-1"}), {{"CUDA_VISIBLE_DEVICES", "0"}}, *here);
  EXPECT_TRUE(hardware.gpus.empty());
  EXPECT_GE(hardware.topology.cores.size(), 1u);
}

TEST(GpuListWarnings, TellOfAListThatSelectsNothingUnlessThatIsMeant) {
  HostOffer offer;
  offer.name = "a";
  offer.gpus.devices = {{"GPU-aaaa", 1, "0"}};
  const auto warnings = [&](const std::vector<std::string>& sets, const char* inherited = "0") {
    const spec::JobSpec spec = With(sets);
    return GpuListWarnings(spec, {HardwareOf(spec, {{"CUDA_VISIBLE_DEVICES", inherited}}, offer)});
  };
  EXPECT_THAT(
      warnings({"job.env.CUDA_VISIBLE_DEVICES=banana"}),
      ElementsAre("CUDA_VISIBLE_DEVICES is 'banana', which selects no GPU of host a (it has 1); correct "
                  "job.env"));
  for (const char* list : {"", "-1", "0", "GPU-a", "${LOCAL_RANK}"})
    EXPECT_THAT(warnings({std::string("job.env.CUDA_VISIBLE_DEVICES=") + list}), IsEmpty()) << list;
  offer.gpus.devices.clear();
  EXPECT_THAT(warnings({}), IsEmpty());
  EXPECT_THAT(warnings({}, "MIG-1f"), IsEmpty());
  EXPECT_THAT(
      warnings({"job.processes_per_host=gpu"}, "MIG-1f"),
      ElementsAre("CUDA_VISIBLE_DEVICES is 'MIG-1f', and no GPU is there on host a that could have such "
                  "slices; correct that variable, or unset it"));
}

// CUDA accepts GPU and MIG UUIDs in the same list: each rank's part keeps the names.
TEST(Place, OwnPartsKeepTheNamesOfTheUsersList) {
  HostOffer offer;
  offer.topology = Server().topology;
  offer.gpus.devices = {{"GPU-aaaa", 1, "0"}, {"GPU-bbbb", 1, "1"}};
  const std::pair<const char*, std::vector<std::string>> cases[] = {
      {"GPU-bbbb,GPU-aaaa", {"GPU-bbbb", "GPU-aaaa"}},
      {"MIG-11111111-2222,MIG-33333333-4444", {"MIG-11111111-2222", "MIG-33333333-4444"}},
      {"GPU-b,0", {"GPU-b", "0"}}};
  for (const auto& [list, parts] : cases) {
    const spec::JobSpec spec = With({"job.gpu_visibility=own"});
    const Hardware hardware = HardwareOf(spec, {{"CUDA_VISIBLE_DEVICES", list}}, offer);
    const auto placement = Place(spec, hardware, 2, false);
    ASSERT_TRUE(placement) << list << ": " << placement.error().text;
    EXPECT_EQ(placement->gpu_lists, parts) << list;
  }
  const spec::JobSpec spec = With({"job.gpu_visibility=own"});
  const Hardware one = HardwareOf(spec, {{"CUDA_VISIBLE_DEVICES", "GPU-bbbb,GPU-none"}}, offer);
  EXPECT_THAT(Place(spec, one, 2, false).error().text, HasSubstr("(GPU-bbbb)"));
}

// Two hosts, of which cluster.gpus names the second.
class GivenGpus : public ::testing::Test {
 protected:
  Result<Placement> PlaceOn(int host, std::vector<std::string> sets, int ranks = 2) {
    sets.insert(sets.end(), {"cluster.hosts=a.invalid:2,b.invalid:2"});
    HostOffer offer;
    offer.topology = Server().topology;
    offer.gpus.devices = {
        {"GPU-aaaa", 0, "0"}, {"GPU-bbbb", 0, "1"}, {"GPU-cccc", 1, "2"}, {"GPU-dddd", 1, "3"}};
    offer.gpus.vendor = vendor_;
    offer.name = "b-itself";
    offer.number = host;
    settings_ = With(sets);
    hardware_ = HardwareOf(settings_, {{"CUDA_VISIBLE_DEVICES", "0"}}, offer);
    return Place(settings_, hardware_, ranks, false);
  }
  // The variable of the first process of a host.
  std::string Variable(const Placement& placement, const char* name = "CUDA_VISIBLE_DEVICES", int ranks = 1) {
    Process process = LocalRanks(0, ranks);
    PutInPlace(placement, &process);
    const auto found = process.env.find(name);
    return found == process.env.end() ? "unset" : std::string(found->second);
  }

  binding::Vendor vendor_ = binding::Vendor::kNvidia;
  spec::JobSpec settings_;
  Hardware hardware_;
};

TEST_F(GivenGpus, AreTheWholeListForEachRankOfThatHost) {
  const auto there = PlaceOn(1, {"cluster.gpus={\"b.invalid\" = \"2,3\"}"});
  ASSERT_TRUE(there) << there.error().text;
  EXPECT_EQ(Variable(*there), "2,3");
  EXPECT_EQ(Variable(*there, "CUDA_VISIBLE_DEVICES", 2), "2,3") << "also of a process for several ranks";
  EXPECT_EQ(Variable(*PlaceOn(0, {"cluster.gpus={\"b.invalid\" = \"2,3\"}"})), "unset");
  EXPECT_EQ(hardware_.gpus.size(), 1u) << "the environment's list holds on the other host";
  vendor_ = binding::Vendor::kAmd;
  EXPECT_EQ(Variable(*PlaceOn(1, {"cluster.gpus={\"b.invalid\" = \"2\"}"}), "HIP_VISIBLE_DEVICES"), "2");
}

TEST_F(GivenGpus, AreCountedAndDealtOut) {
  const auto there = PlaceOn(1, {"cluster.gpus={\"b.invalid\" = \"3,GPU-bb\"}", "job.gpu_visibility=own",
                                 "job.processes_per_host=gpu"});
  ASSERT_TRUE(there) << there.error().text;
  EXPECT_EQ(there->gpu_lists, (std::vector<std::string>{"3", "GPU-bb"}));
  EXPECT_EQ(*ProcessesPerHost(settings_, hardware_), 2);
  const auto draft = PlaceRanks(settings_, Server(), {});
  ASSERT_TRUE(draft) << draft.error().text;
  EXPECT_EQ((*draft)[1].local_size, 2) << "a host that has not joined has what is given to it";
}

TEST_F(GivenGpus, ThatAHostDoesNotHaveAreAnError) {
  EXPECT_THAT(PlaceOn(1, {"cluster.gpus={\"b.invalid\" = \"2,7\"}"}).error().text,
              AllOf(HasSubstr("cluster.gpus: '2,7' is for host b-itself, which has 4 GPUs")));
  EXPECT_EQ(Variable(*PlaceOn(1, {"cluster.gpus={\"b.invalid\" = \"\"}"})), "") << "meant to hide all";
}

TEST_F(GivenGpus, OfAHostWithoutAnyAreTold) {
  const spec::JobSpec spec = With({"cluster.hosts=a.invalid", "cluster.gpus={\"a.invalid\" = \"0\"}"});
  HostOffer offer;
  offer.name = "a";
  EXPECT_THAT(
      GpuListWarnings(spec, {HardwareOf(spec, {}, offer)}),
      ElementsAre(
          "cluster.gpus gives '0', which selects no GPU of host a (it has none); correct cluster.gpus"));
}

}  // namespace
}  // namespace dtrun::plan
