#include <gtest/gtest.h>

#include <type_traits>
#include <typeinfo>
#include <variant>

#include "core/plan/plan.h"
#include "core/protocol/messages.h"
#include "core/wire/coder.h"

namespace dtrun::protocol {
namespace {

// Converts to anything: an aggregate of N members can be made of N of these, and of no more.
struct Anything {
  template <class T>
  operator T() const;
};

template <class T, class... Members>
constexpr int MembersOf(Members... members) {
  if constexpr (requires { T{members..., Anything{}}; })
    return MembersOf<T>(members..., Anything{});
  else
    return sizeof...(members);
}

struct Count {
  static constexpr bool kWrites = true;
  int fields = 0;
  void operator()(const char*, auto&&...) { ++fields; }
  void Rest(const char*, auto&&...) { ++fields; }
};

template <class T>
void ExpectsAll() {
  // Refused sends two members of its error; the root adds Lost::next.
  constexpr int kMore = std::is_same_v<T, Refused> ? 1 : std::is_same_v<T, Lost> ? -1 : 0;
  Count count;
  wire::FieldsOf(count, T{});
  EXPECT_EQ(count.fields, MembersOf<T>() + kMore)
      << typeid(T).name() << ": Fields does not list each member once";
}

template <class... Types>
void ExpectsAllOf(const std::variant<Types...>* /*type*/) {
  (ExpectsAll<Types>(), ...);
}

// A forgotten line would go unnoticed on one host, and the member would be lost on the way to another.
TEST(Fields, ListEachMember) {
  ExpectsAll<plan::Process>();
  ExpectsAllOf(static_cast<ToAgent*>(nullptr));
  ExpectsAllOf(static_cast<ToRoot*>(nullptr));
}

}  // namespace
}  // namespace dtrun::protocol
