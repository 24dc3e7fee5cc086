// The hosts of the job and their ranks, made from the options that were read. Afterwards there is one list of
// hosts with their slots, from whatever source. Used by the Loader; one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/spec/builder.h"

namespace dtrun::spec {

// `options` reads those of a launcher that is asked for hosts.
void TakeHosts(Builder& builder, OptionsReader options);

// Converts job.ranks to a number for each host, and checks the size of the job.
void ShareRanks(Builder& builder);

// The work of TakeHosts.
class JobHosts {
 public:
  JobHosts(Builder& builder, OptionsReader options)
      : builder_(builder), spec_(builder.spec), options_(std::move(options)) {}
  void Take();

 private:
  const AnyField* HostSource();
  void TakeHostfile(const AnyField& source, const std::string& path);
  void TakePlatform();
  std::shared_ptr<hosts::Launchers> OtherLaunchers();
  void CheckConnect();
  void FailPlatform(const Error& error);
  void LimitHosts();
  void CheckMinimum();
  void CheckIndex();
  void CheckPorts();
  void StandIn(const AnyField& field, options::Data data, const Place& place);
  void ListHosts(std::vector<hosts::HostSlots> hosts, const Place& place);

  // gpus.cc
  std::vector<hosts::HostSlots> HostsToName(std::string_view text) const;
  std::string ListText() const;
  void SelectHosts();
  void CheckGpus();

  Builder& builder_;
  JobSpec& spec_;  // of builder_
  OptionsReader options_;
  bool hosts_unknown_ = false;  // the platform is absent, so its hosts are unknown (Request::elsewhere)
};

}  // namespace dtrun::spec
