// What Asio does not have in its headers when BOOST_ASIO_SEPARATE_COMPILATION is set
// (cmake/DtrunBuild.cmake).
#include "core/base/asio.h"

#include <boost/asio/impl/src.hpp>
