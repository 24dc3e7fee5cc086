// What the dtruns of one user on one machine share and nobody else can read or write: a secret, and which of
// them is the root at a port.
//
// Both are in one small file in a folder that only this user can write, and which stays there: another user
// can neither take a claim nor learn the key. Main thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun::membership {

class UserSecret {
 public:
  // Where the file may be, the best first: the session's folder (XDG_RUNTIME_DIR, /run/user/UID), ~/.dtrun,
  // and a folder in /tmp.
  static std::vector<std::filesystem::path> Places();

  // In the first of `places` that is this user's alone, or can be made so.
  static Result<UserSecret> Open(const std::vector<std::filesystem::path>& places = Places());

  // 64 random hex digits, the same for every process of this user on this machine.
  const std::string& digits() const { return digits_; }

  // Whether no other process of this user in this network namespace is the root at `port`. Then this one is,
  // for as long as this object or a copy of its descriptor in a child lives. One port for each object.
  bool ClaimRoot(int port) const;

 private:
  UserSecret(UniqueFd file, std::string digits) : file_(std::move(file)), digits_(std::move(digits)) {}

  UniqueFd file_;
  std::string digits_;
};

}  // namespace dtrun::membership
