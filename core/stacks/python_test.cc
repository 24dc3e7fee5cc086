#include "core/stacks/python.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "core/stacks/testing/python_image.h"

namespace dtrun::stacks {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;
using testing::PythonImage;
using ::testing::SizeIs;

// Simulates a process in which any address can be read, and a code object is another one at each read.
class EverythingMapped final : public Memory {
 public:
  explicit EverythingMapped(const Memory& image) : Memory(PythonImage::kPid), image_(image) {}
  std::size_t copied() const { return copied_; }

 private:
  bool CopyFrom(std::uint64_t address, void* to, std::size_t size) const override {
    copied_ += size;
    if (!image_.Copy(address, to, size)) std::memset(to, 0x0b, size);
    if (size == kCodeSize) std::memcpy(static_cast<char*>(to) + kFirstLineAt, &++lines_, sizeof lines_);
    return true;
  }
  static constexpr std::size_t kCodeSize = 184, kFirstLineAt = 72;
  const Memory& image_;
  mutable std::size_t copied_ = 0;
  mutable std::int32_t lines_ = 0;
};

Python ReadPython(const Memory& memory) { return PythonReader(memory, PythonImage::Maps()).Read(memory); }

TEST(PythonReader, ReadsTheStacksOfAllThreads) {
  const PythonImage image;
  const Python python = ReadPython(image);
  ASSERT_THAT(python.threads, SizeIs(2));
  const PythonThread& first = python.threads[0];
  EXPECT_EQ(first.id, PythonImage::kPid);
  EXPECT_TRUE(first.holds_gil);
  EXPECT_FALSE(first.cut);
  ASSERT_THAT(first.frames, SizeIs(2));
  EXPECT_EQ(first.frames[0].file, "/work/train.py");
  EXPECT_EQ(first.frames[0].function, "step");
  EXPECT_EQ(first.frames[0].line, 40);
  EXPECT_EQ(first.frames[0].column, 4);
  EXPECT_EQ(first.frames[0].end_column, 9);
  EXPECT_EQ(first.frames[1].function, "<module>");
  EXPECT_EQ(first.frames[1].line, 4);
  EXPECT_FALSE(python.threads[1].holds_gil);
  EXPECT_THAT(python.threads[1].frames, SizeIs(1));
}

TEST(PythonReader, KeepsTheCodeThatItHasMet) {
  PythonImage image;
  PythonReader reader(image, PythonImage::Maps());
  ASSERT_THAT(reader.Read(image).threads, SizeIs(2));
  image.PutText(0x1600, "other");  // at the same address: not read again
  EXPECT_EQ(reader.Read(image).threads[0].frames[0].function, "step");
  image.PutPointer(PythonImage::kCode + 128, 0x1680);
  EXPECT_EQ(reader.Read(image).threads[0].frames[0].function, "<module>");
  image.Put(PythonImage::kVersion, std::uint32_t{0x030c07f0});
  EXPECT_THAT(reader.Read(image).threads, IsEmpty());  // it is another program
}

TEST(PythonReader, CutsAStackThatIsItsOwnCaller) {
  PythonImage image;
  image.PutPointer(PythonImage::kCaller + 48, PythonImage::kFrame);
  const Python python = ReadPython(image);
  ASSERT_THAT(python.threads, SizeIs(2));
  EXPECT_TRUE(python.threads[0].cut);
  EXPECT_THAT(python.threads[0].frames, SizeIs(100));
}

TEST(PythonReader, QuotesNoControlCharacters) {
  PythonImage image;
  image.PutText(0x1600, "\x1b[2J\x7f");
  const Python python = ReadPython(image);
  ASSERT_THAT(python.threads, SizeIs(2));
  EXPECT_EQ(python.threads[0].frames[0].function, "?[2J?");
}

// 3.13's description of its structures is in memory that the rank may have overwritten.
TEST(PythonReader, BelievesNoLayoutThatDoesNotFit) {
  constexpr std::uint64_t kRuntimeAt = 0x400, kOffsets = 70;
  constexpr std::uint32_t kVersion = 0x030d00f0;
  for (const std::uint64_t offset :
       {std::uint64_t{0}, std::uint64_t{8}, ~std::uint64_t{3}, ~std::uint64_t{0}}) {
    PythonImage image;
    image.Put(PythonImage::kVersion, kVersion);
    image.Put(kRuntimeAt, std::array<char, 8>{'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y'});
    image.Put(kRuntimeAt + 8, std::uint64_t{kVersion});
    image.Put(kRuntimeAt + 16, std::uint64_t{0});
    for (std::uint64_t i = 3; i < kOffsets; ++i) image.Put(kRuntimeAt + 8 * i, offset);
    ReadPython(image);  // no fault
    constexpr std::uint64_t kFrameSize = 28;
    image.Put(kRuntimeAt + 8 * kFrameSize, std::uint64_t{80});
    EXPECT_THAT(ReadPython(image).threads, IsEmpty());
  }
}

// 256 threads with 100 frames each, and each frame's table has the maximum length: 25 GiB.
TEST(PythonReader, ReadsABoundedPartOfAMemoryThatLeadsAround) {
  PythonImage image;
  image.PutPointer(PythonImage::kSecondThread + 8, PythonImage::kThread);
  image.PutPointer(PythonImage::kCaller + 48, PythonImage::kFrame);
  for (const std::uint64_t table : {0x1700, 0x1780}) image.Put(table + 16, std::uint64_t{1} << 20);
  const EverythingMapped memory(image);
  const Python python = ReadPython(memory);
  EXPECT_FALSE(python.threads.empty());
  EXPECT_LE(memory.copied(), Memory::kMostBytes);
  EXPECT_GT(memory.copied(), Memory::kMostBytes / 2);
}

TEST(Locate, TakesAnyColumns) {
  // kLong with a begin and an end of 2^31, which overflows int.
  const std::string number = "\x40\x40\x40\x40\x40\x02";
  Frame frame;
  Locate(std::string("\xf0\x00\x00", 3) + number + number, 1, 0, &frame);
  EXPECT_EQ(frame.line, 1);
}

}  // namespace
}  // namespace dtrun::stacks
