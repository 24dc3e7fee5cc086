// A count of elements as MPI takes it: an int and a type, whatever the number.
//
// A value on the stack of the call that it serves, which must have ended before it goes. Used by the thread
// that makes that call.
#pragma once

#include <cstdint>

#include "api.h"

namespace dtrun::mpi_plugin {

class BigType {
 public:
  // `limit`: the largest count given to MPI as a number. Longer ones become one element of a
  // type that is made here.
  BigType(const Api& api, MPI_Datatype element, std::size_t width, std::uint64_t count, std::uint64_t limit);
  BigType(BigType&& other) noexcept;
  BigType& operator=(BigType&&) = delete;
  ~BigType();

  int count() const { return count_; }
  MPI_Datatype type() const { return type_; }

 private:
  const Api& api_;
  int count_;
  MPI_Datatype type_;
  bool own_ = false;
};

}  // namespace dtrun::mpi_plugin
