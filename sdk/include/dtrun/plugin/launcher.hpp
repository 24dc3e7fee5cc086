// launcher.hpp - base class of a launcher, and the C table made from it.
//
// Core owns the object and calls it from one thread. An author overrides at least one of
// Plan, FindHosts and Connect; what is not overridden becomes a NULL slot. Plan is pure: the
// same job gives the same processes.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "dtrun/plugin/backend.hpp"
#include "dtrun/plugin/hosts.hpp"

namespace dtrun::sdk {
inline namespace v1 __attribute__((visibility("hidden"))) {

  struct Process {
    int host_index = 0;
    int rank = 0;  // first rank in this process
    int local_rank = 0;
    int rank_count = 1;
    std::optional<std::vector<std::string>> argv;          // nullopt: the job's
    std::vector<std::pair<std::string, std::string>> env;  // on top of the inherited environment
    std::vector<std::string> unset;                        // variables that it does not inherit
    std::optional<std::string> cwd;                        // nullopt: the job's
  };

  // The job to plan; borrows, valid during Plan.
  class Job {
   public:
    explicit Job(const dtrun_job* job) : raw_(job), job_(internal::ReadKnown(job, "dtrun_job")) {}

    std::string name() const { return job_.name; }
    std::vector<std::string> argv() const { return {job_.argv, job_.argv + job_.argc}; }
    std::string cwd() const { return job_.cwd; }
    int world_size() const { return job_.world_size; }
    std::string master_addr() const { return job_.master_addr; }
    std::string master_port() const { return job_.master_port; }
    // Texts that core replaces when the job starts; empty from a core that does not know them.
    std::string run_dir() const { return job_.run_dir == nullptr ? "" : job_.run_dir; }
    std::string generation() const { return job_.generation == nullptr ? "" : job_.generation; }
    // The path of dtrun on all hosts, and job.bind; empty from a core that does not know them.
    std::string program() const { return job_.program == nullptr ? "" : job_.program; }
    std::string bind() const { return job_.bind == nullptr ? "" : job_.bind; }
    std::uint64_t host_count() const { return job_.host_count; }
    // REQUIRES: index < host_count()
    dtrun_job_host host(std::uint64_t index) const {
      const auto* first = reinterpret_cast<const char*>(job_.hosts);
      return internal::ReadKnown(
          reinterpret_cast<const dtrun_job_host*>(first + index * job_.hosts->struct_size), "dtrun_job_host");
    }
    // A process for rank `local` of host `index`.
    Process ProcessFor(std::uint64_t index, int local) const {
      Process process;
      process.host_index = static_cast<int>(index);
      process.rank = host(index).first_rank + local;
      process.local_rank = local;
      return process;
    }
    // A variable that the ranks inherit; nullopt when unset.
    std::optional<std::string> Inherited(const std::string& variable) const {
      const char* value = job_.inherited(raw_, variable.c_str());
      if (value == nullptr) return std::nullopt;
      return value;
    }

   private:
    const dtrun_job* raw_;
    dtrun_job job_;
  };

  // Takes what Plan decides.
  class PlanSink {
   public:
    explicit PlanSink(const dtrun_plan_sink* sink) : sink_(internal::ReadKnown(sink, "dtrun_plan_sink")) {}

    void Add(const Process& process) const {
      std::vector<const char*> argv;
      if (process.argv) {
        for (const std::string& argument : *process.argv) argv.push_back(argument.c_str());
      }
      std::vector<dtrun_env_entry> env;
      const auto entry = [&env](const std::string& name, const char* value, std::uint32_t flags) {
        env.push_back({sizeof(dtrun_env_entry), flags, name.c_str(), value});
      };
      for (const auto& [name, value] : process.env) entry(name, value.c_str(), 0);
      for (const std::string& name : process.unset) entry(name, nullptr, DTRUN_ENV_UNSET);
      dtrun_process raw;
      DTRUN_INIT(raw);
      raw.host_index = process.host_index;
      raw.rank = process.rank;
      raw.local_rank = process.local_rank;
      raw.rank_count = process.rank_count;
      raw.argv = process.argv ? argv.data() : nullptr;
      raw.argc = argv.size();
      raw.env = env.data();
      raw.env_count = env.size();
      raw.cwd = process.cwd ? process.cwd->c_str() : nullptr;
      Check([&](dtrun_error* e) { return sink_.process(sink_.context, &raw, e); });
    }
    // A line for the run header; nothing with a dtrun that takes none.
    void Note(const std::string& text) const {
      if (sink_.note == nullptr) return;
      Check([&](dtrun_error* e) { return sink_.note(sink_.context, internal::View(text), e); });
    }

   private:
    const dtrun_plan_sink sink_;
  };

  // The derived class has a public constructor (const Host&, const Options&).
  class Launcher {
   public:
    static constexpr int kKind = DTRUN_KIND_LAUNCHER;

    Launcher() = default;
    Launcher(const Launcher&) = delete;
    Launcher& operator=(const Launcher&) = delete;
    virtual ~Launcher() = default;

    // Optional: the processes of a job.
    virtual void Plan(const Job& /*job*/, const PlanSink& /*sink*/) {
      throw Failure(DTRUN_UNSUPPORTED, "this launcher plans no processes");
    }
    // Optional: the hosts that a platform gave to the job. Throws Failure(DTRUN_NOT_FOUND) naming the
    // variable that is missing where its platform is not there.
    virtual Allocation FindHosts(const HostsQuery& /*query*/) {
      throw Failure(DTRUN_UNSUPPORTED, "this launcher finds no hosts");
    }
    // Optional: the commands that start dtrun on hosts.
    virtual std::vector<ConnectCommand> Connect(const ConnectQuery& /*query*/) {
      throw Failure(DTRUN_UNSUPPORTED, "this launcher connects to no hosts");
    }
  };

  namespace internal {

  template <class T>
  struct LauncherSlots {
    static_assert(std::is_base_of_v<Launcher, T>, "derive from dtrun::sdk::Launcher");

    static constexpr bool kPlans = kOverridden<decltype(&T::Plan), decltype(&Launcher::Plan)>;
    static constexpr bool kFindsHosts = kOverridden<decltype(&T::FindHosts), decltype(&Launcher::FindHosts)>;
    static constexpr bool kConnects = kOverridden<decltype(&T::Connect), decltype(&Launcher::Connect)>;
    static_assert(kPlans || kFindsHosts || kConnects, "override Plan, FindHosts or Connect");

    static T& Self(dtrun_instance* self) noexcept { return As<Instance<T>>(self)->object; }

    static dtrun_status Plan(dtrun_instance* self, const dtrun_job* job, const dtrun_plan_sink* sink,
                             dtrun_error* err) noexcept {
      return Do(err, [&] { Self(self).Plan(Job(job), PlanSink(sink)); });
    }
    static dtrun_status FindHosts(dtrun_instance* self, const dtrun_hosts_query* query,
                                  const dtrun_hosts_sink* sink, dtrun_error* err) noexcept {
      return Do(err, [&] { Give(Self(self).FindHosts(HostsQuery(query)), sink); });
    }
    static dtrun_status Connect(dtrun_instance* self, const dtrun_connect_query* query,
                                const dtrun_connect_sink* sink, dtrun_error* err) noexcept {
      return Do(err, [&] {
        for (const ConnectCommand& command : Self(self).Connect(ConnectQuery(query))) Give(command, sink);
      });
    }
    static constexpr dtrun_launcher Table() {
      dtrun_launcher table{};
      table.struct_size = sizeof table;
      if (kPlans) table.plan = &Plan;
      if (kFindsHosts) table.find_hosts = &FindHosts;
      if (kConnects) table.connect = &Connect;
      return table;
    }
  };

  template <class T>
  inline constexpr dtrun_launcher kLauncherTable = LauncherSlots<T>::Table();

  }  // namespace internal
}  // namespace v1
}  // namespace dtrun::sdk
