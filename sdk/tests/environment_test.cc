#include "dtrun/plugin/environment.hpp"

#include <gtest/gtest.h>

namespace dtrun::sdk {
namespace {

TEST(KeepEnvironment, PutsBackWhatWasAddedChangedAndRemoved) {
  setenv("DTRUN_TEST_CHANGED", "before", 1);
  setenv("DTRUN_TEST_REMOVED", "", 1);
  unsetenv("DTRUN_TEST_ADDED");
  {
    const KeepEnvironment keep;
    setenv("DTRUN_TEST_ADDED", "now", 1);
    setenv("DTRUN_TEST_CHANGED", "now", 1);
    unsetenv("DTRUN_TEST_REMOVED");
  }
  EXPECT_EQ(EnvironmentVariable("DTRUN_TEST_ADDED"), std::nullopt);
  EXPECT_EQ(EnvironmentVariable("DTRUN_TEST_CHANGED"), "before");
  EXPECT_EQ(EnvironmentVariable("DTRUN_TEST_REMOVED"), "");
}

}  // namespace
}  // namespace dtrun::sdk
