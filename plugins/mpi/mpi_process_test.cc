// Stories of whole processes: what mpirun, the program and the plugin do to each other. Each
// test starts scenario.cc, once per rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Ended {
  int status = -1;
  std::string output;
  std::chrono::steady_clock::duration took{};
};

Ended Shell(const std::string& command) {
  const auto start = std::chrono::steady_clock::now();
  Ended ended;
  FILE* const pipe = popen((command + " 2>&1 </dev/null").c_str(), "r");
  std::array<char, 4096> buffer;
  while (const std::size_t size = std::fread(buffer.data(), 1, buffer.size(), pipe))
    ended.output.append(buffer.data(), size);
  const int raw = pclose(pipe);
  ended.status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
  ended.took = std::chrono::steady_clock::now() - start;
  return ended;
}

const std::string kScenario = std::string(SCENARIO) + " ";

Ended UnderMpirun(int ranks, const std::string& story, const std::string& flags = "") {
  return Shell(std::string(PYTHON " " UNDER_MPIRUN " --mpirun " MPIRUN " ") + flags + " -n " +
               std::to_string(ranks) + " " + kScenario + story + " " MPI_PLUGIN_FILE);
}

// Long enough for a loaded machine, shorter than any wait that should not happen.
constexpr auto kSoon = std::chrono::seconds(25);

TEST(MpiWithoutALauncher, SaysInOneSentenceHowToStartTheJob) {
  std::string folder = (std::filesystem::temp_directory_path() / "dtrun-mpi-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  // Two processes that Open MPI did not start may both try to make its folder, and one ends then.
  const auto started = [&](const std::string& rank) {
    std::filesystem::create_directory(folder + "/" + rank);
    return Shell("STORY_RANK=" + rank + " TMPDIR=" + folder + "/" + rank +
                 " STORY_SIZE=2 SUITE_FOLDER=" + folder + " " + kScenario + "alone " MPI_PLUGIN_FILE);
  };
  Ended other;
  std::thread second([&] { other = started("1"); });
  const Ended first = started("0");
  second.join();
  EXPECT_EQ(first.status, 0) << first.output;
  EXPECT_EQ(other.status, 0) << other.output;
  std::filesystem::remove_all(folder);
}

Ended Refused(const std::string& program, const std::string& library) {
  return Shell(program + " " MPI_PLUGIN_FILE " " + library);
}

TEST(MpiLibrary, RefusesAnotherMpiByName) {
  const Ended ended = Refused(REFUSED, NOT_MPI);
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.output, AllOf(HasSubstr(NOT_MPI), HasSubstr("'MPICH Version: 4.0.2', not Open MPI"),
                                  HasSubstr("set the option 'library'")));
}

TEST(MpiLibrary, RefusesFilesThatAreNoMpi) {
  EXPECT_THAT(Refused(REFUSED, "libm.so.6").output, HasSubstr("'libm.so.6' is no MPI library"));
  EXPECT_THAT(Refused(REFUSED, "/nowhere/libmpi.so").output, HasSubstr("cannot open '/nowhere/libmpi.so'"));
}

TEST(MpiLibrary, RefusesASecondMpiBesideThatOfTheProgram) {
  const Ended ended = Refused(REFUSED_LINKED, NOT_MPI);
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.output, AllOf(HasSubstr("this program already uses"), HasSubstr(NOT_MPI)));
}

TEST(MpiOfTheProgram, StaysAliveWhenThePluginGoes) {
  const Ended ended = UnderMpirun(2, "initialised");
  EXPECT_EQ(ended.status, 0) << ended.output;
}

TEST(MpiOfTheProgram, IsAskedWhetherItTakesMemoryOfCuda) {
  const Ended ended = UnderMpirun(2, "cuda_aware");
  EXPECT_EQ(ended.status, 0) << ended.output;
}

TEST(MpiOfTheProgram, IsRefusedWhenItAllowsOneThreadOnly) {
  const Ended ended = UnderMpirun(2, "single");
  EXPECT_EQ(ended.status, 0) << ended.output;
}

TEST(MpiOfTheProgram, ServesTwoCommunicatorsOneThreadAtATime) {
  const Ended ended = UnderMpirun(2, "serialized");
  EXPECT_EQ(ended.status, 0) << ended.output;
}

TEST(MpiRank, ThatIsKilledIsNamedAndOthersEnd) {
  const Ended ended = UnderMpirun(3, "killed", "--survive");
  EXPECT_THAT(ended.output, AllOf(HasSubstr("rank 0 survived"), HasSubstr("rank 1 survived"),
                                  ::testing::Not(HasSubstr("scenario killed:"))));
  EXPECT_LT(ended.took, kSoon);
}

TEST(MpiCall, ThatNeverEndsKeepsNeitherTheCallerNorTheProcess) {
  const Ended ended = UnderMpirun(2, "stuck");
  EXPECT_THAT(ended.output, AllOf(HasSubstr("gone on"), ::testing::Not(HasSubstr("scenario stuck:"))));
  EXPECT_LT(ended.took, kSoon);
}

}  // namespace
