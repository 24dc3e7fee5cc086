#include "launchers/mpirun/family.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace dtrun::mpirun {
namespace {

TEST(FamilyOfVersion, KnowsThoseThatAreCommon) {
  EXPECT_EQ(FamilyOfVersion("mpirun (Open MPI) 4.1.4\n\nReport bugs to ..."), Family::kOpenMpi);
  EXPECT_EQ(FamilyOfVersion("mpirun (Open MPI) 5.0.3\n"), Family::kOpenMpi);
  EXPECT_EQ(FamilyOfVersion("prterun (PRRTE) 3.0.5\n"), Family::kOpenMpi);
  EXPECT_EQ(FamilyOfVersion("HYDRA build details:\n    Version: 4.0.2\n"), Family::kMpich);
  EXPECT_EQ(FamilyOfVersion("Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626\n"),
            Family::kIntel);
  EXPECT_EQ(FamilyOfVersion(""), std::nullopt);
  EXPECT_EQ(FamilyOfVersion("srun: unknown option"), std::nullopt);
}

class RecogniseFamilyTest : public ::testing::Test {
 protected:
  RecogniseFamilyTest() {
    std::string name = "/tmp/family_test.XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~RecogniseFamilyTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path Make(const std::string& name, const std::string& script) {
    std::ofstream(folder_ / name) << "#!/bin/sh\n" << script;
    ::chmod((folder_ / name).c_str(), 0755);
    return folder_ / name;
  }

  std::filesystem::path folder_;
};

TEST_F(RecogniseFamilyTest, AsksWhatTheNameDoesNotTell) {
  Make("mpirun", "echo 'Intel(R) MPI Library for Linux* OS'");
  Make("mpiexec.hydra", "echo 'HYDRA build details:'");
  const std::string path = "/nowhere:" + folder_.string();
  EXPECT_EQ(RecogniseFamily("mpirun", path), Family::kIntel);
  EXPECT_EQ(RecogniseFamily("mpiexec.hydra", path), Family::kMpich);
  EXPECT_EQ(RecogniseFamily((folder_ / "mpirun").string(), ""), Family::kIntel);
}

TEST_F(RecogniseFamilyTest, FollowsLinksAndDoesNotAskThen) {
  Make("orterun", "touch " + (folder_ / "asked").string());
  std::filesystem::create_symlink(folder_ / "orterun", folder_ / "mpirun");
  EXPECT_EQ(RecogniseFamily("mpirun", folder_.string()), Family::kOpenMpi);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "asked"));
}

TEST_F(RecogniseFamilyTest, GoesByTheNameWhereNobodyAnswers) {
  EXPECT_EQ(RecogniseFamily("mpirun", folder_.string()), Family::kOpenMpi);
  EXPECT_EQ(RecogniseFamily("mpiexec.hydra", folder_.string()), Family::kMpich);
  EXPECT_EQ(RecogniseFamily("mpiexec.mpich", folder_.string()), Family::kMpich);
  Make("mpiexec", "yes");
  EXPECT_EQ(RecogniseFamily("mpiexec", folder_.string()), Family::kOpenMpi) << "and ends what does not end";
}

}  // namespace
}  // namespace dtrun::mpirun
