#include "core/preflight/modules.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

namespace dtrun::preflight {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

ModuleRequest Asking(std::vector<std::string> names) {
  return {std::move(names), "python3", "/", {{"PATH", "/usr/bin:/bin"}}};
}

TEST(MissingModules, AreNamedWithTheInterpreter) {
  EXPECT_EQ(MissingModules(Asking({"json", "os.path"}), {}), "");
  EXPECT_EQ(MissingModules(Asking({"json", "nosuch", "json.nosuch", "nosuch.a", ".b"}), {}),
            "'/usr/bin/python3' has no module 'nosuch', 'json.nosuch', 'nosuch.a', '.b'");
}

TEST(MissingModules, AreLookedForWithTheVariablesOfTheRanks) {
  ModuleRequest request = Asking({"only_there"});
  request.variables["PYTHONPATH"] = ::testing::TempDir();
  std::fclose(std::fopen((::testing::TempDir() + "only_there.py").c_str(), "w"));
  EXPECT_EQ(MissingModules(request, {"PYTHONPATH=/nonexist"}), "");
  std::remove((::testing::TempDir() + "only_there.py").c_str());
  EXPECT_THAT(MissingModules(request, {}), HasSubstr("no module 'only_there'"));
}

// Another user may have written the file: a job can be planned in any folder.
TEST(MissingModules, RunNoFileOfTheCurrentFolder) {
  const std::filesystem::path place = std::filesystem::path(::testing::TempDir()) / "current_folder";
  std::filesystem::create_directories(place / "package");
  for (const char* file :
       {"csv.py", "json.py", "textwrap.py", "own.py", "package/__init__.py", "package/part.py"}) {
    std::ofstream(place / file) << "import sys; sys.exit(3)\n";
  }
  ModuleRequest request =
      Asking({"json", "own", "package.part", "package.nosuch", "own.nosuch", "some.group:here"});
  request.folder = place;
  EXPECT_EQ(MissingModules(request, {}), "'/usr/bin/python3' has no module 'package.nosuch', 'own.nosuch'");
  // Nor through a variable that leads there, like an empty entry of a list.
  std::filesystem::create_directories(place / "deep");
  for (const char* file : {"sitecustomize.py", "usercustomize.py", "deep/sitecustomize.py", "deep/inner.py"})
    std::ofstream(place / file) << "import os; os._exit(3)\n";
  for (const char* python_path : {":/nonexistent", ".:deep", "deep:"}) {
    request.variables["PYTHONPATH"] = python_path;
    EXPECT_EQ(MissingModules(request, {}), "'/usr/bin/python3' has no module 'package.nosuch', 'own.nosuch'");
  }
  request.names = {"inner", "own"};
  request.variables["PYTHONPATH"] = "deep";
  EXPECT_EQ(MissingModules(request, {}), "");
  request.variables.erase("PYTHONPATH");
  request.names = {"own"};
  request.variables["PYTHONSAFEPATH"] = "1";
  std::filesystem::remove_all(place / "package");
  EXPECT_EQ(MissingModules(request, {}), "'/usr/bin/python3' has no module 'own'");
}

TEST(MissingModules, AreNotAskedOfAnInterpreterInTheCurrentFolder) {
  const std::filesystem::path place = std::filesystem::path(::testing::TempDir()) / "interpreters";
  std::filesystem::remove_all(place);
  std::filesystem::create_directories(place / "bin");
  for (const char* file : {"python3", "bin/python3"}) {
    std::ofstream(place / file) << "#!/bin/sh\n: > '" << place.string() << "/ran'\n";
    std::filesystem::permissions(place / file, std::filesystem::perms::owner_all);
  }
  ModuleRequest request = Asking({"nosuch"});
  request.folder = place;
  for (const char* path : {".:/usr/bin", ":/usr/bin", "bin:/usr/bin", "", "."}) {
    request.variables["PATH"] = path;
    MissingModules(request, {});
    EXPECT_FALSE(std::filesystem::exists(place / "ran")) << path;
  }
  request.interpreter = "./python3";
  MissingModules(request, {});
  EXPECT_FALSE(std::filesystem::exists(place / "ran"));
  request.interpreter = "bin/python3";  // like that of a virtual environment
  EXPECT_EQ(MissingModules(request, {}), "");
  EXPECT_TRUE(std::filesystem::exists(place / "ran"));
}

TEST(MissingModules, MayBeEntryPointsOfInstalledPackages) {
  const std::filesystem::path place = std::filesystem::path(::testing::TempDir()) / "entry_points";
  std::filesystem::create_directories(place / "some-1.dist-info");
  std::ofstream(place / "some-1.dist-info/entry_points.txt") << "[some.group]\nhere = json\n";
  ModuleRequest request = Asking({"json", "some.group:here", "some.group:there", "other:here"});
  request.variables["PYTHONPATH"] = place;
  EXPECT_EQ(MissingModules(request, {}),
            "'/usr/bin/python3' has no entry point 'some.group:there', 'other:here'");
  request.names = {"some>=1.1", "some>=1.2", "some>=2.0", "nosuch>=1.0"};
  std::ofstream(place / "some-1.dist-info/METADATA") << "Name: some\nVersion: 1.1.3\n";
  EXPECT_EQ(MissingModules(request, {}),
            "'/usr/bin/python3' has some 1.1.3, older than 1.2; some 1.1.3, older than 2.0");
  request.names = {"nosuch", "other:here", "some>=1.2"};
  EXPECT_EQ(MissingModules(request, {}), "'/usr/bin/python3' has no module 'nosuch'");
}

TEST(MissingModules, AreLookedForInTheOwnEnvironmentWhereNoneIsGiven) {
  ModuleRequest request = Asking({"json"});
  request.variables.clear();
  EXPECT_EQ(MissingModules(request, {}), "");  // found through PATH, which is not the first variable
}

TEST(MissingModules, NeedAnInterpreterThatRuns) {
  ModuleRequest request = Asking({"json"});
  request.interpreter = "nosuch-python";
  EXPECT_THAT(MissingModules(request, {}), HasSubstr("cannot find the program 'nosuch-python'"));
  request.interpreter = "false";
  EXPECT_THAT(MissingModules(request, {}), MatchesRegex("'.*/false' cannot list modules: .*"));
}

TEST(MissingModules, AreInTheAnswer) {
  Request request;
  request.modules = Asking({"json", "nosuch"});
  EXPECT_THAT(RunPreflight(request).missing_modules, HasSubstr("/python3' has no module 'nosuch'"));
}

}  // namespace
}  // namespace dtrun::preflight
