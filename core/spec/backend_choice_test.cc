#include "core/spec/backend_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Texts = std::vector<std::string>;

BackendChoice Read(const options::Data& name) {
  const auto choice = ReadBackendChoice(name, {"npu"});
  EXPECT_TRUE(choice) << choice.error().text;
  return choice ? *choice : BackendChoice();
}

std::string RefusalOf(const options::Data& name) {
  const auto choice = ReadBackendChoice(name, {"npu"});
  return choice ? "" : choice.error().text;
}

TEST(BackendChoice, OfOneNameHasNoSecond) {
  const BackendChoice choice = Read(std::string("gloo"));
  EXPECT_THAT(choice.names, ElementsAre("gloo"));
  EXPECT_FALSE(choice.falls_back() || choice.by_memory() || choice.automatic);
}

TEST(BackendChoice, OfAListOrAutoFallsBack) {
  EXPECT_TRUE(Read(Texts{"nccl", "gloo"}).falls_back());
  const BackendChoice choice = Read(std::string("auto"));
  EXPECT_THAT(choice.names, ElementsAre("nccl", "ucx", "gloo"));
  EXPECT_TRUE(choice.automatic && choice.falls_back());
}

TEST(BackendChoice, ByMemoryNamesOneForEach) {
  const BackendChoice choice = Read(std::string("cuda:nccl, cpu:gloo"));
  EXPECT_THAT(choice.names, ElementsAre("gloo", "nccl"));
  EXPECT_EQ(choice.host, "gloo");
  EXPECT_EQ(choice.device, "nccl");
  EXPECT_EQ(choice.device_kind, "cuda");
  EXPECT_FALSE(choice.falls_back());
  EXPECT_THAT(Read(std::string("cpu:gloo,cuda:gloo")).names, ElementsAre("gloo"));
}

TEST(BackendChoice, KnowsTheWordsOfTorchAndThePluginsThatExist) {
  for (const auto& [word, plugin] :
       {std::pair("cuda", "cuda"), std::pair("hip", "rocm"), std::pair("rocm", "rocm"),
        std::pair("xpu", "level_zero"), std::pair("npu", "npu")}) {
    EXPECT_EQ(Read(std::string(word) + ":x").device_kind, plugin) << word;
  }
}

TEST(BackendChoice, TellsASlipFromANameOfAnotherLibrary) {
  const std::vector<std::string> known{"gloo", "nccl", "ucx"};
  for (const char* slip : {"glo", "ncll", "Gloo", "uxc"}) EXPECT_TRUE(IsSlip(slip, known)) << slip;
  for (const char* other : {"rccl", "ucc", "acme", "mpi"}) EXPECT_FALSE(IsSlip(other, known)) << other;
  EXPECT_FALSE(IsSlip("ucx", {"ucy"}));  // in a package that is not installed
}

TEST(BackendChoice, SaysWhatIsWrongAndWhatToWrite) {
  const std::pair<const char*, const char*> cases[] = {
      {"cud:nccl", "'cud' is not a kind of memory; did you mean 'cuda'?"},
      {"metal:x", "known here: cpu, cuda, hip, rocm, xpu, npu"},
      {"gloo,cuda:nccl",
       "expected MEMORY:BACKEND in each part, as in \"cpu:gloo,cuda:nccl\"; found \"gloo\""},
      {"cuda:", "found \"cuda:\""},
      {"cpu:gloo,", "found \"\""},
      {":nccl", "found \":nccl\""},
      {"cpu:gloo,cpu:ucx", "'cpu' is there twice; leave one of them out"},
      {"cuda:nccl,cuda:ucx", "'cuda' is there twice"},
      {"cuda:nccl,xpu:ccl", "a job has one kind of device; leave out 'xpu:ccl' or the other"},
      {"cpu:nccl", "'cpu:nccl': nccl moves device memory only; name one for host memory, as in"},
      {"hip:nccl", "'hip:nccl': nccl moves memory of cuda only; write cuda:nccl, or another backend for hip"},
      {"cpu:gloo,npu:nccl", "'npu:nccl': nccl moves memory of cuda only"},
      {"cpu:auto", "'cpu:auto' names no backend"},
      {"cuda:none,cpu:gloo", "'cuda:none' names no backend"}};
  for (const auto& [text, said] : cases) EXPECT_THAT(RefusalOf(std::string(text)), HasSubstr(said)) << text;
  EXPECT_THAT(RefusalOf(Texts{"cpu:gloo", "cuda:nccl"}), HasSubstr("write one text, \"cpu:gloo,cuda:nccl\""));
  EXPECT_THAT(RefusalOf(Texts{"gloo", "none"}), HasSubstr("'none' is in a list"));
  EXPECT_THAT(RefusalOf(Texts{"auto", "gloo"}), HasSubstr("write \"auto\" alone, or remove it"));
  EXPECT_THAT(Read(Texts{"none"}).names, ElementsAre("none"));
}

}  // namespace
}  // namespace dtrun::spec
