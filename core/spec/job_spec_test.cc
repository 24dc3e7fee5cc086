#include <gtest/gtest.h>

#include "core/spec/read.h"

namespace dtrun::spec {
namespace {

JobSpec Defaults() {
  Request request;
  request.command = {"true"};
  return Load(request, {}).spec;
}

TEST(JobSpec, FindsSpecsByKey) {
  const JobSpec spec = Defaults();
  ASSERT_NE(spec.Find("job.env"), nullptr);
  EXPECT_EQ(spec.Find("job.env")->type, options::Type::kMap);
  EXPECT_EQ(spec.Find("job"), nullptr);
}

TEST(JobSpec, FindsAFieldOfACopyByItsKey) {
  const JobSpec first = Defaults();
  JobSpec copy = first;
  for (const options::Spec& row : CoreSchema()) {
    AnyField* field = copy.FieldOf(row.key);
    ASSERT_NE(field, nullptr) << row.key;
    EXPECT_EQ(field->key(), row.key);
  }
  EXPECT_EQ(copy.FieldOf("output.color"), &copy.output.color);
  copy.FieldOf("logs.mode")->value.data = std::string("all");
  EXPECT_EQ(*copy.logs.mode, "all");
  EXPECT_EQ(*first.logs.mode, "private");
  EXPECT_EQ(copy.FieldOf("logs"), nullptr);
}

TEST(JobSpecDeathTest, EndsTheProcessOnABreachOfItsContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const JobSpec spec = Defaults();
  EXPECT_DEATH(static_cast<void>(spec.Get("job.nam")), "");
  EXPECT_DEATH(static_cast<void>(*spec.job.cwd), "");
}

}  // namespace
}  // namespace dtrun::spec
