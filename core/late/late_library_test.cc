#include "core/late/late_library.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <string>

namespace dtrun::late {
namespace {

TEST(LateLibraryTest, FindsAFunction) {
  Library math("libm.so.6", "libc6");
  const auto cosine = reinterpret_cast<double (*)(double)>(math.Find("cos"));
  EXPECT_EQ(cosine(0), 1);
  EXPECT_EQ(math.Find("cos"), reinterpret_cast<void*>(cosine));
}

TEST(LateLibraryDeathTest, NamesALibraryThatIsMissing) {
  Library missing("libdtrun-has-no-such.so.7", "libnone7");
  EXPECT_EXIT(missing.Find("f"), testing::ExitedWithCode(2),
              "cannot load 'libdtrun-has-no-such.so.7', .*No such file.*install the package libnone7");
}

TEST(LateLibraryDeathTest, NamesAFunctionThatIsMissing) {
  Library math("libm.so.6", "libc6");
  EXPECT_EXIT(math.Find("no_such_function"), testing::ExitedWithCode(2), "no_such_function");
}

}  // namespace
}  // namespace dtrun::late
