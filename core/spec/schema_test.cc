#include <gtest/gtest.h>

#include <set>

#include "core/spec/job_spec.h"

namespace dtrun::spec {
namespace {

TEST(CoreSchema, DescribesEveryOptionOnce) {
  std::set<std::string> keys, variables;
  for (const options::Spec& spec : CoreSchema()) {
    EXPECT_TRUE(keys.insert(spec.key).second) << spec.key;
    EXPECT_TRUE(variables.insert(EnvironmentName(spec.key)).second) << spec.key;
    EXPECT_FALSE(spec.doc.empty() || spec.doc.ends_with('.') || spec.doc.find('\n') != spec.doc.npos)
        << spec.key;
    EXPECT_FALSE(spec.since.empty()) << spec.key;
    EXPECT_FALSE(spec.reader.empty()) << spec.key;
  }
}

TEST(CoreSchema, HasDefaultsThatAreLegal) {
  for (const options::Spec& spec : CoreSchema()) {
    if (!spec.default_text) continue;
    const auto data = ParseText(spec, *spec.default_text, "/");
    EXPECT_TRUE(data.ok()) << spec.key << ": " << data.error().text;
  }
}

}  // namespace
}  // namespace dtrun::spec
