// What Asio's TLS does not have in its headers when BOOST_ASIO_SEPARATE_COMPILATION is set (cmake/DtrunBuild.cmake).
#include "core/base/asio.h"

#include <boost/asio/ssl/impl/src.hpp>
