// entry.hpp - from an author's class to the table that the one exported symbol returns.
//
// Pure; the tables are constants that any thread may read.
#pragma once

#include "dtrun/plugin/device.hpp"
#include "dtrun/plugin/launcher.hpp"

namespace dtrun::sdk {
inline namespace v1 __attribute__((visibility("hidden"))) {

  // Who the plugin is. Texts and table live as long as the process.
  struct PluginInfo {
    const char* name = nullptr;  // the <name> of libdtrun_<kind>_<name>.so
    const char* version = nullptr;
    const char* vendor = nullptr;
    const char* license = nullptr;  // SPDX expression
    const char* summary = nullptr;  // one line, no full stop
    const dtrun_option* options = nullptr;
    std::uint64_t option_count = 0;
    const void* (*get_extension)(dtrun_instance* self, const char* id) = nullptr;
  };

  // A row of a constant table of options; each method gives a row with one more member set.
  struct OptionRow : dtrun_option {
    // Before its users: in a constant table clang takes no template that comes later.
    template <class T>
    constexpr OptionRow With(T dtrun_option::*member, T value) const {
      OptionRow row = *this;
      row.*member = value;
      return row;
    }

    constexpr OptionRow Long(const char* text) const { return With(&dtrun_option::long_doc, text); }
    constexpr OptionRow Alias(const char* variable) const { return With(&dtrun_option::env_alias, variable); }
    constexpr OptionRow Unit(const char* text) const { return With(&dtrun_option::unit, text); }
    constexpr OptionRow Flags(std::uint32_t bits) const { return With(&dtrun_option::flags, bits); }
    constexpr OptionRow Range(const char* least, const char* most) const {
      return With(&dtrun_option::min_text, least).With(&dtrun_option::max_text, most);
    }
    // `list` lives as long as the process.
    template <std::size_t Count>
    constexpr OptionRow Choices(const char* const (&list)[Count]) const {
      return With(&dtrun_option::choices, static_cast<const char* const*>(list))
          .With(&dtrun_option::choice_count, std::uint64_t{Count});
    }
  };

  // An option with its size stamped:
  //   constexpr dtrun_option kOptions[] = {
  //       Option("interface", DTRUN_TYPE_STRING, nullptr, "…").Alias("VENDOR_INTERFACE")};
  constexpr OptionRow Option(const char* key, std::int32_t type, const char* default_text, const char* doc,
                             std::int32_t scope = DTRUN_SCOPE_JOB) {
    OptionRow option{};
    option.struct_size = sizeof option;
    option.key = key;
    option.type = type;
    option.scope = scope;
    option.default_text = default_text;
    option.doc = doc;
    option.since = "0.1.0";
    return option;
  }

  namespace internal {

  template <class T>
  dtrun_status Init(const dtrun_init_params* params, dtrun_instance** out, dtrun_error* err) noexcept {
    return Guard(err, [&] {
      const dtrun_init_params raw = ReadKnown(params, "dtrun_init_params");
      *out = As<dtrun_instance>(std::make_unique<Instance<T>>(raw.host, raw.options).release());
      return dtrun_status{DTRUN_OK};
    });
  }

  template <class T>
  void Shutdown(dtrun_instance* self) noexcept {
    delete As<Instance<T>>(self);
  }

  }  // namespace internal

  // The plugin's table. T derives from Backend<...> or Launcher.
  template <class T>
  constexpr dtrun_plugin MakePlugin(const PluginInfo& info) {
    dtrun_plugin table{};
    table.struct_size = sizeof table;
    table.magic = DTRUN_PLUGIN_MAGIC;
    table.abi_major = DTRUN_ABI_MAJOR;
    table.abi_minor_built = DTRUN_ABI_MINOR;
    table.abi_minor_required = DTRUN_ABI_REQUIRED;
    table.kind = T::kKind;
    table.name = info.name;
    table.version = info.version;
    table.vendor = info.vendor;
    table.license = info.license;
    table.summary = info.summary;
    table.options = info.options;
    table.option_count = info.option_count;
    table.init = &internal::Init<T>;
    table.shutdown = &internal::Shutdown<T>;
    table.get_extension = info.get_extension;
    table.device_draft = DTRUN_DEVICE_DRAFT;
    if constexpr (T::kKind == DTRUN_KIND_BACKEND) {
      table.backend = &internal::kBackendTable<T>;
    } else if constexpr (T::kKind == DTRUN_KIND_DEVICE) {
      table.device = &internal::kDeviceTable<T>;
    } else {
      table.launcher = &internal::kLauncherTable<T>;
    }
    return table;
  }

  // The body of dtrun_plugin_entry_v1.
  inline dtrun_status Enter(const dtrun_plugin& table, const dtrun_host* host, const dtrun_plugin** out,
                            dtrun_error* err) noexcept {
    if (host == nullptr || out == nullptr) {
      return FillError(err, DTRUN_INVALID_ARGUMENT, "dtrun_plugin_entry_v1 needs a host and an out pointer");
    }
    *out = &table;
    return DTRUN_OK;
  }

}  // namespace v1
}  // namespace dtrun::sdk

// Defines, at file scope, the table and the entry point of the plugin of class Type. The rest are members of
// PluginInfo, in C++20 with their names (.options = kOptions):
//   DTRUN_SDK_PLUGIN(mine::Backend, "mine", "1.0", "me", "MIT", "collectives over my network")
#define DTRUN_SDK_PLUGIN(Type, ...)                                                                        \
  static constexpr dtrun_plugin dtrun_sdk_plugin_table = ::dtrun::sdk::MakePlugin<Type>({__VA_ARGS__});    \
  dtrun_status dtrun_plugin_entry_v1(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) { \
    return ::dtrun::sdk::Enter(dtrun_sdk_plugin_table, host, out, err);                                    \
  }
