// What Asio's TLS does not have in its headers when BOOST_ASIO_SEPARATE_COMPILATION is set
// (cmake/DtrunBuild.cmake).
#include <boost/asio/ssl/impl/src.hpp>

#include "core/base/asio.h"
