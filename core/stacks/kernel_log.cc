#include "core/stacks/kernel_log.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/base/number.h"
#include "core/base/read_file.h"
#include "core/base/text.h"

namespace dtrun::stacks {
namespace {

constexpr std::size_t kLongestRecord = 8192;  // CONSOLE_EXT_LOG_MAX
constexpr int kMostRecords = 100'000;
constexpr int kMostSegments = 64;

// The number that `text` begins with; removes it and one character behind it.
std::optional<std::uint64_t> TakeHex(std::string_view* text) {
  const auto number = TakeNumber<std::uint64_t>(text, 16);
  if (number && !text->empty()) text->remove_prefix(1);
  return number;
}

// What follows `words`; empty: they are not there.
std::string_view After(std::string_view text, std::string_view words) {
  const auto at = text.find(words);
  return at == text.npos ? std::string_view() : text.substr(at + words.size());
}

}  // namespace

// "6,1234,5678,-;train[4711]: segfault at 0 ip 55d0c0de1198 sp 7ffe error 6 in
// train[1198,55d0c0de1000+1000]",
// "...;traps: train[4711] trap divide error ip:55d0c0de1198 sp:7ffe error:0 in train[55d0c0de1000+1000]"
std::optional<LoggedFault> FaultIn(std::string_view record, pid_t pid) {
  const std::string_view said = After(record.substr(0, record.find('\n')), fmt::format("[{}]", pid));
  std::string_view ip = After(said, " ip");
  if (ip.empty() || said.find("error") == said.npos) return std::nullopt;
  ip.remove_prefix(1);  // ' ' or ':'
  LoggedFault fault;
  const auto address = TakeHex(&ip);
  std::string_view rest = After(ip, " in ");
  const auto bracket = rest.rfind('[');
  if (!address || bracket == rest.npos) return std::nullopt;
  fault.address = *address;
  fault.module = rest.substr(0, bracket);
  rest.remove_prefix(bracket + 1);
  if (rest.find(',') < rest.find('+')) {
    fault.offset = TakeHex(&rest);
    if (!fault.offset) return std::nullopt;
  }
  const auto begin = TakeHex(&rest), size = TakeHex(&rest);
  if (!begin || !size || fault.address < *begin || fault.address - *begin >= *size) return std::nullopt;
  fault.begin = *begin;
  fault.size = *size;
  return fault;
}

std::optional<std::uint64_t> AddressIn(const std::filesystem::path& program, const LoggedFault& fault) {
  if (program.filename() != fault.module) return std::nullopt;
  const Result<UniqueFd> file = OpenForeignFile(program);
  if (!file) return std::nullopt;
  const auto read = [&](void* to, std::size_t size, std::uint64_t at) {
    return ::pread(file->get(), to, size, static_cast<off_t>(at)) == static_cast<ssize_t>(size);
  };
  Elf64_Ehdr header;
  if (!read(&header, sizeof header, 0) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64)
    return std::nullopt;
  for (int i = 0; i < header.e_phnum && i < kMostSegments; ++i) {
    Elf64_Phdr segment;
    if (!read(&segment, sizeof segment, header.e_phoff + i * sizeof segment)) return std::nullopt;
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    // The only mapping with code begins on the page where its segment does.
    const std::uint64_t offset =
        fault.offset.value_or(fault.address - fault.begin + segment.p_offset / 4096 * 4096);
    if (offset >= segment.p_offset && offset - segment.p_offset < segment.p_filesz)
      return offset - segment.p_offset + segment.p_vaddr;
  }
  return std::nullopt;
}

KernelLog::KernelLog() : records_(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (records_) ::lseek(records_.get(), 0, SEEK_END);
}

std::optional<LoggedFault> KernelLog::FaultOf(pid_t pid) {
  std::array<char, kLongestRecord> record;
  for (int i = 0; records_ && i < kMostRecords; ++i) {
    const ssize_t size = ::read(records_.get(), record.data(), record.size());
    if (size < 0 && (errno == EPIPE || errno == EINTR)) continue;  // EPIPE: older ones are lost
    if (size <= 0) break;
    if (auto fault = FaultIn({record.data(), static_cast<std::size_t>(size)}, pid)) return fault;
  }
  return std::nullopt;
}

}  // namespace dtrun::stacks
