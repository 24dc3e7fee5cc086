#include "except.h"

#include <gtest/gtest.h>

#include <utility>

namespace dtrun::nccl_test {
namespace {

class Skipper : public testing::EmptyTestEventListener {
 public:
  explicit Skipper(std::map<std::string, std::string> reasons) : reasons_(std::move(reasons)) {}

  void OnTestStart(const testing::TestInfo& test) override {
    const auto found = reasons_.find(std::string(test.test_suite_name()) + "." + test.name());
    if (found != reasons_.end()) GTEST_SKIP() << found->second;
  }

 private:
  const std::map<std::string, std::string> reasons_;
};

}  // namespace

bool Except(std::map<std::string, std::string> reasons) {
  testing::UnitTest::GetInstance()->listeners().Append(new Skipper(std::move(reasons)));
  return true;
}

}  // namespace dtrun::nccl_test
