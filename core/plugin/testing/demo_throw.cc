// For the demo plugins that throw out of a member.
#include <stdexcept>

extern "C" void demo_throw() { throw std::runtime_error("vendor lost the link"); }
