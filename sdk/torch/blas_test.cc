#include "dtrun/torch/blas.h"

#include <gtest/gtest.h>

namespace dtrun::torch {
namespace {

constexpr const char* kOther =
    "7f00-7f01 r-xp 00000000 08:01 1   /usr/lib/x86_64-linux-gnu/libc.so.6\n7f01-7f02 rw-p 0 00:00 0\n";

TEST(FindBlas, KnowsOpenBlasByItsOwnName) {
  const Blas blas = find_blas(
      std::string(kOther) +
      "7f02-7f03 r-xp 0 08:01 2 /usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblasp-r0.3.21.so\n");
  EXPECT_EQ(blas.name, "OpenBLAS");
  EXPECT_EQ(blas.path, "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblasp-r0.3.21.so");
  EXPECT_FALSE(blas.slow);
}

TEST(FindBlas, KnowsAnAlternativeByItsFolder) {
  EXPECT_EQ(find_blas("1-2 r-xp 0 08:01 2 /usr/lib/x86_64-linux-gnu/openblas-pthread/libblas.so.3").name,
            "OpenBLAS");
  EXPECT_EQ(find_blas("1-2 r-xp 0 08:01 2 /usr/lib/x86_64-linux-gnu/blis-openmp/libblas.so.3").name, "BLIS");
}

TEST(FindBlas, CallsTheReferenceImplementationSlow) {
  const Blas blas = find_blas(
      std::string("1-2 r-xp 0 08:01 2 /usr/lib/x86_64-linux-gnu/blas/libblas.so.3.11.0\n") + kOther);
  EXPECT_EQ(blas.name, "reference BLAS");
  EXPECT_TRUE(blas.slow);
}

TEST(FindBlas, TakesAFastLibraryBesideTheReferenceFileAsTheOneInUse) {
  EXPECT_EQ(
      find_blas("1-2 r-xp 0 08:01 2 /usr/lib/libblas.so.3\n1-2 r-xp 0 08:01 2 /opt/libmkl_rt.so.2\n").name,
      "MKL");
}

TEST(FindBlas, IsNotFooledByAFolderOfAnotherLibrary) {
  EXPECT_EQ(find_blas("1-2 r-xp 0 08:01 2 /home/openblas/lib/libz.so.1\n").path, "");
}

TEST(FindBlas, SaysSoWhenNoLibraryIsMapped) {
  const Blas blas = find_blas(kOther);
  EXPECT_EQ(blas.name, "built into libtorch");
  EXPECT_FALSE(blas.slow);
}

TEST(BetterKernels, NamesTheOnesForTheProcessorWhenOpenBlasFellBack) {
  EXPECT_EQ(better_kernels("Prescott", true, true), "SKYLAKEX");
  EXPECT_EQ(better_kernels("Prescott", true, false), "HASWELL");
  EXPECT_EQ(better_kernels("Prescott", false, false), "") << "an old processor gets what it can run";
  EXPECT_EQ(better_kernels("Zen", true, false), "");
  EXPECT_EQ(better_kernels("", true, true), "");
}

}  // namespace
}  // namespace dtrun::torch
