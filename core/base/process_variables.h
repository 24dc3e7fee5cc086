// The environment variables of one process of a job. Variables with the same value in many processes are
// stored once, so that a job of a million ranks fits into memory.
//
// A value; reads like a std::map, sorted by name. Copies share only immutable maps and may be used on any
// threads.
#pragma once

#include <functional>
#include <initializer_list>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace dtrun {

class ProcessVariables {
 public:
  using Map = std::map<std::string, std::string>;
  using value_type = Map::value_type;

  class const_iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Map::value_type;
    using difference_type = std::ptrdiff_t;
    using pointer = const value_type*;
    using reference = const value_type&;

    const_iterator() = default;
    reference operator*() const { return FromOwn() ? *own_ : *shared_; }
    pointer operator->() const { return &**this; }
    const_iterator& operator++();
    const_iterator operator++(int) {
      const_iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const const_iterator& other) const {
      return own_ == other.own_ && shared_ == other.shared_;
    }

   private:
    friend class ProcessVariables;
    bool FromOwn() const {
      return shared_ == shared_end_ || (own_ != own_end_ && own_->first <= shared_->first);
    }
    Map::const_iterator own_, own_end_, shared_, shared_end_;
  };
  using iterator = const_iterator;

  ProcessVariables() = default;
  ProcessVariables(Map own) : own_(std::move(own)) {}  // NOLINT(google-explicit-constructor): it is a map
  ProcessVariables(std::initializer_list<value_type> own) : own_(own) {}

  const_iterator begin() const;
  const_iterator end() const;
  const_iterator find(const std::string& name) const;
  const std::string& at(const std::string& name) const;  // throws std::out_of_range
  bool contains(const std::string& name) const { return own_.contains(name) || shared_->contains(name); }
  bool empty() const { return own_.empty() && shared_->empty(); }
  std::size_t size() const { return static_cast<std::size_t>(std::distance(begin(), end())); }
  bool operator==(const ProcessVariables& other) const;

  std::string& operator[](const std::string& name);
  // Adds the variable unless the name exists; returns whether it was added.
  bool emplace(const std::string& name, std::string value);

  // Replaces own copies of the variables in `shared` by a reference to it. Changes no variable; if this
  // process lacks one of them, it keeps its copies.
  void ShareWith(const std::shared_ptr<const Map>& shared);
  // For a process without variables: takes all of `shared`.
  void ShareAll(std::shared_ptr<const Map> shared) { shared_ = std::move(shared); }
  const std::shared_ptr<const Map>& shared() const { return shared_; }
  // The variables that are not shared. They override shared ones of the same name.
  const Map& own() const { return own_; }
  // Replaces every value by `replaced(value)`. `known` maps shared variables to their replacements, for reuse
  // by the next process.
  using Known = std::map<std::shared_ptr<const Map>, std::shared_ptr<const Map>>;
  void Replace(const std::function<std::string(const std::string&)>& replaced, Known* known);

 private:
  static const std::shared_ptr<const Map>& None();

  Map own_;  // overrides shared_
  std::shared_ptr<const Map> shared_ = None();
};

}  // namespace dtrun
