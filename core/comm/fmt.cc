// fmt.cc - libdtrun's own copy of what it calls of the library fmt, so that programs need not have that
// library's version.
//
// As fmt compiles it in its own sources. Hidden, as all that dtrun.map does not name; any thread.
#include <fmt/format-inl.h>

template auto fmt::detail::thousands_sep_impl<char>(fmt::detail::locale_ref)
    -> fmt::detail::thousands_sep_result<char>;
template auto fmt::detail::decimal_point_impl<char>(fmt::detail::locale_ref) -> char;
