#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/options/snapshot.h"
#include "core/spec/backend_choice.h"
#include "core/spec/lookup.h"
#include "core/spec/read.h"
#include "core/spec/testing.h"

namespace dtrun::spec {
namespace {

using options::Schema;
using options::Spec;
using options::Type;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kJob[] = "[job]\ncommand = [\"x\"]\n";

Spec A(const char* key, Type type) {
  Spec spec;
  spec.key = key;
  spec.type = type;
  spec.reader = "demo backend";
  return spec;
}

Schema DemoSchema() {
  Schema schema = {A("backend.options.interface", Type::kString), A("backend.options.buffer", Type::kBytes),
                   A("backend.options.token", Type::kInt), A("backend.options.iface", Type::kString),
                   A("backend.options.tls.names", Type::kList)};
  schema[0].default_text = "auto";
  schema[2].secret = true;
  schema[3].replaced_by = "backend.options.interface";
  return schema;
}

class PluginOptionsTest : public ::testing::Test {
 protected:
  Loaded LoadText(const std::string& text) {
    request_.file = folder_.Write("train.toml", kJob + text);
    return Load(request_, [this](std::string_view kind, const std::string& name, const JobSpec& so_far) {
      calls_ += std::string(kind) + ":" + name + ":" + *so_far.job.name + " ";
      if (kind == "launcher") return Result<Schema>(Schema());
      if (name != "demo") return Result<Schema>(Error{DTRUN_NOT_FOUND, "no backend '" + name + "'"});
      return Result<Schema>(schema_);
    });
  }
  std::string Problems(const std::string& text) { return folder_.Short(LoadText(text).problems); }

