// The non-header part of Asio, needed with BOOST_ASIO_SEPARATE_COMPILATION
// (cmake/DtrunBuild.cmake).
#include "core/base/asio.h"

#include <boost/asio/impl/src.hpp>
