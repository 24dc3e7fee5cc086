#include <gmock/gmock.h>

#include <vector>

#include "sdk/services/services.h"

namespace dtrun::services {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class KernelsServiceTest : public testing::Test {
 protected:
  KernelsServiceTest() { DTRUN_ERROR_INIT(error_); }

  dtrun_status Reduce(std::int32_t dtype, std::int32_t reduce, std::uint64_t source_count = 2) {
    dtrun_reduction reduction;
    DTRUN_INIT(reduction);
    reduction.dtype = dtype;
    reduction.reduce = reduce;
    reduction.out = out_.data();
    reduction.sources = sources_;
    reduction.source_count = source_count;
    reduction.count = 2;
    return Kernels()->reduce(nullptr, &reduction, &error_);
  }

  std::vector<float> first_{1, 2}, second_{10, 20}, out_{0, 0};
  const void* sources_[2] = {first_.data(), second_.data()};
  dtrun_error error_;
};

TEST_F(KernelsServiceTest, CombinesSources) {
  EXPECT_EQ(Reduce(DTRUN_FLOAT32, DTRUN_SUM), DTRUN_OK);
  EXPECT_THAT(out_, ElementsAre(11, 22));
  EXPECT_EQ(Reduce(DTRUN_FLOAT32, DTRUN_AVG), DTRUN_OK);
  EXPECT_THAT(out_, ElementsAre(5.5, 11));
  EXPECT_EQ(Reduce(DTRUN_FLOAT32, DTRUN_MAX, 1), DTRUN_OK);
  EXPECT_THAT(out_, ElementsAre(1, 2));
}

TEST_F(KernelsServiceTest, ReducesWhateverHasAMeaningAndRefusesTheRest) {
  alignas(16) std::byte memory[3][64] = {};
  const void* sources[] = {memory[0], memory[1]};
  int with_meaning = 0;
  for (std::int32_t dtype = -1; dtype <= DTRUN_COMPLEX128 + 1; ++dtype) {
    for (std::int32_t reduce = -1; reduce <= DTRUN_LOR + 1; ++reduce) {
      dtrun_reduction reduction;
      DTRUN_INIT(reduction);
      reduction.dtype = dtype;
      reduction.reduce = reduce;
      reduction.out = memory[2];
      reduction.sources = sources;
      reduction.source_count = 2;
      reduction.count = 2;
      const bool meaning = Kernels()->has_meaning(nullptr, dtype, reduce) == 1;
      with_meaning += meaning ? 1 : 0;
      EXPECT_EQ(Kernels()->reduce(nullptr, &reduction, nullptr), meaning ? DTRUN_OK : DTRUN_UNSUPPORTED)
          << dtype << ' ' << reduce;
    }
  }
  EXPECT_GT(with_meaning, 100);
}

TEST_F(KernelsServiceTest, ScalesFloatingElementsOnly) {
  EXPECT_EQ(Kernels()->scale(nullptr, out_.data(), first_.data(), 2, DTRUN_FLOAT32, 3, &error_), DTRUN_OK);
  EXPECT_THAT(out_, ElementsAre(3, 6));
  EXPECT_EQ(Kernels()->scale(nullptr, out_.data(), first_.data(), 2, DTRUN_INT32, 3, &error_),
            DTRUN_UNSUPPORTED);
  EXPECT_THAT(error_.message, HasSubstr("'int32'"));
}

TEST_F(KernelsServiceTest, KnowsTheSizeOfElements) {
  EXPECT_EQ(Kernels()->element_bytes(nullptr, DTRUN_COMPLEX128), 16u);
  EXPECT_EQ(Kernels()->element_bytes(nullptr, DTRUN_BOOL), 1u);
  EXPECT_EQ(Kernels()->element_bytes(nullptr, 99), 0u);
}

TEST_F(KernelsServiceTest, SaysWhatIsWrongWithACall) {
  EXPECT_EQ(Reduce(99, DTRUN_SUM), DTRUN_UNSUPPORTED);
  EXPECT_THAT(error_.message, HasSubstr("'unknown type' (99)"));
  EXPECT_EQ(Reduce(DTRUN_FLOAT32, DTRUN_SUM, 0), DTRUN_INVALID_ARGUMENT);
  sources_[1] = nullptr;
  EXPECT_EQ(Reduce(DTRUN_FLOAT32, DTRUN_SUM), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("a source is a null pointer"));
  EXPECT_EQ(Kernels()->reduce(nullptr, nullptr, &error_), DTRUN_INVALID_ARGUMENT);
}

TEST_F(KernelsServiceTest, RefusesAFlagThatMustBeUnderstood) {
  dtrun_reduction reduction;
  DTRUN_INIT(reduction);
  reduction.flags = 1u << 16;
  EXPECT_EQ(Kernels()->reduce(nullptr, &reduction, &error_), DTRUN_UNSUPPORTED);
  EXPECT_THAT(error_.message, HasSubstr("upgrade dtrun"));
}

}  // namespace
}  // namespace dtrun::services
