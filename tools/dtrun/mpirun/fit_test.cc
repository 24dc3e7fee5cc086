#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tools/dtrun/mpirun/identity.h"

namespace dtrun::mpirun {
namespace {

using pmi::Kind;

constexpr char kOpenMpi[] =
    "7f00-7f01 r-xp 00000000 fe:00 1 /usr/lib/x86_64-linux-gnu/openmpi/lib/libmpi.so.40.30.4\n";
constexpr char kMpich[] = "7f00-7f01 r-xp 00000000 fe:00 1 /usr/lib/x86_64-linux-gnu/libmpich.so.12.2.1\n";
constexpr char kIntel[] = "7f00-7f01 r-xp 00000000 fe:00 1 /opt/intel/lib/libmpi.so.12.0.0\n";

TEST(LoadedIn, KnowsWhoseMpiItIs) {
  EXPECT_EQ(LoadedIn("", Kind::kPmix), Loaded::kNone);
  EXPECT_EQ(LoadedIn(kOpenMpi, Kind::kPmix), Loaded::kOwn);
  EXPECT_EQ(LoadedIn(kOpenMpi, Kind::kPmi1), Loaded::kForeign);
  for (const char* const maps : {kMpich, kIntel}) {
    EXPECT_EQ(LoadedIn(maps, Kind::kPmi1), Loaded::kOwn);
    EXPECT_EQ(LoadedIn(maps, Kind::kPmix), Loaded::kForeign);
  }
  EXPECT_EQ(LoadedIn(std::string(kOpenMpi) + kMpich, Kind::kPmix), Loaded::kOwn)
      << "it is unknown which one the program uses";
}

TEST(CheckMpi, PassesWhatHasNoMpi) {
  for (const Kind served : {Kind::kPmix, Kind::kPmi1}) {
    EXPECT_TRUE(CheckMpi({}, served));
    EXPECT_TRUE(CheckMpi({"/bin/sh", "-c", "true"}, served));
    EXPECT_TRUE(CheckMpi({"/nowhere/at/all"}, served));
    EXPECT_EQ(LoadedBy(::getpid(), served), Loaded::kNone);
  }
}

}  // namespace
}  // namespace dtrun::mpirun
