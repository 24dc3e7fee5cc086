// What a C++ library may do to a plugin that calls it.
#include <stdexcept>

extern "C" void throw_from_a_library();
extern "C" void throw_from_a_library() { throw std::runtime_error("thrown by enqueue"); }
