// What most unit tests of core include; see DtrunPrecompiled.cmake.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmake/precompiled_core.h"
