#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/options/snapshot.h"

namespace dtrun::options {
namespace {

using ::testing::HasSubstr;

class OptionsServiceTest : public ::testing::Test {
 protected:
  OptionsServiceTest() {
    DTRUN_ERROR_INIT(error_);
    Put("flag", Type::kBool, true);
    Put("size", Type::kBytes, std::int64_t{65536});
    Put("ratio", Type::kFloat, 0.5);
    Put("name", Type::kString, std::string("eth0"));
    Put("shape", Type::kEnum, std::string("tree"));
    Put("tls", Type::kList, std::vector<std::string>{"tcp", "self"});
    Put("none", Type::kList, std::vector<std::string>{});
    Put("unset", Type::kString, {});
  }

  void Put(const char* key, Type type, Data data) {
    Spec spec;
    spec.key = key;
    spec.type = type;
    if (type == Type::kEnum) spec.choices = {"ring", "tree"};
    options_.Set(spec, Value{std::move(data), Origin{DTRUN_ORIGIN_ENVIRONMENT, "DTRUN_CONFIG_X"}});
  }

  std::int64_t Int(const char* key) {
    std::int64_t out = -1;
    EXPECT_EQ(service_->get_int(nullptr, &options_, key, &out, &error_), DTRUN_OK) << error_.message;
    return out;
  }

  dtrun_options options_;
  const dtrun_options_service* service_ = OptionsService();
  dtrun_error error_;
};

TEST_F(OptionsServiceTest, StampsItsSize) { EXPECT_EQ(service_->struct_size, sizeof(dtrun_options_service)); }

TEST_F(OptionsServiceTest, ReadsWholeNumbersFlagsAndTheIndexOfAnEnum) {
  EXPECT_EQ(Int("flag"), 1);
  EXPECT_EQ(Int("size"), 65536);
  EXPECT_EQ(Int("shape"), 1);
}

TEST_F(OptionsServiceTest, ReadsFloatsAndTexts) {
  double ratio = 0;
  EXPECT_EQ(service_->get_float(nullptr, &options_, "ratio", &ratio, nullptr), DTRUN_OK);
  EXPECT_EQ(ratio, 0.5);
  dtrun_string text{};
  EXPECT_EQ(service_->get_string(nullptr, &options_, "name", &text, nullptr), DTRUN_OK);
  EXPECT_EQ(std::string(text.data, text.size), "eth0");
  EXPECT_EQ(service_->get_string(nullptr, &options_, "shape", &text, nullptr), DTRUN_OK);
  EXPECT_STREQ(text.data, "tree");
}

TEST_F(OptionsServiceTest, ReadsListsAndEmptyOnes) {
  const dtrun_string* items = nullptr;
  std::uint64_t count = 9;
  EXPECT_EQ(service_->get_list(nullptr, &options_, "tls", &items, &count, nullptr), DTRUN_OK);
  ASSERT_EQ(count, 2u);
  EXPECT_STREQ(items[1].data, "self");
  EXPECT_EQ(service_->get_list(nullptr, &options_, "none", &items, &count, nullptr), DTRUN_OK);
  EXPECT_EQ(count, 0u);
}

TEST_F(OptionsServiceTest, TellsTheOriginOfAValue) {
  std::int32_t origin = -1;
  dtrun_string place{};
  EXPECT_EQ(service_->get_origin(nullptr, &options_, "unset", &origin, &place, nullptr), DTRUN_OK);
  EXPECT_EQ(origin, DTRUN_ORIGIN_ENVIRONMENT);
  EXPECT_STREQ(place.data, "DTRUN_CONFIG_X");
}

TEST_F(OptionsServiceTest, SaysNotFoundForAnUnsetOptionAndLeavesTheOutputAlone) {
  dtrun_string text{"before", 6};
  EXPECT_EQ(service_->get_string(nullptr, &options_, "unset", &text, &error_), DTRUN_NOT_FOUND);
  EXPECT_STREQ(error_.message, "option 'unset' is unset and has no default");
  EXPECT_STREQ(text.data, "before");
}

TEST_F(OptionsServiceTest, RefusesAKeyTheTableLacksAndAnotherType) {
  std::int64_t number = 7;
  EXPECT_EQ(service_->get_int(nullptr, &options_, "nam", &number, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("no such option"));
  EXPECT_EQ(service_->get_int(nullptr, &options_, "name", &number, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.message, "option 'name' is a string; get_int does not read that");
  EXPECT_EQ(number, 7);
  double real = 0;
  EXPECT_EQ(service_->get_float(nullptr, &options_, "size", &real, nullptr), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(service_->get_int(nullptr, nullptr, "name", &number, nullptr), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(service_->get_int(nullptr, &options_, nullptr, &number, nullptr), DTRUN_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace dtrun::options
