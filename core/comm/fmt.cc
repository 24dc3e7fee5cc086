// fmt.cc - libdtrun's own copy of the parts of the fmt library that it calls, so that programs need not have
// that library's version.
//
// Compiled as fmt compiles its own sources. Hidden, like everything that dtrun.map does not name; any thread.
#include <fmt/format-inl.h>

template auto fmt::detail::thousands_sep_impl<char>(fmt::detail::locale_ref)
    -> fmt::detail::thousands_sep_result<char>;
template auto fmt::detail::decimal_point_impl<char>(fmt::detail::locale_ref) -> char;
