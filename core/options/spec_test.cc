#include "core/options/spec.h"

#include <gtest/gtest.h>

#include <cstring>

namespace dtrun::options {
namespace {

dtrun_option AnOption(const char* key, int type) {
  dtrun_option option;
  DTRUN_INIT(option);
  option.key = key;
  option.type = type;
  option.scope = DTRUN_SCOPE_HOST;
  return option;
}

TEST(FromAbi, CopiesEveryMember) {
  static const char* const kWords[] = {"ring", "tree"};
  dtrun_option option = AnOption("algorithm", DTRUN_TYPE_ENUM);
  option.flags =
      DTRUN_OPTION_REQUIRED | DTRUN_OPTION_EXPERIMENTAL | DTRUN_OPTION_SECRET | DTRUN_OPTION_MUST_EXIST;
  option.default_text = "ring";
  option.doc = "shape of an allreduce";
  option.long_doc = "long";
  option.unit = "ranks";
  option.min_text = "1";
  option.max_text = "2";
  option.choices = kWords;
  option.choice_count = 2;
  option.since = "0.1";
  option.env_alias = "ALGO";
  option.replaced_by = "shape";
  const Schema schema = FromAbi(&option, 1, "backend.options.", "gloo backend");
  ASSERT_EQ(schema.size(), 1u);
  const Spec& spec = schema[0];
  EXPECT_EQ(spec.key, "backend.options.algorithm");
  EXPECT_EQ(spec.type, Type::kEnum);
  EXPECT_EQ(spec.scope, DTRUN_SCOPE_HOST);
  EXPECT_EQ(spec.default_text, "ring");
  EXPECT_EQ(spec.doc, "shape of an allreduce");
  EXPECT_EQ(spec.long_doc, "long");
  EXPECT_EQ(spec.unit, "ranks");
  EXPECT_EQ(spec.min_text, "1");
  EXPECT_EQ(spec.max_text, "2");
  EXPECT_EQ(spec.choices, (std::vector<std::string>{"ring", "tree"}));
  EXPECT_EQ(spec.since, "0.1");
  EXPECT_EQ(spec.env_alias, "ALGO");
  EXPECT_EQ(spec.replaced_by, "backend.options.shape");
  EXPECT_EQ(spec.reader, "gloo backend");
  EXPECT_TRUE(spec.required && spec.experimental && spec.secret && spec.must_exist);
}

TEST(FromAbi, ToleratesMissingTexts) {
  const dtrun_option options[] = {AnOption("a", DTRUN_TYPE_INT), AnOption(nullptr, DTRUN_TYPE_INT),
                                  AnOption("b", 77)};
  const Schema schema = FromAbi(options, 3, "p.", "r");
  ASSERT_EQ(schema.size(), 2u) << "the element without a key is left out";
  EXPECT_EQ(schema[0].default_text, std::nullopt);
  EXPECT_EQ(schema[0].doc, "");
  EXPECT_EQ(schema[1].key, "p.b");
  EXPECT_EQ(schema[1].type, Type::kString) << "an unknown type is read as a string";
}

TEST(FromAbi, WalksANewerTableByItsOwnStride) {
  struct Newer {
    dtrun_option option;
    std::uint64_t tail[3];
  };
  Newer table[2];
  std::memset(static_cast<void*>(table), 0xee, sizeof table);
  for (Newer& element : table) {
    element.option = AnOption("x", DTRUN_TYPE_BOOL);
    element.option.struct_size = sizeof(Newer);
  }
  table[1].option.key = "y";
  const Schema schema = FromAbi(&table[0].option, 2, "", "r");
  ASSERT_EQ(schema.size(), 2u);
  EXPECT_EQ(schema[1].key, "y");
}

TEST(FromAbi, ReadsTheMissingTailOfAnOlderTableAsAbsent) {
  struct Older {
    std::uint32_t struct_size, flags;
    const char* key;
    std::int32_t type, scope;
    const char* default_text;
    const char* doc;
  };
  static_assert(offsetof(Older, doc) == offsetof(dtrun_option, doc));
  const Older table[2] = {{sizeof(Older), 0, "a", DTRUN_TYPE_INT, 3, "1", "first"},
                          {sizeof(Older), 0, "b", DTRUN_TYPE_INT, 3, "2", "second"}};
  const Schema schema = FromAbi(reinterpret_cast<const dtrun_option*>(table), 2, "", "r");
  ASSERT_EQ(schema.size(), 2u);
  EXPECT_EQ(schema[1].doc, "second");
  EXPECT_EQ(schema[1].long_doc, "");
}

TEST(FromAbi, GivesNothingForATableWithoutSizes) {
  dtrun_option option = AnOption("a", DTRUN_TYPE_INT);
  option.struct_size = 0;
  EXPECT_TRUE(FromAbi(&option, 1, "", "r").empty());
  EXPECT_TRUE(FromAbi(nullptr, 1, "", "r").empty());
}

TEST(ExpectedText, NamesRangeAndWords) {
  Spec spec;
  spec.type = Type::kCount;
  spec.min_text = "1";
  spec.max_text = "4096";
  spec.choices = {"cpu", "gpu", "auto"};
  EXPECT_EQ(ExpectedText(spec), "a number from 1 to 4096 or one of \"cpu\", \"gpu\", \"auto\"");
  EXPECT_EQ(TypeText(spec), "number or one of \"cpu\", \"gpu\", \"auto\"");
  spec.type = Type::kDuration;
  spec.min_text = "1ms";
  spec.max_text = std::nullopt;
  EXPECT_EQ(ExpectedText(spec), "a duration such as \"60s\", of at least 1ms");
  spec.type = Type::kInt;
  spec.min_text = std::nullopt;
  spec.max_text = "7";
  EXPECT_EQ(ExpectedText(spec), "an integer of at most 7");
}

}  // namespace
}  // namespace dtrun::options
