// What most unit tests of core include; compiled once by dtrun_precompiled() of DtrunTargets.cmake.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmake/precompiled_core.h"
