#include "core/options/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace dtrun::options {
namespace {

using ::testing::HasSubstr;
using Texts = std::vector<std::string>;

void Put(dtrun_options& options, const char* key, Type type, Data data, bool secret = false) {
  Spec spec;
  spec.key = key;
  spec.type = type;
  spec.secret = secret;
  if (type == Type::kEnum) spec.choices = {"ring", "tree"};
  options.Set(spec, Value{std::move(data), Origin{DTRUN_ORIGIN_FILE, "train.toml:1:2"}});
}

dtrun_options AllTypes() {
  dtrun_options options;
  Put(options, "flag", Type::kBool, true);
  Put(options, "int", Type::kInt, INT64_MIN);
  Put(options, "uint", Type::kUint, INT64_MAX);
  Put(options, "float", Type::kFloat, 0.1);
  Put(options, "whole", Type::kFloat, 3.0);
  Put(options, "string", Type::kString, std::string("é\n\"x\""), true);
  Put(options, "enum", Type::kEnum, std::string("tree"));
  Put(options, "bytes", Type::kBytes, std::int64_t{65536});
  Put(options, "duration", Type::kDuration, std::int64_t{60});
  Put(options, "path", Type::kPath, std::string("/a"));
  Put(options, "list", Type::kList, Texts{"a", ""});
  Put(options, "map", Type::kMap, std::map<std::string, std::string>{{"A", "1"}});
  Put(options, "number", Type::kCount, std::int64_t{2});
  Put(options, "word", Type::kCount, std::string("auto"));
  Put(options, "unset", Type::kString, {});
  return options;
}

TEST(Snapshot, SurvivesTheWayThroughJson) {
  const dtrun_options before = AllTypes();
  const std::string json = ToJson(before);
  EXPECT_EQ(json.find('\n'), std::string::npos);
  const Result<dtrun_options> after = FromJson(json);
  ASSERT_TRUE(after.ok()) << after.error().text;
  ASSERT_EQ(after->entries.size(), before.entries.size());
  for (const auto& [key, entry] : before.entries) {
    const dtrun_options::Entry& copy = after->entries.at(key);
    EXPECT_EQ(copy.value.data, entry.value.data) << key;
    EXPECT_EQ(copy.value.origin.kind, DTRUN_ORIGIN_FILE);
    EXPECT_EQ(copy.value.origin.place, "train.toml:1:2");
    EXPECT_EQ(copy.spec.key, key);
    EXPECT_EQ(copy.spec.type, entry.spec.type);
    EXPECT_EQ(copy.spec.choices, entry.spec.choices);
    EXPECT_EQ(copy.spec.secret, entry.spec.secret);
    EXPECT_EQ(copy.items.size(), entry.items.size());
  }
}

TEST(Snapshot, KeepsItsOwnViewsOfListsWhenCopiedAndMoved) {
  dtrun_options first;
  Put(first, "list", Type::kList, Texts{"one", "two"});
  dtrun_options copy = first;
  dtrun_options moved = std::move(first);
  dtrun_options assigned;
  assigned = copy;
  for (const dtrun_options* options : {&copy, &moved, &assigned}) {
    const dtrun_options::Entry& entry = options->entries.at("list");
    const auto& list = std::get<Texts>(entry.value.data);
    ASSERT_EQ(entry.items.size(), 2u);
    EXPECT_EQ(entry.items[1].data, list[1].c_str());
    EXPECT_EQ(entry.items[1].size, 3u);
  }
}

TEST(Snapshot, ReplacesAnOptionThatIsSetTwice) {
  dtrun_options options;
  Put(options, "list", Type::kList, Texts{"one", "two"});
  Put(options, "list", Type::kList, Texts{"three"});
  EXPECT_EQ(options.entries.at("list").items.size(), 1u);
}

TEST(FromJson, ExplainsWhatItCannotRead) {
  EXPECT_THAT(FromJson("{").error().text, HasSubstr("not JSON"));
  EXPECT_THAT(FromJson("[]").error().text, HasSubstr("expected an object; found array"));
  EXPECT_THAT(FromJson(R"({"a":1})").error().text, HasSubstr("option 'a' has no known type"));
  EXPECT_THAT(FromJson(R"({"a":{"type":55}})").error().text, HasSubstr("no known type"));
  EXPECT_THAT(FromJson(R"({"a":{"type":1,"value":true}})").error().text, HasSubstr("no origin"));
  EXPECT_THAT(FromJson(R"({"a":{"type":1,"value":"x","origin":0,"place":""}})").error().text,
              HasSubstr("a value of type 1 is string"));
  EXPECT_FALSE(FromJson(R"({"a":{"type":10,"value":["x",1],"origin":0,"place":""}})").ok());
  EXPECT_FALSE(FromJson(R"({"a":{"type":100,"value":{"A":1},"origin":0,"place":""}})").ok());
}

TEST(ToJson, DoesNotThrowOnAPlaceThatIsNotUtf8) {
  dtrun_options options;
  Spec spec;
  spec.key = "a";
  options.Set(spec, Value{std::string("x"), Origin{DTRUN_ORIGIN_FILE, "\xff.toml:1:1"}});
  EXPECT_TRUE(FromJson(ToJson(options)).ok());
}

TEST(Snapshot, CarriesTheBackendsThatAnotherStandsOn) {
  const auto on = [](const std::string& name, dtrun_options below) {
    dtrun_options options;
    Put(options, "on", Type::kString, name);
    options.entries["on"].wrapped = std::make_shared<const dtrun_options::Wrapped>(
        dtrun_options::Wrapped{name, "/p/" + name, "id of " + name, std::move(below)});
    return options;
  };
  const dtrun_options before = on("bf16", on("gloo", AllTypes()));
  EXPECT_EQ(StackText("delay", before), "delay > bf16 > gloo");
  EXPECT_EQ(LowestOf(StackText("delay", before)), "gloo");
  EXPECT_EQ(StackText("delay", AllTypes()), "delay");
  EXPECT_EQ(LowestOf("delay"), "delay");
  const Result<dtrun_options> after = FromJson(ToJson(before));
  ASSERT_TRUE(after.ok()) << after.error().text;
  EXPECT_EQ(ToJson(*after), ToJson(before));
  const auto& below = after->entries.find("on")->second.wrapped->options.entries.find("on")->second.wrapped;
  EXPECT_EQ(below->path, "/p/gloo");
  EXPECT_EQ(below->id, "id of gloo");

  for (const char* wrong : {"{}", "3", R"({"name": "a", "path": "b", "id": "c"})"}) {
    const auto broken = FromJson(R"({"on": {"type": 5, "origin": 0, "place": "", "value": "a", "wrapped": )" +
                                 std::string(wrong) + "}}");
    EXPECT_FALSE(broken.ok()) << wrong;
  }
}

}  // namespace
}  // namespace dtrun::options
