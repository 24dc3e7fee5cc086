#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/spec/file.h"
#include "core/spec/read.h"
#include "core/spec/testing.h"

namespace dtrun::spec {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class LoadTest : public ::testing::Test {
 protected:
  JobSpec Good(std::string_view text, Request request = {}) {
    request.file = folder_.Write("train.toml", text);
    Loaded loaded = Load(request, {});
    EXPECT_EQ(folder_.Short(loaded.problems), "");
    return std::move(loaded.spec);
  }
  std::string Problems(std::string_view text) { return folder_.ProblemsOf(text); }

  TestFolder folder_;
};

TEST_F(LoadTest, FillsEveryDefaultAroundTheShortestFile) {
  const JobSpec spec = Good("[job]\ncommand = [\"true\"]\n");
  EXPECT_EQ(*spec.job.name, "train");
  EXPECT_EQ(*spec.job.command, std::vector<std::string>{"true"});
  EXPECT_EQ(*spec.job.processes_per_host, 1);
  EXPECT_FALSE(spec.job.env.has());
  EXPECT_FALSE(spec.job.cwd.has());
  EXPECT_EQ(*spec.job.grace, std::chrono::seconds(10));
  EXPECT_EQ(*spec.launcher.name, "per-process");
  EXPECT_EQ(*spec.backend.name, "gloo");
  EXPECT_EQ(*spec.backend.timeout, std::chrono::seconds(60));
  EXPECT_EQ(*spec.logs.dir, "runs/{job}/{time}");
  EXPECT_EQ(*spec.output.prefix, "auto");
  EXPECT_EQ(spec.folder, folder_.path());
}

TEST_F(LoadTest, ReadsEveryOptionOfAFullFile) {
  std::filesystem::create_directory(folder_.path() / "plugins");
  const JobSpec spec = Good(R"([job]
name = "mnist"
command = ["bin/train", "--epochs", "5"]
processes_per_host = "auto"
env = { OMP_NUM_THREADS = 1, DEBUG = true }
cwd = "."
grace = "500ms"
[launcher]
path = "lib/libdtrun_launcher_l.so"
[backend]
name = "none"
path = "/lib/b.so"
timeout = "2m"
options = { anything = 1 }
[plugins]
path = ["plugins", "/usr"]
[logs]
dir = "logs"
[output]
prefix = "rank"
)");
  EXPECT_EQ(*spec.job.name, "mnist");
  EXPECT_TRUE(spec.job.processes_per_host.is("auto"));
  EXPECT_EQ(spec.job.env->at("OMP_NUM_THREADS"), "1");
  EXPECT_EQ(spec.job.env->at("DEBUG"), "true");
  EXPECT_EQ(std::filesystem::path(*spec.job.cwd), folder_.path() / "");
  EXPECT_EQ(*spec.launcher.path, folder_.path() / "lib/libdtrun_launcher_l.so");
  EXPECT_EQ(*spec.backend.path, "/lib/b.so");
  EXPECT_EQ(*spec.plugins.path, (std::vector<std::string>{folder_.path() / "plugins", "/usr"}));
  EXPECT_EQ(spec.job.grace.value.origin.kind, DTRUN_ORIGIN_FILE);
  EXPECT_THAT(spec.job.grace.value.origin.place, ::testing::EndsWith("train.toml:7:9"));
}

TEST_F(LoadTest, NamesAPluginByItsFile) {
  const std::string job = "[job]\ncommand = [\"true\"]\n";
  const JobSpec spec = Good(job + "[launcher]\npath = \"/l/libdtrun_launcher_per_rack.so\"\n"
                                  "[backend]\npath = \"/l/libdtrun_backend_net.so\"\n");
  EXPECT_EQ(*spec.launcher.name, "per-rack");
  EXPECT_EQ(BackendNames(spec), std::vector<std::string>{"net"});
  EXPECT_EQ(BackendNames(Good(job + "[backend]\nname = \"net\"\npath = \"/l/b.so\"\n")),
            std::vector<std::string>{"net"});
  EXPECT_THAT(Problems(job + "[backend]\npath = \"/l/b.so\"\n"), HasSubstr("backend.name"));
}

TEST_F(LoadTest, ReportsAllProblemsInTheOrderOfTheFile) {
  EXPECT_EQ(
      Problems(R"([job]
processes_per_host = "two"
command = ["train", 5]
grace = "2h"
[backend]
  nam = "gloo"
[output]
prefix = "rnk"
[bakend]
)"),
      R"(dtrun: train.toml:2:22: job.processes_per_host: expected a number from 1 to 4096 or one of "cpu", "gpu", "auto"; found "two"; see: dtrun config explain job.processes_per_host
dtrun: train.toml:3:21: job.command[1]: expected a string; found integer 5; quote it; see: dtrun config explain job.command
dtrun: train.toml:4:9: job.grace: expected a duration such as "60s", from 0s to 1h; found "2h"; see: dtrun config explain job.grace
dtrun: train.toml:6:3: unknown option 'backend.nam'; did you mean 'name' (string or list of strings, default "gloo")? see: dtrun config explain backend.name
dtrun: train.toml:8:10: output.prefix: expected one of "auto", "rank", "host", "none"; found "rnk", did you mean "rank"? see: dtrun config explain output.prefix
dtrun: train.toml:9:2: unknown table 'bakend'; did you mean 'backend'? see: dtrun config explain backend
)");
}

TEST_F(LoadTest, RefusesValuesOutOfRange) {
  const std::string head = "[job]\ncommand = [\"x\"]\n";
  EXPECT_THAT(Problems(head + "processes_per_host = 0\n"), HasSubstr("from 1 to 4096 or one of"));
  EXPECT_THAT(Problems(head + "processes_per_host = 0\n"), HasSubstr("found 0"));
  EXPECT_THAT(Problems(head + "processes_per_host = 4097\n"), HasSubstr("found 4097"));
  EXPECT_THAT(Problems(head + "processes_per_host = 2.0\n"), HasSubstr("found number 2"));
  EXPECT_THAT(Problems(head + "[backend]\ntimeout = \"0s\"\n"), HasSubstr("from 1ms to 24h; found \"0s\""));
}

TEST_F(LoadTest, SaysThatTheCommandIsMissing) {
  EXPECT_EQ(Problems("[backend]\nname = \"gloo\"\n"),
            "dtrun: train.toml: job.command is required and not set; "
            "write command = [\"python3\", \"train.py\"] below [job], or type the program: dtrun train.toml "
            "python3 train.py\n");
  EXPECT_THAT(Problems(""),
              StartsWith("dtrun: train.toml: the file is empty: job.command is required and not set; "));
  EXPECT_THAT(Problems("# nothing\n"), HasSubstr("the file is empty"));
  EXPECT_THAT(Problems("[job]\ncommand = []\n"),
              StartsWith("dtrun: train.toml:2:11: job.command: expected a program"));
  EXPECT_THAT(Problems("[job]\ncommand = [\"\"]\n"),
              HasSubstr("expected a program and its arguments; found [\"\"]"));
}

TEST_F(LoadTest, DoesNotMissWhatWasMisspelled) {
  for (const char* text :
       {"[job]\ncomand = [\"a\"]\n", "command = [\"a\"]\n", "[jobs]\ncommand = [\"a\"]\n"}) {
    EXPECT_THAT(Problems(text), HasSubstr("did you mean")) << text;
    EXPECT_THAT(Problems(text), Not(HasSubstr("is required"))) << text;
  }
  EXPECT_THAT(Problems("[job]\nnam = \"a\"\n"), HasSubstr("is required"));
}

TEST_F(LoadTest, SaysHowHostsAreWritten) {
  EXPECT_THAT(Problems("[job]\ncommand = [\"a\"]\n[[cluster.hosts]]\nname = \"a\"\nslots = 2\n"),
              HasSubstr("write hosts = [\"a:2\"]"));
  EXPECT_THAT(Problems("[job]\ncommand = [\"a\"]\n[cluster.hosts]\nnode0 = 4\n"),
              HasSubstr("write hosts = [\"node0:4\"]"));
}

TEST_F(LoadTest, DoesNotNeedACommandThatTheCommandLineGives) {
  Request request;
  request.command = {"python3", "train.py"};
  EXPECT_EQ(*Good("", request).job.command, request.command);
  const JobSpec spec = Good("[job]\ncommand = [\"other\"]\n", request);
  EXPECT_EQ(*spec.job.command, request.command);
  EXPECT_EQ(spec.job.command.value.origin.kind, DTRUN_ORIGIN_COMMAND_LINE);
}

TEST_F(LoadTest, ChecksTheCommandOfTheCommandLineToo) {
  Request request;
  request.command = {"true", "\xff"};
  EXPECT_THAT(folder_.ProblemsOf("", request),
              StartsWith("dtrun: command line: job.command: expected UTF-8; found byte 0xff at offset 0; "));
  request.command = {""};
  EXPECT_THAT(folder_.ProblemsOf("", request), HasSubstr("command line: job.command: expected a program"));
}

TEST_F(LoadTest, WorksWithoutAFile) {
  Request request;
  EXPECT_EQ(Render(Load(request, {}).problems),
            "dtrun: job.command is required and not set; "
            "write command = [\"python3\", \"train.py\"] below [job], or type the program: dtrun python3 "
            "train.py\n");
  request.command = {"true"};
  const Loaded loaded = Load(request, {});
  EXPECT_THAT(loaded.problems, IsEmpty());
  EXPECT_EQ(*loaded.spec.job.name, "job");
  EXPECT_EQ(loaded.spec.folder, std::filesystem::current_path());
}

TEST_F(LoadTest, NamesAJobWithoutAFileByItsScript) {
  const auto name = [](std::vector<std::string> command) {
    Request request;
    request.command = std::move(command);
    return *Load(request, {}).spec.job.name;
  };
  EXPECT_EQ(name({"python3", "-u", "src/train.py", "--lr", "1"}), "train");
  EXPECT_EQ(name({"./my run.sh"}), "my-run");
  EXPECT_EQ(name({"python3", "-c", "print(1)", "x.py"}), "job");
  EXPECT_EQ(name({"cp", "a", "b.sh"}), "job");
  EXPECT_EQ(name({"./train", "--lr", "1"}), "train");
  EXPECT_EQ(name({"/opt/solver/build/solver.x", "a.py"}), "a");
  EXPECT_EQ(name({"/usr/bin/env", "true"}), "job");
  EXPECT_EQ(name({"./python3", "-c", "print(1)"}), "job");
  EXPECT_EQ(name({"python3", "train--token sekret1.py"}), "job");
}

TEST_F(LoadTest, NamesNoJobAfterTheTextOfAShell) {
  Request request;
  const auto name = [&](std::vector<std::string> command) {
    request.command = std::move(command);
    return *Load(request, {}).spec.job.name;
  };
  EXPECT_EQ(name({"sh", "-c", "sleep 1; exec python3 a.py"}), name({"true"}));
  EXPECT_EQ(name({"bash", "-ec", "python3 a.py"}), name({"true"}));
  EXPECT_EQ(name({"python3", "-u", "a.py"}), "a");
}

TEST_F(LoadTest, MakesALegalJobNameOfAnyFileName) {
  Request request;
  request.command = {"true"};
  const auto name = [&](const std::string& file) {
    request.file = folder_.Write(file, "");
    return *Load(request, {}).spec.job.name;
  };
  EXPECT_EQ(name("my run.v2.toml"), "my-run.v2");
  EXPECT_EQ(name("\xc3\xa9.toml"), "--");
  EXPECT_EQ(name(std::string(80, 'a') + ".toml"), std::string(64, 'a'));
  for (const char* bad : {"", "a/b", "..", ".", "é"}) {
    EXPECT_THAT(Problems("[job]\ncommand = [\"x\"]\nname = \"" + std::string(bad) + "\"\n"),
                HasSubstr("job.name: expected 1 to 64 of the characters"))
        << bad;
  }
}

TEST_F(LoadTest, RefusesControlCharactersInATextThatIsShown) {
  EXPECT_THAT(Problems("[job]\ncommand = [\"x\"]\n[logs]\ndir = \"a\\u001b[31m\"\n"),
              HasSubstr("logs.dir: expected a text without control characters; found \"a\\u001b[31m\""));
}

TEST_F(LoadTest, RefusesAPlaceholderOfTheLogsThatItDoesNotKnow) {
  EXPECT_THAT(Problems("[job]\ncommand = [\"x\"]\n[logs]\ndir = \"runs/{date}/{time}\"\n"),
              HasSubstr("logs.dir: unknown placeholder \"{date}\"; known are {job} and {time}"));
  EXPECT_EQ(Problems("[job]\ncommand = [\"x\"]\n[logs]\ndir = \"runs/{job}-{time}/{\"\n"), "");
}

TEST_F(LoadTest, RefusesAnEmptyFolderOfLogsAsAnUnsetVariableMakesIt) {
  EXPECT_THAT(Problems("[job]\ncommand = [\"x\"]\n[logs]\ndir = \"\"\n"),
              HasSubstr("logs.dir: expected a folder; found \"\" (write \".\" for the working directory)"));
}

TEST_F(LoadTest, ExplainsAFileItCannotRead) {
  Request request;
  request.file = folder_.path() / "none.toml";
  EXPECT_EQ(
      folder_.Short(Load(request, {}).problems),
      "dtrun: none.toml: cannot open the file: no such file or directory; 'dtrun config init none.toml' "
      "writes a new one\n");
  request.file = folder_.path();
  EXPECT_THAT(Render(Load(request, {}).problems), HasSubstr("this is a folder"));
  EXPECT_THAT(Problems(std::string(kMaxFileBytes + 1, '#')), HasSubstr("the file has more than 1MiB"));
}

TEST_F(LoadTest, PointsAtWhereTheTextIsNotToml) {
  EXPECT_THAT(Problems("[job]\ncommand = \"x\n"),
              StartsWith("dtrun: train.toml:2:13: syntax error in string: "));
  EXPECT_THAT(Problems("[job]\nname = \"\xff\"\n"),
              StartsWith("dtrun: train.toml:2:9: byte 0xff at offset 14 is not UTF-8"));
  EXPECT_EQ(Problems("a = 1\na = 2\n"),
            "dtrun: train.toml:2:5: 'a' is given twice, first in line 1; remove one\n");
  EXPECT_EQ(Problems("[job]\nname = \"a\"\nb.name = 1\nname = [\"b\"]\n"),
            "dtrun: train.toml:4:8: 'name' is given twice, first in line 2; remove one\n");
  EXPECT_EQ(Problems("[job]\nname = \"a\"\n[job]\n"),
            "dtrun: train.toml:3:1: [job] is repeated, first in line 1; merge the two\n");
}

TEST_F(LoadTest, SaysHowAnotherLaunchersWordIsCalledHere) {
  EXPECT_THAT(Problems("[job]\ncommand = [\"x\"]\nnproc_per_node = 4\n"),
              HasSubstr("did you mean 'processes_per_host'"));
  EXPECT_THAT(Problems("[job]\ncommand = [\"x\"]\n[cluster]\nnnodes = 4\n"), HasSubstr("'host_count'"));
  EXPECT_THAT(Problems("np = 4\n[job]\ncommand = [\"x\"]\n"), HasSubstr("'job.ranks'"));
}

TEST_F(LoadTest, SaysHowANumberIsWritten) {
  const std::string head = "[job]\ncommand = [\"x\"]\n";
  EXPECT_THAT(Problems(head + "grace = 10\n"), HasSubstr("found integer 10, did you mean \"10s\"?"));
  EXPECT_THAT(Problems(head + "processes_per_host = \"4\"\n"),
              HasSubstr("found \"4\"; write it without quotes"));
  EXPECT_THAT(Problems(head + "ranks = \"4\"\n"), HasSubstr("found string \"4\"; write it without quotes"));
}

TEST_F(LoadTest, StillChecksOverridesOfAFileItCannotRead) {
  Request request;
  request.sets = {"job.grace=never"};
  EXPECT_THAT(folder_.ProblemsOf("[", request), HasSubstr("--set job.grace=never: expected a duration"));
}

TEST_F(LoadTest, RefusesAValueInThePlaceOfATable) {
  EXPECT_THAT(
      Problems("backend = \"gloo\"\n[job]\ncommand = [\"x\"]\n"),
      StartsWith(
          "dtrun: train.toml:1:11: backend: expected a table; found string \"gloo\"; write [backend]"));
  EXPECT_THAT(Problems("[[job]]\ncommand = [\"x\"]\n"), HasSubstr("job: expected a table; found a list"));
  EXPECT_THAT(Problems("[job]\ncommand = [\"x\"]\n[backend]\noptions = 3\n"),
              HasSubstr("backend.options: expected a table; found integer 3"));
}

TEST_F(LoadTest, DoesNotTakeAQuotedKeyForADottedOne) {
  EXPECT_THAT(Problems("\"backend.name\" = \"x\"\n[job]\ncommand = [\"x\"]\n"),
              StartsWith("dtrun: train.toml:1:1: unknown option 'backend.name'"));
}

TEST_F(LoadTest, WantsAWorkingFolderThatExists) {
  EXPECT_THAT(Problems("[job]\ncommand = [\"x\"]\ncwd = \"none\"\n"),
              StartsWith("dtrun: train.toml:3:7: job.cwd: \""));
  EXPECT_THAT(Problems("[job]\ncommand = [\"x\"]\ncwd = \"none\"\n"), HasSubstr("none\" does not exist"));
}

}  // namespace
}  // namespace dtrun::spec
