#include "core/plugin/elf.h"

#include <gmock/gmock.h>

#include "core/plugin/testing/support.h"

namespace dtrun::plugin {
namespace {

using ::testing::HasSubstr;

Result<ElfFile> Read(const std::filesystem::path& path) { return ReadElf(*OpenedFile::Open(path)); }

TEST(Elf, ReadsASharedObject) { EXPECT_TRUE(Read(testing::Built("demo").path).ok()); }

TEST(Elf, RefusesAFileCutAtAnyPlace) {
  const testing::TempFolder folder;
  const auto path = folder.Copy("demo");
  const auto size = std::filesystem::file_size(path);
  for (const std::uintmax_t cut :
       {size - 1, size / 2, std::uintmax_t{500}, std::uintmax_t{64}, std::uintmax_t{10}, std::uintmax_t{0}}) {
    std::filesystem::resize_file(path, cut);
    const auto elf = Read(path);
    ASSERT_FALSE(elf.ok()) << cut;
    EXPECT_THAT(elf.error().text, HasSubstr("truncated or not a shared object")) << cut;
  }
}

TEST(Elf, RefusesAScript) {
  const testing::TempFolder folder;
  const auto script = folder.Write("x.so", "#!/bin/sh\n" + std::string(200, '#'));
  EXPECT_THAT(Read(script).error().text, HasSubstr("ELF magic"));
}

TEST(Elf, RefusesAnObjectForAnotherMachine) {
  const auto refusal = [](int at, const char* bytes) {
    const testing::TempFolder folder;
    const auto path = folder.Copy("demo");
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(at);
    file.write(bytes, 1);
    file.close();
    return Read(path).error().text;
  };
  EXPECT_THAT(refusal(18, "\x02"), HasSubstr("another machine"));  // e_machine
  EXPECT_THAT(refusal(4, "\x01"), HasSubstr("32-bit"));            // EI_CLASS
}

}  // namespace
}  // namespace dtrun::plugin
