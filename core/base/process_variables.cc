#include "core/base/process_variables.h"

#include <algorithm>
#include <utility>

namespace dtrun {

ProcessVariables::const_iterator& ProcessVariables::const_iterator::operator++() {
  if (!FromOwn()) {
    ++shared_;
    return *this;
  }
  if (shared_ != shared_end_ && shared_->first == own_->first) ++shared_;
  ++own_;
  return *this;
}

const std::shared_ptr<const ProcessVariables::Map>& ProcessVariables::None() {
  static const auto none = std::make_shared<const Map>();
  return none;
}

ProcessVariables::const_iterator ProcessVariables::begin() const {
  const_iterator at = end();
  at.own_ = own_.begin();
  at.shared_ = shared_->begin();
  return at;
}

ProcessVariables::const_iterator ProcessVariables::end() const {
  const_iterator at;
  at.own_ = at.own_end_ = own_.end();
  at.shared_ = at.shared_end_ = shared_->end();
  return at;
}

ProcessVariables::const_iterator ProcessVariables::find(const std::string& name) const {
  if (!contains(name)) return end();
  const_iterator at = end();
  at.own_ = own_.lower_bound(name);
  at.shared_ = shared_->lower_bound(name);
  return at;
}

const std::string& ProcessVariables::at(const std::string& name) const {
  const auto own = own_.find(name);
  return own == own_.end() ? shared_->at(name) : own->second;
}

bool ProcessVariables::operator==(const ProcessVariables& other) const {
  return std::equal(begin(), end(), other.begin(), other.end());
}

std::string& ProcessVariables::operator[](const std::string& name) {
  const auto own = own_.find(name);
  if (own != own_.end()) return own->second;
  const auto shared = shared_->find(name);
  return own_.emplace(name, shared == shared_->end() ? std::string() : shared->second).first->second;
}

bool ProcessVariables::emplace(const std::string& name, std::string value) {
  return !shared_->contains(name) && own_.emplace(name, std::move(value)).second;
}

void ProcessVariables::ShareWith(const std::shared_ptr<const Map>& shared) {
  if (shared == shared_) return;
  if (!std::ranges::all_of(*shared, [&](const auto& variable) { return contains(variable.first); })) return;
  Map own;
  for (const auto& [name, value] : *this) {
    const auto same = shared->find(name);
    if (same == shared->end() || same->second != value) own.emplace(name, value);
  }
  own_ = std::move(own);
  shared_ = shared;
}

void ProcessVariables::Replace(const std::function<std::string(const std::string&)>& replaced, Known* known) {
  for (auto& [name, value] : own_) value = replaced(value);
  std::shared_ptr<const Map>& became = (*known)[shared_];
  if (became == nullptr) {
    Map all = *shared_;
    for (auto& [name, value] : all) value = replaced(value);
    became = std::make_shared<const Map>(std::move(all));
  }
  shared_ = became;
}

}  // namespace dtrun
