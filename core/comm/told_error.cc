#include "core/comm/told_error.h"

#include <fmt/format.h>

#include "core/base/number.h"

namespace dtrun::comm {

std::string EncodeError(const Error& error) {
  return fmt::format("{} {} {}", error.code, error.peer, error.text);
}

Error DecodeError(std::string_view told) {
  std::string_view rest = told;
  std::int32_t numbers[2] = {};
  for (std::int32_t& number : numbers) {
    const auto taken = TakeNumber<std::int32_t>(&rest);
    if (!taken || !rest.starts_with(' '))
      return Error{DTRUN_INTERNAL, fmt::format("'{}' is not an answer of a rank", told)};
    number = *taken;
    rest.remove_prefix(1);
  }
  return Error{numbers[0], std::string(rest), numbers[1]};
}

}  // namespace dtrun::comm
