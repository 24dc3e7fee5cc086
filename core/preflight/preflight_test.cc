#include "core/preflight/preflight.h"

#include <gtest/gtest.h>

#include "core/wire/coder.h"

namespace dtrun::preflight {
namespace {

TEST(Preflight, TravelsToAHostAndBack) {
  const Request asked{{{"gloo", "/x/gloo.so", "{}", "", true, false, "sha256 0f"}}, 3, 4};
  const auto request = wire::Decode<Request>(wire::Encode(asked), "request");
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->backends[0].file_id, "sha256 0f");
  EXPECT_EQ(request->backends[0].path, "/x/gloo.so");
  EXPECT_EQ(request->host_count, 3);
  EXPECT_EQ(request->local_ranks, 4);
  const Answer given{{{"gloo", "a \xff byte", "", {{}, {}, "build-id 0f"}}}};
  const auto answer = wire::Decode<Answer>(wire::Encode(given), "answer");
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->backends[0].why_not, "a \xff byte");
  EXPECT_EQ(answer->backends[0].info.file_id, "build-id 0f");
}

TEST(Preflight, APluginThatIsNotThereCannotBeUsed) {
  const Answer answer = RunPreflight(Request{{{"gloo", "/nowhere/gloo.so", "{}", ""}}, 1, 1});
  EXPECT_EQ(answer.backends[0].why_not, "'/nowhere/gloo.so' does not exist");
}

}  // namespace
}  // namespace dtrun::preflight
