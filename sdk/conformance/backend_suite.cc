#include "backend_suite.h"

#include <gtest/gtest.h>

#include <exception>
#include <utility>

#include "suite.h"

namespace dtrun::conformance {
namespace {

class Case : public testing::Test {
 public:
  Case(BackendUnderTest backend, Body body) : backend_(std::move(backend)), body_(std::move(body)) {}

  void TestBody() override {
    try {
      const Subject subject(backend_);
      body_(subject);
    } catch (const std::exception& error) {
      FAIL() << error.what();
    }
  }

 private:
  const BackendUnderTest backend_;
  const Body body_;
};

}  // namespace

void AddCase(const std::string& suite, const std::string& name, const BackendUnderTest& backend, Body body) {
  testing::RegisterTest(suite.c_str(), name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                        [=]() -> Case* { return new Case(backend, body); });
}

bool RegisterBackendSuite(BackendUnderTest backend) {
  AddPluginCases(backend);
  AddCollectiveCases(backend);
  AddRequestCases(backend);
  AddPointToPointCases(backend);
  AddFailureCases(backend);
  return true;
}

}  // namespace dtrun::conformance
