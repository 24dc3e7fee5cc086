#include "core/stacks/kernel_log.h"

#include <gtest/gtest.h>
#include <link.h>

#include <string>

namespace dtrun::stacks {
namespace {

// Of Linux 6.18.
constexpr char kFault[] =
    "6,845,23931662826,-;crash[28278]: segfault at 0 ip 0000559fc2e80155 sp 00007ffc266e0450 error 6 in "
    "crash[1155,559fc2e80000+1000] likely on CPU 0 (core 0, socket 0)\n SUBSYSTEM=x\n";
// Of Linux 6.1.
constexpr char kTrap[] =
    "6,846,23931662826,-;traps: my [1] train[4711] trap divide error ip:401136 sp:7ffe0 error:0 in "
    "my [1] train[401000+1000]\n";

TEST(KernelLog, HasTheAddressOfAFault) {
  const auto fault = FaultIn(kFault, 28278);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->module, "crash");
  EXPECT_EQ(fault->address, 0x559fc2e80155U);
  EXPECT_EQ(fault->begin, 0x559fc2e80000U);
  EXPECT_EQ(fault->size, 0x1000U);
  EXPECT_EQ(fault->offset, 0x1155U);
  const auto trap = FaultIn(kTrap, 4711);
  ASSERT_TRUE(trap);
  EXPECT_EQ(trap->module, "my [1] train");
  EXPECT_EQ(trap->address, 0x401136U);
  EXPECT_FALSE(trap->offset);
}

TEST(KernelLog, OfAnotherProcessOrADamagedOneIsNone) {
  EXPECT_FALSE(FaultIn(kFault, 2827));
  EXPECT_FALSE(FaultIn(kFault, 8278));
  EXPECT_FALSE(FaultIn("", 1));
  EXPECT_FALSE(FaultIn("6,1,2,-;a[1]: segfault at 0 ip 10 sp 7 error 6 in a[1155,9+", 1));
  EXPECT_FALSE(FaultIn("6,1,2,-;a[1]: segfault at 0 ip 10 sp 7 error 6 in a[0+5]", 1))
      << "not in that mapping";
  EXPECT_FALSE(FaultIn("6,1,2,-;a[1]: segfault at 0 ip 10 sp 7 error 14", 1)) << "no code is there";
  const std::string whole(kFault);
  for (std::size_t size = 0; size < whole.find(']', whole.find("1155")); ++size)
    EXPECT_FALSE(FaultIn(whole.substr(0, size), 28278)) << size;
}

void Here() {}

// The addresses that symbols have: of the code of this program, less where it was loaded.
TEST(KernelLog, AnAddressIsTheSymbols) {
  const auto at = reinterpret_cast<std::uint64_t>(&Here);
  struct Found {
    std::uint64_t at, bias = 0, begin = 0, offset = 0, size = 0;
  } found{at};
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        Found& look = *static_cast<Found*>(to);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& one = info->dlpi_phdr[i];
          const std::uint64_t begin = info->dlpi_addr + one.p_vaddr;
          if (one.p_type != PT_LOAD || look.at < begin || look.at - begin >= one.p_memsz) continue;
          look.bias = info->dlpi_addr;
          look.begin = begin / 4096 * 4096;
          look.offset = look.at - begin + one.p_offset;
          look.size = one.p_memsz;
        }
        return 0;
      },
      &found);
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  LoggedFault fault{program.filename(), found.begin, found.size, at, found.offset};
  EXPECT_EQ(AddressIn(program, fault), at - found.bias);
  fault.offset.reset();
  EXPECT_EQ(AddressIn(program, fault), at - found.bias);
  fault.module = "libc.so.6";
  EXPECT_FALSE(AddressIn(program, fault));
}

}  // namespace
}  // namespace dtrun::stacks
