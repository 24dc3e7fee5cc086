#include <gtest/gtest.h>

#include "operation.h"

namespace dtrun::nccl_plugin {
namespace {

TEST(Progress, SurvivesTheKeyValueSpace) {
  Progress progress;
  progress.collective = 17;
  progress.messages = {{0, 3}, {5, 1}};
  const Progress read = Progress::Decode(progress.Encode());
  EXPECT_EQ(read.collective, 17u);
  EXPECT_EQ(read.messages, progress.messages);
  EXPECT_EQ(Progress::Decode(Progress().Encode()).collective, 0u);
}

}  // namespace
}  // namespace dtrun::nccl_plugin
