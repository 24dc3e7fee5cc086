// Data shared by one user's dtrun processes on one machine that no other user can read or write: a secret,
// and which process is the root at a port.
//
// Both are in one small file in a permanent folder that only this user can write: another user can neither
// take a claim nor learn the key. Main thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun::membership {

class UserSecret {
 public:
  // Possible folders of the file, best first: the session's folder (XDG_RUNTIME_DIR, /run/user/UID),
  // ~/.dtrun, and a folder in /tmp.
  static std::vector<std::filesystem::path> Places();

  // Opens the file in the first of `places` that is private to this user, or can be made so.
  static Result<UserSecret> Open(const std::vector<std::filesystem::path>& places = Places());

  // 64 random hex digits, the same for every process of this user on this machine.
  const std::string& digits() const { return digits_; }

  // Claims the root role at `port`. True if no other process of this user in this network namespace has it.
  // The claim lasts while this object, or a copy of its descriptor in a child, lives. One port per object.
  bool ClaimRoot(int port) const;

 private:
  UserSecret(UniqueFd file, std::string digits) : file_(std::move(file)), digits_(std::move(digits)) {}

  UniqueFd file_;
  std::string digits_;
};

}  // namespace dtrun::membership
