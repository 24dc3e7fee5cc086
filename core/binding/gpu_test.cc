#include "core/binding/gpu.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>  // mkdtemp

#include <fstream>
#include <map>

namespace dtrun::binding {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A folder that replaces "/".
class Root {
 public:
  Root() {
    std::string name = (std::filesystem::temp_directory_path() / "dtrun-gpu-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~Root() { std::filesystem::remove_all(path_); }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void Write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text;
  }

  void AddNvidia(const std::string& pci, int minor, const std::string& uuid, int numa) const {
    Write("proc/driver/nvidia/gpus/" + pci + "/information",
          fmt::format("Model: \t\t NVIDIA Card\nGPU UUID: \t {}\nBus Location: \t {}\nDevice Minor: \t {}\n",
                      uuid, pci, minor));
    Write(fmt::format("dev/nvidia{}", minor), "");
    Write("sys/bus/pci/devices/" + pci + "/numa_node", fmt::format("{}\n", numa));
  }
  void AddAmd(int node, unsigned location, int render, const std::string& unique_id) const {
    Write(fmt::format("sys/class/kfd/kfd/topology/nodes/{}/properties", node),
          fmt::format("cpu_cores_count 0\nsimd_count 416\ndomain 0\nlocation_id {}\ndrm_render_minor {}\n"
                      "unique_id {}\n",
                      location, render, unique_id));
    Write(fmt::format("dev/dri/renderD{}", render), "");
  }

 private:
  std::filesystem::path path_;
};

std::vector<std::string> Names(const std::vector<Gpu>& gpus) {
  std::vector<std::string> out;
  for (const Gpu& gpu : gpus) out.push_back(gpu.name);
  return out;
}

std::vector<int> Nodes(const std::vector<Gpu>& gpus) {
  std::vector<int> out;
  for (const Gpu& gpu : gpus) out.push_back(gpu.numa);
  return out;
}

std::vector<Gpu> Four() {
  return {{"GPU-aa11", 0, "0"}, {"GPU-aa22", 0, "1"}, {"GPU-bb33", 1, "2"}, {"GPU-cc44", 1, "3"}};
}

std::vector<std::string> Selected(const char* list) { return Names(Select(Four(), list)); }

std::vector<Gpu> VisibleUnder(const Gpus& gpus, const std::map<std::string, std::string>& variables) {
  return VisibleGpus(gpus, [&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

TEST(ReadGpus, FindsNoneWhereThereAreNone) { EXPECT_THAT(ReadGpus(Root().path()).devices, IsEmpty()); }

TEST(ReadGpus, OrdersNvidiaByPciAddressWhateverTheDeviceFiles) {
  const Root root;
  root.AddNvidia("0000:5a:00.0", 0, "GPU-second", 1);
  root.AddNvidia("0000:1b:00.0", 1, "GPU-first", 0);
  root.Write("dev/nvidiactl", "");
  root.Write("dev/nvidia-uvm", "");
  const Gpus gpus = ReadGpus(root.path());
  EXPECT_EQ(gpus.vendor, Vendor::kNvidia);
  EXPECT_THAT(Names(gpus.devices), ElementsAre("0", "1"));
  EXPECT_EQ(gpus.devices[0].uuid, "GPU-first");
  EXPECT_THAT(Nodes(gpus.devices), ElementsAre(0, 1));
}

TEST(ReadGpus, LeavesOutWhatAContainerWasNotGiven) {
  const Root root;
  root.AddNvidia("0000:1b:00.0", 0, "GPU-first", 0);
  root.AddNvidia("0000:5a:00.0", 1, "GPU-second", 1);
  std::filesystem::remove(root.path() / "dev/nvidia0");
  EXPECT_EQ(ReadGpus(root.path()).devices.at(0).uuid, "GPU-second");
  EXPECT_EQ(ReadGpus(root.path()).devices.size(), 1u);
}

TEST(ReadGpus, CountsDeviceFilesWhereTheDriverSaysNoMore) {
  const Root root;
  for (const char* file : {"dev/nvidia0", "dev/nvidia7", "dev/nvidia-modeset"}) root.Write(file, "");
  EXPECT_THAT(Names(ReadGpus(root.path()).devices), ElementsAre("0", "1"));
  EXPECT_THAT(Nodes(ReadGpus(root.path()).devices), ElementsAre(-1, -1));
}

TEST(ReadGpus, FindsAmdBehindTheProcessors) {
  const Root root;
  root.Write("sys/class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 64\nsimd_count 0\n");
  root.AddAmd(2, 0xc100, 129, "17");
  root.AddAmd(10, 0x2300, 130, "0");
  root.AddAmd(3, 0x0500, 128, "18");
  std::filesystem::remove(root.path() / "dev/dri/renderD128");
  root.Write("sys/bus/pci/devices/0000:c1:00.0/numa_node", "1");
  const Gpus gpus = ReadGpus(root.path());
  EXPECT_EQ(gpus.vendor, Vendor::kAmd);
  EXPECT_THAT(Names(gpus.devices), ElementsAre("0", "1"));
  EXPECT_EQ(gpus.devices[0].uuid, "GPU-0000000000000011");
  EXPECT_EQ(gpus.devices[1].uuid, "");
  EXPECT_THAT(Nodes(gpus.devices), ElementsAre(1, -1));
}

TEST(VisibleDevices, AreThoseOfTheListInItsOrder) {
  EXPECT_THAT(Selected("2,0"), ElementsAre("2", "0"));
  EXPECT_THAT(Selected(" 3 , 1 "), ElementsAre("3", "1"));
  EXPECT_THAT(Nodes(Select(Four(), "2,0")), ElementsAre(1, 0));
}

TEST(VisibleDevices, EndAtTheFirstEntryThatNamesNone) {
  EXPECT_THAT(Selected("1,-1,2"), ElementsAre("1"));
  EXPECT_THAT(Selected("1,4,2"), ElementsAre("1"));
  EXPECT_THAT(Selected("0,x,2"), ElementsAre("0"));
  EXPECT_THAT(Selected("0,,2"), ElementsAre("0"));
  EXPECT_THAT(Selected("GPU-bb,GPU-zz,GPU-cc"), ElementsAre("GPU-bb"));
}

TEST(VisibleDevices, AreNoneWhenTheListIsEmptyOrMinusOne) {
  for (const char* list : {"", " ", "-1", "none", "NoDevFiles", "99999999999999999999"})
    EXPECT_THAT(Selected(list), IsEmpty()) << list;
}

TEST(VisibleDevices, AreNoneWhenOneIsNamedTwice) {
  EXPECT_THAT(Selected("0,1,0"), IsEmpty());
  EXPECT_THAT(Selected("GPU-bb,GPU-bb33"), IsEmpty());
}

TEST(VisibleDevices, CanBeNamedByTheBeginningOfTheirUuid) {
  EXPECT_THAT(Selected("GPU-cc44,GPU-b"), ElementsAre("GPU-cc44", "GPU-b"));
  EXPECT_THAT(Selected("GPU-aa"), IsEmpty()) << "two begin so";
}

TEST(VisibleDevices, CountSlicesOfADevice) {
  const auto slices = Select(Four(), "MIG-1,MIG-2");
  EXPECT_THAT(Names(slices), ElementsAre("MIG-1", "MIG-2"));
  EXPECT_THAT(Nodes(slices), ElementsAre(-1, -1));
}

TEST(VisibleDevices, CountSlicesThatAreWrittenAsCudaWritesThem) {
  const char* const uuid = "MIG-1f0e2d3c-0123-4567-89ab-0123456789ab";
  const char* const numbered = "MIG-GPU-1f0e2d3c-0123-4567-89ab-0123456789ab/7/0";
  for (const char* slice : {uuid, numbered, "MIG-1f0e"}) EXPECT_THAT(Selected(slice), ElementsAre(slice));
  for (const char* list :
       {"MIG-banana", "MIG-", "MIG-GPU-1f0e", "MIG-GPU-1f0e/x", "MIG-1f0e/7/0", "mig-1f0e"})
    EXPECT_THAT(Selected(list), IsEmpty()) << list;
}

TEST(ListText, NamesWhatNarrowsWithItsValue) {
  const std::map<std::string, std::string> lists = {{"CUDA_VISIBLE_DEVICES", "0,\x1b"},
                                                    {"HIP_VISIBLE_DEVICES", ""}};
  const Variable variable = [&](const char* name) {
    const auto found = lists.find(name);
    return found == lists.end() ? std::nullopt : std::optional(found->second);
  };
  EXPECT_EQ(ListText(Vendor::kNvidia, variable), "CUDA_VISIBLE_DEVICES is '0,\\u001b'");
  EXPECT_EQ(ListText(Vendor::kAmd, variable),
            "HIP_VISIBLE_DEVICES is '' and CUDA_VISIBLE_DEVICES is '0,\\u001b'");
  EXPECT_EQ(ListText(Vendor::kNvidia, [](const char*) { return std::nullopt; }), "");
}

TEST(VisibleGpus, AreAllWithoutAList) {
  EXPECT_THAT(Names(VisibleUnder({Vendor::kNvidia, Four()}, {})), ElementsAre("0", "1", "2", "3"));
}

TEST(VisibleGpus, FollowTheVendorsOwnList) {
  const std::map<std::string, std::string> lists = {{"CUDA_VISIBLE_DEVICES", "1"},
                                                    {"HIP_VISIBLE_DEVICES", "2"}};
  EXPECT_THAT(Names(VisibleUnder({Vendor::kNvidia, Four()}, lists)), ElementsAre("1"));
  EXPECT_THAT(Names(VisibleUnder({Vendor::kAmd, Four()}, lists)), ElementsAre("2"));
}

TEST(VisibleGpus, OfAmdAreNarrowedTwice) {
  const auto visible = VisibleUnder(
      {Vendor::kAmd, Four()}, {{"ROCR_VISIBLE_DEVICES", "GPU-bb33,GPU-aa11"}, {"HIP_VISIBLE_DEVICES", "1"}});
  ASSERT_EQ(visible.size(), 1u);
  EXPECT_EQ(visible[0].uuid, "GPU-aa11");
  EXPECT_EQ(visible[0].name, "1");
}

TEST(VisibleGpus, AreNotNarrowedByWhatAContainerHasAppliedAlready) {
  EXPECT_EQ(VisibleUnder({Vendor::kNvidia, Four()}, {{"NVIDIA_VISIBLE_DEVICES", "3"}}).size(), 4u);
}

TEST(OwnLists, GiveEachRankItsPart) {
  EXPECT_THAT(*OwnLists(Select(Four(), "3,GPU-bb"), 2, "", 4), ElementsAre("3", "GPU-bb"));
  EXPECT_THAT(*OwnLists(Four(), 2, "", 4), ElementsAre("0,1", "2,3"));
}

TEST(OwnLists, RefuseMoreRanksThanDevices) {
  const std::string list = "CUDA_VISIBLE_DEVICES is '3,1'";
  EXPECT_EQ(
      OwnLists(Select(Four(), "3,1"), 3, list, 4).error().text,
      "3 ranks want a GPU each on this host and 2 are visible (3,1): CUDA_VISIBLE_DEVICES is '3,1', and the "
      "host has 4 GPUs; start fewer ranks on a host (-n, job.processes_per_host) or let ranks share with "
      "\"all\"");
  EXPECT_THAT(OwnLists(Four(), 5, "", 4).error().text,
              HasSubstr("4 are visible (0,1,2,3); start fewer ranks"));
  EXPECT_THAT(OwnLists({}, 1, list, 4).error().text,
              HasSubstr("the host has 4 GPUs; correct that list, or unset it"));
  EXPECT_THAT(OwnLists({}, 1, list, 0).error().text,
              HasSubstr("0 are visible: CUDA_VISIBLE_DEVICES is '3,1', and the host has no GPUs; leave "));
  EXPECT_THAT(OwnLists({}, 1, "", 0).error().text, HasSubstr("0 are visible, as the host has none; leave "));
}

}  // namespace
}  // namespace dtrun::binding
