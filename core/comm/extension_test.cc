#include "core/comm/extension.h"

#include <cstring>

#include "core/comm/testing/fixture.h"

namespace dtrun::comm {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kLower[] = "acme.lower/1";

// A wrapper on a plugin that has one extension; each communicator is an address of its own.
struct Stack {
  dtrun_plugin above{}, below{};
  dtrun_wrapped wrapped{};
  char comm_below = 0;
  // What was given last.
  dtrun_instance* asked = nullptr;
  dtrun_backend_comm* given = nullptr;
  bool has_comm = true;
};
Stack* stack = nullptr;

dtrun_instance* Instance(int number) {
  static char instances[2];
  return reinterpret_cast<dtrun_instance*>(&instances[number]);
}

class Extension : public testing::CommunicatorTest {
 protected:
  Extension() {
    stack = &stack_;
    for (dtrun_plugin* plugin : {&stack_.above, &stack_.below}) DTRUN_PLUGIN_INIT(*plugin);
    stack_.above.name = "above";
    stack_.below.name = "lower";
    stack_.above.get_extension = [](dtrun_instance* self, const char* id) -> const void* {
      stack->asked = self;
      static constexpr dtrun_wrapper_extension kWrapper = {
          sizeof kWrapper, 0, [](dtrun_instance*, dtrun_backend_comm* comm, const dtrun_wrapped** out) {
            stack->given = comm;
            *out = &stack->wrapped;
            return stack->has_comm ? reinterpret_cast<dtrun_backend_comm*>(&stack->comm_below) : nullptr;
          }};
      return std::strcmp(id, DTRUN_WRAPPER_EXTENSION) == 0 ? &kWrapper : nullptr;
    };
    stack_.below.get_extension = [](dtrun_instance* self, const char* id) -> const void* {
      stack->asked = self;
      return std::strcmp(id, kLower) == 0 ? "table" : nullptr;
    };
    DTRUN_INIT(stack_.wrapped);
    stack_.wrapped.plugin = &stack_.below;
    stack_.wrapped.instance = Instance(1);
  }
  Making AMaking() override {
    Making making = CommunicatorTest::AMaking();
    making.instance = Instance(0);
    making.extensions = extensions_;
    return making;
  }
  dtrun_status Ask(const char* id) {
    DTRUN_INIT(found_);
    DTRUN_ERROR_INIT(error_);
    const Result<dtrun_extension> found = Comm().Extension(id);
    if (!found) return found.error().CopyTo(&error_);
    found_ = *found;
    return DTRUN_OK;
  }

  Stack stack_;
  Extensions extensions_ = {&stack_.below};
  dtrun_extension found_{};
};

TEST_F(Extension, IsThatOfThePluginThatCarriesTheCommunicator) {
  ASSERT_EQ(Ask(kLower), DTRUN_OK) << error_.message;
  EXPECT_STREQ(static_cast<const char*>(found_.table), "table");
  EXPECT_STREQ(found_.backend, "lower");
  EXPECT_EQ(found_.comm, Comm().raw());
  EXPECT_EQ(stack_.asked, Instance(0));
}

TEST_F(Extension, OfTheOneBelowAWrapperComesWithItsCommunicator) {
  extensions_ = {&stack_.above};
  ASSERT_EQ(Ask(kLower), DTRUN_OK) << error_.message;
  EXPECT_STREQ(found_.backend, "lower");
  EXPECT_EQ(static_cast<void*>(found_.comm), &stack_.comm_below);
  EXPECT_EQ(stack_.given, Comm().raw());
  EXPECT_EQ(stack_.asked, Instance(1));
}

TEST_F(Extension, IsFoundOnARankWithoutACommunicatorToo) {
  extensions_ = {&stack_.above};
  stack_.has_comm = false;
  ASSERT_EQ(Ask(kLower), DTRUN_OK) << error_.message;
  EXPECT_EQ(found_.comm, nullptr);
  stack_.wrapped.plugin = &stack_.above;  // another wrapper, which is asked without one
  EXPECT_EQ(Ask(kLower), DTRUN_NOT_FOUND);
  EXPECT_EQ(stack_.given, nullptr);
}

TEST_F(Extension, ThatIsMissingNamesTheBackendsAndTheId) {
  EXPECT_EQ(Ask("acme.other/2"), DTRUN_NOT_FOUND);
  EXPECT_THAT(error_.message,
              HasSubstr("no backend that carries 'world' has the extension 'acme.other/2' (asked: 'lower')"));
  stack_.below.get_extension = nullptr;
  EXPECT_EQ(Ask(kLower), DTRUN_NOT_FOUND);
}

TEST_F(Extension, OfAWrapperThatNamesItselfIsNotSearchedForEver) {
  extensions_ = {&stack_.above};
  stack_.wrapped.plugin = &stack_.above;
  stack_.above.get_extension = [](dtrun_instance*, const char* id) -> const void* {
    static constexpr dtrun_wrapper_extension kItself = {
        sizeof kItself, 0, [](dtrun_instance*, dtrun_backend_comm* comm, const dtrun_wrapped** out) {
          *out = &stack->wrapped;
          return comm;
        }};
    return std::strcmp(id, DTRUN_WRAPPER_EXTENSION) == 0 ? &kItself : nullptr;
  };
  EXPECT_EQ(Ask(kLower), DTRUN_NOT_FOUND);
}

TEST_F(Extension, IsMissingWhereNoPluginCarriesTheCommunicator) {
  extensions_ = {};
  EXPECT_EQ(Ask(kLower), DTRUN_NOT_FOUND);
  EXPECT_THAT(error_.message,
              AllOf(HasSubstr("dtrun's own backend 'fake' carries it"), HasSubstr("with dtrun")));
}

TEST_F(Extension, IsThereAfterAFailureAndAnAbort) {
  fake_.enqueue_status = DTRUN_REMOTE_FAILURE;
  EXPECT_EQ(Run(Op()), DTRUN_REMOTE_FAILURE);
  EXPECT_EQ(Ask(kLower), DTRUN_OK) << error_.message;
  EXPECT_EQ(Comm().Abort("enough", &error_), DTRUN_OK);
  EXPECT_EQ(Ask(kLower), DTRUN_OK) << error_.message;
}

TEST_F(Extension, RefusesWhatIsNoId) {
  for (const char* id : {"", "counters", "acme.counters", "acme.counters/", "acme.counters/0",
                         "acme.counters/01", "acme.counters/-1", "acme.counters/1x", "/acme.counters",
                         "acme/counters.1", ".counters/1", "acme./1", "acme.a.b/1", "Acme.counters/1",
                         "acme.coun ters/1", "acme.\x1b[31m/1", "acme.counters/99999999999"}) {
    EXPECT_EQ(Ask(id), DTRUN_INVALID_ARGUMENT) << id;
    EXPECT_THAT(error_.message, HasSubstr("expected VENDOR.NAME/REVISION"));
    EXPECT_EQ(std::strchr(error_.message, '\x1b'), nullptr);
  }
  EXPECT_EQ(Ask(nullptr), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(stack_.asked, nullptr) << "no plugin is asked";
}

}  // namespace
}  // namespace dtrun::comm