  TestFolder folder_;
  Request request_;
  Schema schema_ = DemoSchema();
  std::string calls_;
};

TEST_F(PluginOptionsTest, AreReadByTheSchemaOfTheNamedPlugin) {
  const Loaded loaded =
      LoadText("[backend]\nname = \"demo\"\n[backend.options]\nbuffer = \"1MiB\"\ntls.names = [\"tcp\"]\n");
  EXPECT_EQ(folder_.Short(loaded.problems), "");
  EXPECT_EQ(calls_, "launcher:per-process:train backend:demo:train ");
  const dtrun_options options = loaded.spec.backend_options.front().Snapshot();
  EXPECT_EQ(options.entries.size(), schema_.size());
  EXPECT_EQ(options.entries.at("interface").value.data, options::Data(std::string("auto")));
  EXPECT_EQ(options.entries.at("buffer").value.data, options::Data(std::int64_t{1 << 20}));
  EXPECT_EQ(options.entries.at("buffer").spec.key, "buffer");
  EXPECT_EQ(options.entries.at("tls.names").items.size(), 1u);
  EXPECT_FALSE(options.entries.at("token").value.set());
}

TEST_F(PluginOptionsTest, ComeFromEveryOriginAndTheNameMayBeOverridden) {
  request_.environment = {{"DTRUN_CONFIG_BACKEND_OPTIONS_BUFFER", "2K"}};
  request_.sets = {"backend.options.interface=lo", "backend.name=demo"};
  const Loaded loaded = LoadText("[backend]\nname = \"other\"\n");
  EXPECT_EQ(folder_.Short(loaded.problems), "");
  EXPECT_EQ(loaded.spec.Get("backend.options.buffer").data, options::Data(std::int64_t{2048}));
  EXPECT_EQ(loaded.spec.Get("backend.options.interface").data, options::Data(std::string("lo")));
}

TEST_F(PluginOptionsTest, WhatGoesOverTheCommunicatorNeedsABackend) {
  for (const auto& [key, value] :
       {std::pair{"backend.torch", "dtrun"}, std::pair{"python.horovod", "shim"}}) {
    request_.sets = {fmt::format("{}={}", key, value)};
    EXPECT_EQ(Problems("[backend]\nname = \"none\"\n"),
              fmt::format("dtrun: --set {0}={1}: \"{1}\" needs a communicator, and backend.name is \"none\" "
                          "(train.toml:4:8); name a backend there, such as gloo, or remove {0}; see: dtrun "
                          "config explain {0}\n",
                          key, value));
    EXPECT_EQ(Problems("[backend]\nname = \"demo\"\n"), "");
  }
  request_.sets = {"backend.name=none"};
  EXPECT_THAT(Problems("[python]\nhorovod = \"shim\"\n"),
              AllOf(StartsWith("dtrun: train.toml:4:11: python.horovod: \"shim\" needs a communicator"),
                    HasSubstr("(--set backend.name)")));
  EXPECT_EQ(Problems("[python]\nhorovod = \"script\"\n"), "");
}

TEST_F(PluginOptionsTest, ANoneByDefaultGivesWayToWhatNeedsABackend) {
  request_.base = {{"backend.name", "none", {DTRUN_ORIGIN_DEFAULT, "dtrun torchrun"}}};
  EXPECT_EQ(*LoadText("").spec.backend.name, "none");
  request_.sets = {"python.horovod=shim"};
  EXPECT_EQ(*LoadText("").spec.backend.name, "gloo");
  request_.sets.push_back("backend.name=none");
  EXPECT_THAT(Problems(""), HasSubstr("needs a communicator"));
}

TEST_F(PluginOptionsTest, AreReportedWithTheirPlaces) {
  request_.environment = {{"DTRUN_CONFIG_BACKEND_OPTIONS_BUFER", "2K"}};
  request_.sets = {"backend.options.interfce=lo"};
  EXPECT_EQ(
      Problems("[backend]\nname = \"demo\"\noptions.bufer = 1\noptions.buffer = \"x\"\noptions.wibble = 1\n"),
      "dtrun: train.toml:5:9: unknown option 'backend.options.bufer'; "
      "did you mean 'buffer' (size)? see: dtrun plugins describe demo\n"
      "dtrun: train.toml:6:18: backend.options.buffer: expected a size such as \"8MiB\"; found \"x\"; "
      "see: dtrun config explain backend.options.buffer\n"
      "dtrun: train.toml:7:9: unknown option 'backend.options.wibble'; "
      "known here: interface, buffer, token, iface, tls; see: dtrun plugins describe demo\n"
      "dtrun: DTRUN_CONFIG_BACKEND_OPTIONS_BUFER: unknown option in the environment; "
      "did you mean DTRUN_CONFIG_BACKEND_OPTIONS_BUFFER (size)? see: dtrun config explain "
      "backend.options.buffer\n"
      "dtrun: --set backend.options.interfce=lo: unknown option 'backend.options.interfce'; "
      "did you mean 'backend.options.interface' (string, default \"auto\")? see: dtrun plugins describe "
      "demo\n");
}

TEST_F(PluginOptionsTest, AreNotLookedAtWhenThePluginIsUnknown) {
  request_.environment = {{"DTRUN_CONFIG_BACKEND_OPTIONS_X", "1"}};
  request_.sets = {"backend.options.y=1"};
  EXPECT_EQ(Problems("[backend]\nname = \"golo\"\noptions.z = 1\n"),
            "dtrun: train.toml:4:8: no backend 'golo'\n");
  request_.sets = {"backend.name=glo"};
  EXPECT_EQ(Problems(""), "dtrun: --set backend.name=glo: no backend 'glo'\n");
  request_.sets = {"backend.path=/x.so"};
  EXPECT_EQ(Problems("[backend]\nname = \"golo\"\n"), "dtrun: --set backend.path=/x.so: no backend 'golo'\n");
  request_.sets = {};
  EXPECT_EQ(Problems(""), "dtrun: train.toml: no backend 'gloo'\n")
      << "the default has the file as its place";
}

TEST_F(PluginOptionsTest, AreNotAskedForWithoutABackend) {
  EXPECT_EQ(Problems("[backend]\nname = \"none\"\noptions.z = 1\n"), "");
  EXPECT_EQ(calls_, "launcher:per-process:train ");
}

TEST_F(PluginOptionsTest, AreNotAskedForWhenTheNameIsWrong) {
  EXPECT_THAT(Problems("[backend]\nname = 3\noptions.z = 1\n"),
              HasSubstr("backend.name: expected a name, or a list"));
  EXPECT_EQ(calls_, "launcher:per-process:train ");
}

TEST_F(PluginOptionsTest, SayWhatReplacesADeprecatedOne) {
  EXPECT_THAT(Problems("[backend]\nname = \"demo\"\noptions.iface = \"lo\"\n"),
              HasSubstr("train.toml:5:17: backend.options.iface: this option is deprecated; use "
                        "'backend.options.interface'; "));
}

TEST_F(PluginOptionsTest, AreMissedWhenRequired) {
  schema_[1].required = true;
  EXPECT_EQ(Problems("[backend]\nname = \"demo\"\n"),
            "dtrun: train.toml: backend.options.buffer is required and not set; "
            "see: dtrun config explain backend.options.buffer\n");
}

TEST_F(PluginOptionsTest, NeverPrintASecret) {
  request_.sets = {"backend.options.token=hunter2"};
  request_.environment = {{"DTRUN_CONFIG_BACKEND_OPTIONS_TOKEN", "hunter2"}};
  const std::string problems = Problems("[backend]\nname = \"demo\"\noptions.token = \"hunter2\"\n");
  EXPECT_EQ(problems.find("hunter2"), problems.npos) << problems;
  EXPECT_THAT(problems, HasSubstr("--set backend.options.token: expected an integer"));
}

TEST_F(PluginOptionsTest, BlameThePluginForADefaultItCannotHave) {
  schema_[1].default_text = "big";
  EXPECT_THAT(Problems("[backend]\nname = \"demo\"\n"),
              HasSubstr("its default is unusable, a defect of the demo backend: expected a size"));
}

TEST_F(PluginOptionsTest, MayStandInATableOfTheBackendsName) {
  request_.backends = {"demo", "other"};
  const Loaded loaded = LoadText(
      "[backend]\nname = \"demo\"\noptions.buffer = \"1K\"\n[backend.demo]\ninterface = "
      "\"lo\"\n[backend.other]\nx = 1\n");
  EXPECT_EQ(folder_.Short(loaded.problems), "");
  EXPECT_EQ(loaded.spec.Get("backend.options.interface").data, options::Data(std::string("lo")));
  EXPECT_EQ(loaded.spec.Get("backend.options.buffer").data, options::Data(std::int64_t{1024}));
  EXPECT_THAT(loaded.spec.Get("backend.options.interface").origin.place, HasSubstr("train.toml:7:"));
}

TEST_F(PluginOptionsTest, OfSeveralBackendsAreReadForEach) {
  request_.sets = {"backend.demo.buffer=2K", "backend.other.x=1"};
  const Loaded loaded =
      LoadText("[backend]\nname = [\"other\", \"demo\"]\n[backend.demo]\ninterface = \"lo\"\n");
  EXPECT_EQ(folder_.Short(loaded.problems), "");  // the choice of a backend reports that "other" is missing
  EXPECT_EQ(BackendNames(loaded.spec), (std::vector<std::string>{"other", "demo"}));
  EXPECT_EQ(loaded.spec.OptionsOf("other"), nullptr);
  const PluginOptions& options = *loaded.spec.OptionsOf("demo");
  EXPECT_EQ(options.values.at("backend.options.interface").data, options::Data(std::string("lo")));
  EXPECT_EQ(options.values.at("backend.options.buffer").data, options::Data(std::int64_t{2048}));
}

TEST_F(PluginOptionsTest, OfABackendThatTheJobDoesNotUseAreChecked) {
  request_.backends = {"demo", "other"};
  request_.sets = {"backend.demo.bufer=2K"};
  const std::string text = "[backend]\nname = \"none\"\n[backend.demo]\ninterfce = \"lo\"\n";
  EXPECT_THAT(Problems(text + "[backend.other]\nx = 1\n"),
              AllOf(HasSubstr("unknown option 'backend.demo.interfce'; did you mean"),
                    HasSubstr("--set backend.demo.bufer=2K: unknown option 'backend.demo.bufer'")));
}

TEST_F(PluginOptionsTest, OfNoOneBackendAreAProblemWhenThereAreSeveral) {
  EXPECT_EQ(
      Problems("[backend]\nname = [\"demo\", \"other\"]\n[backend.options]\ninterface = \"lo\"\n"),
      "dtrun: train.toml:6:1: backend.options is ambiguous when backend.name gives several backends; write "
      "the options of demo into [backend.demo], and so for the others\n");
}

TEST_F(PluginOptionsTest, OnTheCommandLineThatOneOfSeveralLacksAreWrittenByName) {
  request_.sets = {"backend.options.library=x"};
  EXPECT_EQ(
      Problems("[backend]\nname = [\"demo\", \"other\"]\n"),
      "dtrun: --set backend.options.library=x: unknown option 'backend.options.library'; demo has no such "
      "option; write backend.other.library for one backend alone; known here: interface, buffer, token, "
      "iface, "
      "tls; see: dtrun plugins describe demo\n");
}

TEST_F(PluginOptionsTest, InATableOfNoBackendAreAProblem) {
  request_.backends = {"demo"};
  EXPECT_THAT(Problems("[backend]\nname = \"demo\"\n[backend.dmeo]\ninterface = \"lo\"\n"),
              HasSubstr("unknown table 'backend.dmeo'"));
}

TEST_F(PluginOptionsTest, NamesMayBeAListOrAuto) {
  EXPECT_EQ(BackendNames(LoadText("").spec), std::vector<std::string>{"gloo"});
  EXPECT_EQ(BackendNames(LoadText("[backend]\nname = \"auto\"\n").spec),
            (std::vector<std::string>{"nccl", "ucx", "gloo"}));
  request_.sets = {"backend.name=demo,other"};
  EXPECT_EQ(BackendNames(LoadText("").spec), (std::vector<std::string>{"demo", "other"}));
  request_.sets.clear();
  EXPECT_THAT(Problems("[backend]\nname = [\"demo\", \"demo\"]\n"),
              HasSubstr("expected a name, or a list of different names; found [\"demo\", \"demo\"]"));
  EXPECT_THAT(Problems("[backend]\nname = []\n"), HasSubstr("a list of different names; found []"));
}

// Another backend joins the ranks beside a device-memory backend: backend.options belong to the named one.
TEST_F(PluginOptionsTest, OfAnUnnamedBackendAreThoseOfItsOwnTable) {
  request_.backends = {"demo", "other"};
  request_.environment = {{"DTRUN_CONFIG_BACKEND_OPTIONS_LIBRARY", "x"}};
  request_.sets = {"backend.options.library=y", "backend.demo.buffer=2K"};
  const Loaded loaded =
      LoadText("[backend]\nname = \"none\"\noptions.library = \"z\"\n[backend.demo]\ninterface = \"lo\"\n");
  EXPECT_EQ(folder_.Short(loaded.problems), "");
  const PluginRead read = loaded.more("backend", "demo", schema_);
  EXPECT_EQ(folder_.Short(read.problems), "");
  EXPECT_EQ(read.options.values.at("backend.options.interface").data, options::Data(std::string("lo")));
  EXPECT_EQ(read.options.values.at("backend.options.buffer").data, options::Data(std::int64_t{2048}));
}

TEST_F(PluginOptionsTest, NamesMayBeByMemory) {
  request_.devices = {"npu"};
  EXPECT_EQ(BackendNames(LoadText("[backend]\nname = \"npu:demo,cpu:other\"\n").spec),
            (std::vector<std::string>{"other", "demo"}));
  request_.sets = {"backend.name=cpu:other,npu:demo"};
  EXPECT_EQ(BackendNames(LoadText("").spec), (std::vector<std::string>{"other", "demo"}));
  request_.sets.clear();
  EXPECT_THAT(Problems("[backend]\nname = \"nqu:demo\"\n"),
              HasSubstr("train.toml:4:8: backend.name: 'nqu' is not a kind of memory; did you mean 'npu'?"));
  EXPECT_THAT(Problems("[backend]\nname = [\"cpu:demo\", \"demo\"]\n"), HasSubstr("'cpu:demo' is in a list"));
  EXPECT_THAT(Problems("[backend]\nname = \"cpu:other,npu:demo\"\npath = \"/x/libdtrun_backend_demo.so\"\n"),
              HasSubstr("it is the file of one backend, and backend.name gives two"));
  EXPECT_THAT(Problems("[backend]\nname = \"cpu:demo,npu:other\"\noptions.interface = \"lo\"\n"),
              HasSubstr("backend.options is ambiguous"));
}

// Backends that others stand on: `over` has the option `on`.
class WrappedOptionsTest : public PluginOptionsTest {
 protected:
  Loaded LoadStack(const std::string& text) {
    request_.file = folder_.Write("train.toml", kJob + text);
    return Load(request_, [](std::string_view kind, const std::string& name, const JobSpec&) {
      if (kind == "launcher") return Result<Schema>(Schema());
      if (name == "demo" || name == "/p/libdtrun_backend_demo.so") return Result<Schema>(DemoSchema());
      if (name != "over" && name != "under" && name != "over-all")
        return Result<Schema>(Error{DTRUN_NOT_FOUND, "there is no backend '" + name + "'"});
      Spec on = A("backend.options.on", Type::kString);
      on.names_backend = on.required = true;
      return Result<Schema>(Schema{on});
    });
  }
  std::string StackProblems(const std::string& text) { return folder_.Short(LoadStack(text).problems); }
};

TEST_F(WrappedOptionsTest, EachGetsItsOwnTable) {
  request_.sets = {"backend.demo.buffer=2K"};
  request_.backends = {"demo", "under"};
  for (const char* demo : {"demo", "/p/libdtrun_backend_demo.so"}) {
    const Loaded loaded = LoadStack(fmt::format(
        "[backend]\nname = \"over\"\n[backend.options]\non = \"under\"\n[backend.under]\non = \"{}\"\n"
        "[backend.demo]\ninterface = \"eth1\"\n",
        demo));
    EXPECT_EQ(folder_.Short(loaded.problems), "");
    const dtrun_options options = loaded.spec.backend_options.front().Snapshot();
    EXPECT_EQ(options::StackText("over", options), "over > under > demo");
    const auto& under = options.entries.at("on").wrapped;
    const auto& below = under->options.entries.at("on").wrapped->options;
    EXPECT_EQ(below.entries.at("interface").value.data, options::Data(std::string("eth1")));
    EXPECT_EQ(below.entries.at("buffer").value.data, options::Data(std::int64_t{2048}));
  }
}

TEST_F(PluginOptionsTest, MayBeOfAPluginInPluginsPathAlone) {
  request_.sets = {"backend.demo.buffer=2K"};
  request_.environment = {{"DTRUN_CONFIG_BACKEND_DEMO_INTERFACE", "lo"}};
  const std::string text = "[plugins]\npath = [\"/\"]\n[backend]\nname = \"none\"\n[backend.demo]\n";
  EXPECT_THAT(Problems(text), AllOf(HasSubstr("unknown table 'backend.demo'"),
                                    HasSubstr("unknown option 'backend.demo.buffer'"),
                                    HasSubstr("DTRUN_CONFIG_BACKEND_DEMO_INTERFACE: unknown option")));
  request_.exists = [](std::string_view kind, const std::string& name, const JobSpec& so_far) {
    return kind == "backend" && name == "demo" && *so_far.plugins.path == std::vector<std::string>{"/"};
  };
  EXPECT_EQ(Problems(text), "");
}

TEST_F(WrappedOptionsTest, AreSetByVariablesOfTheirNameAndShown) {
  request_.environment = {{"DTRUN_CONFIG_BACKEND_DEMO_BUFFER", "2K"},
                          {"DTRUN_CONFIG_BACKEND_UNDER_ON", "demo"}};
  request_.sets = {"backend.demo.interface=lo"};
  const std::string over = "[backend]\nname = \"over\"\n[backend.options]\non = \"under\"\n";
  const JobSpec spec = LoadStack(over).spec;
  EXPECT_EQ(StackProblems(over), "");
  EXPECT_EQ(spec.Get("backend.options.on").data, options::Data(std::string("under")));
  EXPECT_EQ(spec.Get("backend.under.on").data, options::Data(std::string("demo")));
  EXPECT_EQ(spec.Get("backend.demo.buffer").data, options::Data(std::int64_t{2048}));
  EXPECT_EQ(spec.Get("backend.demo.buffer").origin.place, "DTRUN_CONFIG_BACKEND_DEMO_BUFFER");
  EXPECT_NE(FindSpec(spec.schema(), "backend.demo.interface"), nullptr);
  EXPECT_THAT(
      *Explain(spec, "backend.demo.interface"),
      AllOf(HasSubstr("value     \"lo\"\n  origin    --set backend.demo.interface on the command line"),
            HasSubstr("variable  DTRUN_CONFIG_BACKEND_DEMO_INTERFACE\n")));
  request_.environment["DTRUN_CONFIG_BACKEND_DEMO_BUFER"] = "2K";
  request_.sets.push_back("backend.dmo.buffer=2");
  EXPECT_THAT(
      StackProblems(over),
      AllOf(
          HasSubstr("DTRUN_CONFIG_BACKEND_DEMO_BUFER: unknown option in the environment; did you mean "
                    "DTRUN_CONFIG_BACKEND_DEMO_BUFFER (size)? see: dtrun config explain backend.demo.buffer"),
          HasSubstr("unknown option 'backend.dmo.buffer'")));
}

TEST_F(PluginOptionsTest, MayBeVariablesOfTheBackendsName) {
  request_.backends = {"demo", "other"};
  request_.environment = {{"DTRUN_CONFIG_BACKEND_DEMO_BUFFER", "2K"},
                          {"DTRUN_CONFIG_BACKEND_OPTIONS_BUFFER", "1K"},
                          {"DTRUN_CONFIG_BACKEND_OTHER_X", "a backend that cannot be loaded"}};
  const Loaded loaded = LoadText("[backend]\nname = \"demo\"\n");
  EXPECT_EQ(folder_.Short(loaded.problems), "");
  EXPECT_EQ(loaded.spec.Get("backend.options.buffer").data, options::Data(std::int64_t{2048}));
  request_.environment["DTRUN_CONFIG_BACKEND_DEMO_BUFFER"] = "much";
  for (const char* const name : {"demo", "none"})
    EXPECT_THAT(Problems(fmt::format("[backend]\nname = \"{}\"\n", name)),
                HasSubstr("DTRUN_CONFIG_BACKEND_DEMO_BUFFER: backend."));
}

TEST_F(WrappedOptionsTest, AProblemNamesThePluginsOwnTable) {
  const std::string over = "[backend]\nname = \"over\"\n[backend.options]\non = \"demo\"\n[backend.demo]\n";
  EXPECT_EQ(StackProblems(over + "buffer = \"much\"\n"),
            "dtrun: train.toml:8:10: backend.demo.buffer: expected a size such as \"8MiB\"; found \"much\"; "
            "see: dtrun "
            "config explain backend.demo.buffer\n");
  EXPECT_THAT(StackProblems(over + "bufer = 3\n"), HasSubstr("unknown option 'backend.demo.bufer'"));
  EXPECT_THAT(StackProblems("[backend]\nname = \"over\"\n[backend.options]\non = \"under\"\n"),
              HasSubstr("backend.under.on is required and not set"));
  EXPECT_THAT(StackProblems("[backend]\nname = \"over\"\n"), HasSubstr("backend.options.on is required"));
  EXPECT_THAT(StackProblems("[backend]\nname = \"over\"\n[backend.options]\non = \"dmo\"\n"),
              HasSubstr("train.toml:6:6: backend.options.on: there is no backend 'dmo'"));
}

TEST_F(WrappedOptionsTest, NoneStandsOnItself) {
  EXPECT_EQ(StackProblems("[backend]\nname = \"over\"\n[backend.options]\non = \"over\"\n"),
            "dtrun: train.toml:6:6: backend.options.on: 'over' would stand on itself: over > over; name "
            "another backend, as "
            "each can be there once\n");
  EXPECT_THAT(
      StackProblems("[backend]\nname = \"over-all\"\n[backend.options]\non = \"under\"\n[backend.under]\n"
                    "on = \"/q/libdtrun_backend_over_all.so\"\n"),
      AllOf(HasSubstr("train.toml:8:6: backend.under.on: "), HasSubstr("over_all > under > over_all")));
}

}  // namespace
}  // namespace dtrun::spec
