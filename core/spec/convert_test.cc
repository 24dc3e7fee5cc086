#include "core/spec/convert.h"

#include <gtest/gtest.h>

namespace dtrun::spec {
namespace {

using options::Data;
using options::Spec;
using options::Type;
using Texts = std::vector<std::string>;
using TextMap = std::map<std::string, std::string>;

Spec A(Type type) {
  Spec spec;
  spec.type = type;
  if (type == Type::kCount) spec.choices = {"auto"};
  return spec;
}

Data Read(const Spec& spec, std::string_view toml, std::string* faults = nullptr) {
  const auto node = ParseTomlValue(toml);
  EXPECT_TRUE(node.has_value()) << toml;
  std::vector<Fault> found;
  Data data = Convert(spec, *node, "/conf", found);
  for (const Fault& fault : found) {
    if (faults != nullptr) *faults += fault.part + ": " + fault.message + "\n";
    if (faults == nullptr) ADD_FAILURE() << toml << ": " << fault.message;
  }
  return data;
}

std::string Refusal(const Spec& spec, std::string_view toml) {
  std::string faults;
  const Data data = Read(spec, toml, &faults);
  EXPECT_EQ(data.index(), 0u) << toml;
  return faults;
}

TEST(Convert, ReadsEveryTypeFromItsTomlForm) {
  EXPECT_EQ(Read(A(Type::kBool), "true"), Data(true));
  EXPECT_EQ(Read(A(Type::kInt), "-3"), Data(std::int64_t{-3}));
  EXPECT_EQ(Read(A(Type::kUint), "0x10"), Data(std::int64_t{16}));
  EXPECT_EQ(Read(A(Type::kFloat), "2"), Data(2.0));
  EXPECT_EQ(Read(A(Type::kString), "'x'"), Data(std::string("x")));
  EXPECT_EQ(Read(A(Type::kBytes), "64"), Data(std::int64_t{64}));
  EXPECT_EQ(Read(A(Type::kBytes), "'1KiB'"), Data(std::int64_t{1024}));
  EXPECT_EQ(Read(A(Type::kDuration), "'1us'"), Data(std::int64_t{1000}));
  EXPECT_EQ(Read(A(Type::kPath), "'a/../b'"), Data(std::string("/conf/b")));
  EXPECT_EQ(Read(A(Type::kList), "['a,b', '']"), Data(Texts{"a,b", ""}));
  EXPECT_EQ(Read(A(Type::kPathList), "['a', '/b']"), Data(Texts{"/conf/a", "/b"}));
  EXPECT_EQ(Read(A(Type::kCount), "8"), Data(std::int64_t{8}));
  EXPECT_EQ(Read(A(Type::kCount), "'auto'"), Data(std::string("auto")));
}

TEST(Convert, TakesNumbersAndFlagsInATableAsTheirText) {
  EXPECT_EQ(Read(A(Type::kMap), "{ a = 1, b = true, c = 1.0, d = 0.1, e = 'x', f = inf }"),
            Data(TextMap{{"a", "1"}, {"b", "true"}, {"c", "1.0"}, {"d", "0.1"}, {"e", "x"}, {"f", "inf"}}));
}

TEST(Convert, SaysWhatWasExpectedAndFound) {
  EXPECT_EQ(Refusal(A(Type::kBool), "1"), ": expected true or false; found integer 1, did you mean true?\n");
  EXPECT_EQ(Refusal(A(Type::kInt), "1.5"), ": expected an integer; found number 1.5\n");
  EXPECT_EQ(Refusal(A(Type::kInt), "2.0"), ": expected an integer; found number 2.0; write 2\n");
  EXPECT_THAT(Refusal(A(Type::kCount), "2.0"), ::testing::HasSubstr("found number 2.0; write 2\n"));
  EXPECT_EQ(Refusal(A(Type::kDuration), "60"),
            ": expected a duration such as \"60s\"; found integer 60, did you mean \"60s\"?\n");
  EXPECT_EQ(Refusal(A(Type::kUint), "-1"), ": expected an integer of at least 0; found -1\n");
  EXPECT_EQ(Refusal(A(Type::kFloat), "inf"), ": expected a number; found inf\n");
  EXPECT_EQ(Refusal(A(Type::kCount), "'two'"), ": expected a number or one of \"auto\"; found \"two\"\n");
  EXPECT_EQ(Refusal(A(Type::kList), "'python a.py'"),
            ": expected a list of strings; found string \"python a.py\"; write [\"python\", \"a.py\"]\n");
  EXPECT_EQ(Refusal(A(Type::kList), "'a,b'"),
            ": expected a list of strings; found string \"a,b\"; write [\"a\", \"b\"]\n");
  EXPECT_EQ(Refusal(A(Type::kList), "'sh -c \"a\"'"),
            ": expected a list of strings; found string \"sh -c \\\"a\\\"\"; put it into [ ], one string per "
            "item\n");
  EXPECT_EQ(Refusal(A(Type::kMap), "['A=1', 'B=x=y']"),
            ": expected a table of strings; found a list; write { A = \"1\", B = \"x=y\" }\n");
  EXPECT_EQ(Refusal(A(Type::kMap), "['A']"),
            ": expected a table of strings; found a list; write { NAME = \"VALUE\" }\n");
  EXPECT_EQ(Refusal(A(Type::kList), "[{ name = 'a' }]"),
            ": expected a list of strings; found a list of tables; write  = [\"a\", \"b\"]\n");
}

TEST(Convert, SaysHowHostsOfTablesAreWritten) {
  Spec hosts = A(Type::kList);
  hosts.key = "cluster.hosts";
  const auto written = [&](const char* value) {
    const std::string text = Refusal(hosts, value);
    const std::size_t at = text.find("write ");
    return at == text.npos ? text : text.substr(at);
  };
  EXPECT_EQ(written("[{ name = 'localhost', slots = '2' }, { host = 'b' }]"),
            "write hosts = [\"localhost:2\", \"b\"]\n");
  EXPECT_EQ(written("{ name = 'a', slots = 4 }"), "write hosts = [\"a:4\"]\n");
  EXPECT_EQ(written("{ a = 4, b = { slots = 2 } }"), "write hosts = [\"a:4\", \"b:2\"]\n");
  EXPECT_EQ(written("[{ slots = 2 }]"), "write hosts = [\"a\", \"b:4\"]\n");
  EXPECT_EQ(written("[{ name = 'a', slots = 'two' }]"), "write hosts = [\"a\", \"b:4\"]\n");
}

TEST(Convert, SaysHowABooleanIsWritten) {
  EXPECT_EQ(Refusal(A(Type::kBool), "'true'"),
            ": expected true or false; found string \"true\"; write it without quotes\n");
  EXPECT_EQ(Refusal(A(Type::kBool), "'No'"),
            ": expected true or false; found string \"No\"; write false, without quotes\n");
  EXPECT_EQ(Refusal(A(Type::kBool), "'maybe'"), ": expected true or false; found string \"maybe\"\n");
}

TEST(Convert, ReportsEveryBadItemOfAListOrTable) {
  EXPECT_EQ(Refusal(A(Type::kList), "['a', 5, [ ]]"),
            "[1]: expected a string; found integer 5; quote it\n[2]: expected a string; found a list\n");
  EXPECT_EQ(Refusal(A(Type::kMap), "{ A = [1], B = 'x' }"),
            ".A: expected a string, a number, true or false; found a list\n");
  EXPECT_EQ(Refusal(A(Type::kPathList), "['']"), "[0]: expected a path; found string \"\"\n");
}

TEST(Convert, RefusesTextsThatCannotBeArguments) {
  EXPECT_EQ(Refusal(A(Type::kList), R"(["a\u0000b"])"),
            ": expected text without a NUL character; found one\n");
  EXPECT_EQ(Refusal(A(Type::kMap), "{ 'A=B' = 1, '' = 2 }"),
            ": expected names of one or more characters without '='; the name \"\" is empty; the name "
            "\"A=B\" has a "
            "'='\n");
}

TEST(Convert, NeverShowsASecret) {
  Spec secret = A(Type::kInt);
  secret.secret = true;
  EXPECT_EQ(Refusal(secret, "'hunter2'"), ": expected an integer; found a string\n");
}

}  // namespace
}  // namespace dtrun::spec
