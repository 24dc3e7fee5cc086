// The part of Asio's TLS that its headers omit when BOOST_ASIO_SEPARATE_COMPILATION is set
// (cmake/DtrunBuild.cmake).
#include <boost/asio/ssl/impl/src.hpp>

#include "core/base/asio.h"
