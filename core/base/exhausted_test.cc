#include <gtest/gtest.h>
#include <sys/resource.h>

#include <new>
#include <stdexcept>

#include "core/base/error.h"

namespace dtrun {
namespace {

TEST(Exhausted, NamesTheLimitOfMemory) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  if (before.rlim_max != RLIM_INFINITY) GTEST_SKIP() << "the address space is limited here";
  rlimit limited = before;
  limited.rlim_cur = rlim_t{1} << 50;  // larger than a sanitizer's shadow memory
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limited), 0);
  const std::string text = Exhausted(std::bad_alloc());
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(text, "out of memory; raise `ulimit -v`, which is 1099511627776");
  EXPECT_EQ(Exhausted(std::runtime_error("too many files")), "too many files; look at `ulimit -a`");
}

}  // namespace
}  // namespace dtrun
