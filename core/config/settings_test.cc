#include "core/config/settings.h"

#include <gtest/gtest.h>

namespace dtrun::config {
namespace {

Settings Defaults() {
  Request request;
  request.command = {"true"};
  return Load(request, {}).settings;
}

TEST(Settings, FindsSpecsByKey) {
  const Settings settings = Defaults();
  ASSERT_NE(settings.Find("job.env"), nullptr);
  EXPECT_EQ(settings.Find("job.env")->type, options::Type::kMap);
  EXPECT_EQ(settings.Find("job"), nullptr);
}

TEST(Settings, GivesASnapshotOfWhatLiesUnderAPrefix) {
  const dtrun_options options = Defaults().SnapshotOf("logs.");
  ASSERT_EQ(options.entries.size(), 3u);
  EXPECT_EQ(options.entries.at("mode").value.data, options::Data(std::string("private")));
}

TEST(SettingsDeathTest, EndTheProcessOnABreachOfTheirContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Settings settings = Defaults();
  EXPECT_DEATH(static_cast<void>(settings.Get("job.nam")), "");
  EXPECT_DEATH(static_cast<void>(settings.Int("job.name")), "");
}

}  // namespace
}  // namespace dtrun::config
