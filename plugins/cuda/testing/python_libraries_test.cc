#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "plugins/cuda/cuda_api.h"

namespace dtrun::cuda {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PythonLibrariesTest : public ::testing::Test {
 protected:
  PythonLibrariesTest() {
    std::string name = ::testing::TempDir() + "python-XXXXXX";
    root_ = ::mkdtemp(name.data());
  }
  ~PythonLibrariesTest() override { fs::remove_all(root_); }

  std::string Put(const fs::path& file, bool executable = false) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << "x";
    if (executable) fs::permissions(root_ / file, fs::perms::owner_all);
    return (root_ / file).string();
  }
  std::string Folder(const char* name) const { return (root_ / name).string(); }

  fs::path root_;
};

TEST_F(PythonLibrariesTest, AreThoseOfTheWheelsOfTheFirstPythonOnThePath) {
  Put("usr/bin/python3.9", true);
  Put("usr/bin/python3", false);  // no program
  fs::create_directories(root_ / "venv/bin");
  fs::create_symlink(root_ / "usr/bin/python3.9", root_ / "venv/bin/python3");
  const std::string nccl = Put("venv/lib/python3.9/site-packages/nvidia/nccl/lib/libnccl.so.2");
  const std::string newer = Put("venv/lib/python3.9/site-packages/nvidia/cu13/lib/libcudart.so.13");
  const std::string older = Put("venv/lib/python3.9/site-packages/nvidia/cuda_runtime/lib/libcudart.so.12");
  Put("venv/lib/python3.8/site-packages/nvidia/nccl/lib/libnccl.so.2");  // of another version
  Put("other/lib/python3.9/site-packages/nvidia/nccl/lib/libnccl.so.2");
  Put("other/bin/python3", true);
  const std::string path =
      "relative::" + Folder("usr/bin") + ":" + Folder("venv/bin") + ":" + Folder("other/bin");
  EXPECT_THAT(PythonLibraries({"libnccl.so.2"}, path), ElementsAre(nccl));
  EXPECT_THAT(PythonLibraries({"libcudart.so.13", "libcudart.so.12"}, path), ElementsAre(newer, older));
}

TEST_F(PythonLibrariesTest, OfAnInterpreterWithoutAVersionMayBeOfAny) {
  Put("conda/bin/python3", true);
  const std::string nccl = Put("conda/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2");
  Put("conda/lib/pkgconfig/site-packages/nvidia/nccl/lib/libnccl.so.2");
  EXPECT_THAT(PythonLibraries({"libnccl.so.2"}, Folder("conda/bin")), ElementsAre(nccl));
}

TEST_F(PythonLibrariesTest, AreNoneWithoutAPython) {
  EXPECT_THAT(PythonLibraries({"libnccl.so.2"}, ""), IsEmpty());
  EXPECT_THAT(PythonLibraries({"libnccl.so.2"}, Folder("nosuch")), IsEmpty());
}

}  // namespace
}  // namespace dtrun::cuda
