#include "core/plan/at.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/spec/read.h"

namespace dtrun::plan {
namespace {

using ::testing::IsEmpty;

spec::JobSpec ChosenSettings(std::vector<std::string> sets) {
  spec::Request request;
  request.sets = std::move(sets);
  request.command = {"true"};
  const spec::Loaded loaded = spec::Load(request, [](std::string_view kind, const auto&, const auto&) {
    options::Schema schema;
    if (kind == "backend") {
      options::Spec spec;
      spec.key = "backend.options.interface";
      schema.push_back(spec);
    }
    return schema;
  });
  EXPECT_THAT(loaded.problems, IsEmpty());
  return loaded.spec;
}

std::string OfBackend(std::vector<std::string> sets, const std::string& text) {
  const spec::JobSpec spec = ChosenSettings(std::move(sets));
  return AtPlugin(spec.backend_options.front(), spec.backend.name, Error{DTRUN_INVALID_ARGUMENT, text}).text;
}

TEST(At, NamesPlaceAndOption) {
  EXPECT_EQ(At(ChosenSettings({"job.name=a"}).job.name, "is short").text, "--set job.name: is short");
  EXPECT_EQ(At(ChosenSettings({}).logs.dir, "is full").text, "logs.dir: is full");
  EXPECT_EQ(At(ChosenSettings({}).job.command, "no such program").text, "no such program");
}

TEST(AtPlugin, NamesTheOptionWhoseValueIsQuoted) {
  EXPECT_EQ(OfBackend({"backend.options.interface=eth9"}, "no interface 'eth9'"),
            "--set backend.options.interface: no interface 'eth9'");
  EXPECT_EQ(OfBackend({"backend.options.interface=eth9"}, "no interface 'eth'"), "no interface 'eth'");
}

TEST(AtPlugin, NamesThePluginsNameForAllElse) {
  EXPECT_EQ(OfBackend({"backend.name=gloo", "backend.options.interface=eth9"}, "no library"),
            "--set backend.name: no library");
}

TEST(AtPlugin, HasNoPlaceWhereTheUserChoseNothing) { EXPECT_EQ(OfBackend({}, "no library"), "no library"); }

}  // namespace
}  // namespace dtrun::plan
