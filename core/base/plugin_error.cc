#include "core/base/plugin_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/printable.h"

namespace dtrun {

Error Explained(dtrun_status status, const dtrun_error& cause, std::string_view context) {
  const bool known = status > DTRUN_PENDING && status <= DTRUN_MISMATCH;
  std::string text = Printable({cause.message, ::strnlen(cause.message, sizeof cause.message)});
  if (text.empty()) text = known ? StatusText(status) : "it failed and did not say why";
  if (!known) text += fmt::format(" (it returned {}, which is not the status of a failure)", status);
  if (!context.empty()) text = fmt::format("{}: {}", context, text);
  Error error{known ? status : DTRUN_INTERNAL, std::move(text), std::max(cause.peer, -1)};
  error.vendor_domain.assign(cause.vendor_domain, ::strnlen(cause.vendor_domain, sizeof cause.vendor_domain));
  error.vendor_code = cause.vendor_code;
  return error;
}

}  // namespace dtrun
