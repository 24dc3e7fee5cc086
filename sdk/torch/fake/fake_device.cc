#include "sdk/torch/fake/fake_device.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#if __has_include(<ATen/detail/PrivateUse1HooksInterface.h>)  // torch 2
#include <ATen/detail/PrivateUse1HooksInterface.h>
#define DTRUN_FAKE_HOOKS
#endif
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/library.h>
#include <torch/types.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sdk/torch/fake/on_host.h"

namespace dtrun::fake {
namespace {

using ::torch::IntArrayRef;
using ::torch::Tensor;

constexpr auto kType = c10::DeviceType::PrivateUse1;

thread_local int current_device = 0;
thread_local std::array<Stream*, kDevices> current_streams{};

Stream& Current(int index) {
  Stream*& stream = current_streams.at(static_cast<std::size_t>(index));
  if (stream == nullptr) stream = &default_stream(index);
  return *stream;
}
Stream& Current(const Tensor& tensor) { return Current(tensor.device().index()); }

// ---- guard

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device to) const override {
    const c10::Device before = getDevice();
    setDevice(to);
    return before;
  }
  c10::Device getDevice() const override { return device(current_device); }
  void setDevice(c10::Device to) const override {
    TORCH_CHECK(to.index() < kDevices, "there is no fake device ", to.index());
    uncheckedSetDevice(to);
  }
  void uncheckedSetDevice(c10::Device to) const noexcept override {
    if (to.index() >= 0) current_device = to.index();
  }
  c10::Stream getStream(c10::Device of) const noexcept override {
    return torch_stream(Current(of.index() < 0 ? current_device : of.index()));
  }
  c10::Stream getDefaultStream(c10::Device of) const override {
    return c10::Stream(c10::Stream::DEFAULT, of);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device of, bool /*high_priority*/) const override {
    return torch_stream(*make_stream(of.index()));
  }
  c10::Stream exchangeStream(c10::Stream to) const noexcept override {
    const c10::Stream before = getStream(to.device());
    current_streams.at(static_cast<std::size_t>(to.device_index())) = &stream_of(to);
    return before;
  }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex /*index*/,
              const c10::EventFlag /*flag*/) const override {
    if (*event == nullptr) *event = new Event;
    static_cast<Event*>(*event)->record(stream_of(stream));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) static_cast<Event*>(event)->block(stream_of(stream));
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || static_cast<Event*>(event)->reached();
  }
  void destroyEvent(void* event, const c10::DeviceIndex /*index*/) const noexcept override {
    delete static_cast<Event*>(event);
  }
  bool queryStream(const c10::Stream& stream) const override { return stream_of(stream).idle(); }
  void synchronizeStream(const c10::Stream& stream) const override { stream_of(stream).wait_on_host(); }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    used_on(data.get(), stream_of(stream));
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

#ifdef DTRUN_FAKE_HOOKS
// Without them autograd of torch 2 knows no device.
struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const { return true; }
  bool isAvailable() const { return true; }
  bool hasPrimaryContext(c10::DeviceIndex /*index*/) const override { return true; }
};
const bool registered = [] {
  c10::register_privateuse1_backend("fake");
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();
#endif

// ---- memory

struct Allocator final : c10::Allocator {
  // No `override`, of which clang wants all or none.
  c10::DataPtr allocate(std::size_t bytes) const { return Made(bytes); }  // torch 1.13's
  c10::DataPtr allocate(std::size_t bytes) { return Made(bytes); }        // torch 2.3's
  void copy_data(void* to, const void* from, std::size_t bytes) const { std::memcpy(to, from, bytes); }
  static c10::DataPtr Made(std::size_t bytes) {
    void* memory = bytes == 0 ? nullptr : cached_allocate(Current(current_device), bytes);
    return {memory, memory, &cached_release, device(current_device)};
  }
  c10::DeleterFnPtr raw_deleter() const { return &cached_release; }
};
Allocator allocator;

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

c10::Device Chosen(c10::optional<c10::Device> wanted) {
  return wanted && wanted->index() >= 0 ? *wanted : device(current_device);
}
Tensor Empty(IntArrayRef size, c10::optional<c10::ScalarType> type, c10::optional<c10::Layout> /*layout*/,
             c10::optional<c10::Device> wanted, c10::optional<bool> /*pinned*/,
             c10::optional<c10::MemoryFormat> format) {
  const c10::DeviceGuard guard(Chosen(wanted));
  return at::detail::empty_generic(size, &allocator, kKeys, type.value_or(at::kFloat), format);
}
Tensor EmptyStrided(IntArrayRef size, IntArrayRef stride, c10::optional<c10::ScalarType> type,
                    c10::optional<c10::Layout> /*layout*/, c10::optional<c10::Device> wanted,
                    c10::optional<bool> /*pinned*/) {
  const c10::DeviceGuard guard(Chosen(wanted));
  return at::detail::empty_strided_generic(size, stride, &allocator, kKeys, type.value_or(at::kFloat));
}

// ---- copies

// Waits where a copy between a device and pageable memory of the host does.
Tensor CopyFrom(const Tensor& from, const Tensor& to, bool non_blocking) {
  const Tensor source = from.is_cpu() ? from : OnHost(from);
  const Tensor target = to.is_cpu() ? to : OnHost(to);
  Stream& stream = Current(from.is_cpu() ? to : from);
  TORCH_CHECK(from.is_cpu() || to.is_cpu() || from.device() == to.device(),
              "fake devices do not copy from one to another");
  // What is on the host lives until then: a blocking copy waits, and others hold it.
  stream.post([source, target] { WithoutGradient([&] { target.copy_(source.expand_as(target)); }); });
  if ((from.is_cpu() || to.is_cpu()) && !non_blocking) stream.wait_on_host();
  return to;
}
at::Scalar ItemOf(const Tensor& tensor) {
  Current(tensor).wait_on_host();
  return OnHost(tensor).item();
}

// ---- every other operator

// What an operator returned for arguments of one kind.
struct Outcome {
  int argument = -1;  // that it returned itself
  bool defined = false;
  std::vector<std::int64_t> sizes, strides;
  c10::ScalarType type = c10::ScalarType::Float;
};

bool OnDevice(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() && value.toTensor().device().type() == kType;
}

// Text that is equal for arguments of the same kind.
void Describe(std::ostream& out, const c10::IValue& value) {
  if (value.isTensor()) {
    const Tensor& tensor = value.toTensor();
    out << 'T';
    if (tensor.defined())
      out << tensor.scalar_type() << tensor.sizes() << tensor.strides() << tensor.device().type();
  } else if (value.isTensorList() || value.isList()) {
    out << '[';
    for (const c10::IValue& item : value.toListRef()) Describe(out, item);
    out << ']';
  } else if (value.isDevice() || value.isGenerator()) {
    out << 'D';
  } else {
    out << value;
  }
  out << ',';
}

// The same arguments with each device tensor replaced by what `replace` makes of it.
template <class Replace>
c10::IValue Replaced(const c10::IValue& value, const Replace& replace) {
  if (OnDevice(value)) return replace(value.toTensor());
  if (value.isTensorList()) {
    c10::List<Tensor> tensors;
    for (const Tensor& tensor : value.toTensorList())
      tensors.push_back(OnDevice(tensor) ? replace(tensor) : tensor);
    return tensors;
  }
  return value;
}
template <class Replace>
torch::jit::Stack Replaced(const torch::jit::Stack& arguments, const Replace& replace) {
  torch::jit::Stack replaced;
  for (const c10::IValue& value : arguments) replaced.push_back(Replaced(value, replace));
  return replaced;
}

// The CPU's operator with these arguments. Convolutions have other names on devices that torch does not know.
c10::OperatorHandle OnCpu(const c10::OperatorHandle& op, torch::jit::Stack& arguments) {
  auto& dispatcher = c10::Dispatcher::singleton();
  const std::string& name = op.schema().name();
  if (name == "aten::convolution_overrideable") return dispatcher.findSchemaOrThrow("aten::convolution", "");
  if (name == "aten::convolution_backward_overrideable") {
    const std::int64_t channels = arguments[0].toTensor().size(1);
    arguments.insert(arguments.begin() + 3, c10::List<std::int64_t>({channels}));  // the bias's shape
    return dispatcher.findSchemaOrThrow("aten::convolution_backward", "");
  }
  return op;
}

std::vector<Outcome> Try(const c10::OperatorHandle& op, const torch::jit::Stack& arguments) {
  torch::jit::Stack stack = Replaced(arguments, [](const Tensor& tensor) {
    return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU)).zero_();
  });
  const torch::jit::Stack given = stack;
  WithoutGradient([&] { OnCpu(op, stack).callBoxed(&stack); });
  std::vector<Outcome> outcomes;
  for (const c10::IValue& value : stack) {
    TORCH_CHECK(value.isTensor(), op.schema().name(), " returns something else than tensors");
    Outcome outcome;
    const Tensor& tensor = value.toTensor();
    outcome.defined = tensor.defined();
    for (std::size_t i = 0; i < given.size() && outcome.defined; ++i) {
      if (given[i].isTensor() && given[i].toTensor().is_same(tensor)) outcome.argument = static_cast<int>(i);
    }
    if (outcome.defined) {
      outcome.sizes = tensor.sizes().vec();
      outcome.strides = tensor.strides().vec();
      outcome.type = tensor.scalar_type();
    }
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

const std::vector<Outcome>& OutcomesOf(const c10::OperatorHandle& op, const torch::jit::Stack& arguments) {
  static std::mutex mutex;
  static auto& known = *new std::map<std::string, std::vector<Outcome>>;
  std::ostringstream key;
  key << op.schema().name() << '.' << op.schema().overload_name() << '(';
  for (const c10::IValue& value : arguments) Describe(key, value);
  {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(key.str()); found != known.end()) return found->second;
  }
  std::vector<Outcome> outcomes = Try(op, arguments);
  const std::lock_guard lock(mutex);
  return known.emplace(key.str(), std::move(outcomes)).first->second;
}

// Arguments to write into that have another shape than the result.
void Reshape(const Tensor& tensor, const Outcome& outcome) {
  if (tensor.sizes() == IntArrayRef(outcome.sizes)) return;
  const Tensor fresh = at::empty_strided(outcome.sizes, outcome.strides, tensor.options());
  tensor.unsafeGetTensorImpl()->set_storage_keep_dtype(fresh.storage());
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(outcome.sizes, outcome.strides);
}

void Queue(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::size_t count = op.schema().arguments().size();
  torch::jit::Stack arguments(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
  torch::jit::drop(*stack, count);
  std::optional<c10::Device> where;
  (void)Replaced(arguments, [&](const Tensor& tensor) {
    TORCH_CHECK(!where || *where == tensor.device(), op.schema().name(), ": arguments on two devices");
    where = tensor.device();
    return tensor;
  });
  TORCH_CHECK(where, op.schema().name(), ": no argument is on the fake device");
  for (const auto& returned : op.schema().returns()) {
    const bool view = returned.alias_info() != nullptr && !returned.alias_info()->isWrite();
    TORCH_CHECK(!view, "the fake device lacks the view ", op.schema().name());
  }

  const c10::DeviceGuard guard(*where);
  const std::vector<Outcome>& outcomes = OutcomesOf(op, arguments);
  std::vector<Tensor> made;  // on the host, over the device's memory; undefined where nothing is copied
  for (const Outcome& outcome : outcomes) {
    Tensor result;
    made.emplace_back();
    if (outcome.argument >= 0) {
      result = arguments[static_cast<std::size_t>(outcome.argument)].toTensor();
      Reshape(result, outcome);
    } else if (outcome.defined) {
      result =
          at::empty_strided(outcome.sizes, outcome.strides, at::TensorOptions(*where).dtype(outcome.type));
      made.back() = OnHost(result);
    }
    stack->emplace_back(std::move(result));
  }
  torch::jit::Stack on_host = Replaced(arguments, OnHost);
  const c10::OperatorHandle handle = OnCpu(op, on_host);
  Current(where->index()).post([handle, on_host = std::move(on_host), made = std::move(made)]() mutable {
    WithoutGradient([&] {
      const torch::jit::Stack held =
          on_host;  // torch 1.13 returns references to arguments that it has dropped
      handle.callBoxed(&on_host);
      for (std::size_t i = 0; i < made.size(); ++i) {
        if (made[i].defined()) made[i].copy_(on_host[i].toTensor());
      }
    });
  });
}

// As the CPU's: the storage is memory of the host.
Tensor& SetStorage(Tensor& tensor, at::Storage source, std::int64_t offset, IntArrayRef size,
                   IntArrayRef stride) {
  return at::native::set_storage_cpu_(tensor, std::move(source), offset, size, stride);
}
void RecordStream(Tensor& tensor, c10::Stream stream) {
  used_on(tensor.storage().data_ptr().get(), stream_of(stream));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(Empty));
  m.impl("empty_strided", TORCH_FN(EmptyStrided));
  m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(SetStorage));
  m.impl("record_stream", TORCH_FN(RecordStream));
  m.impl("_copy_from", TORCH_FN(CopyFrom));
  m.impl("_local_scalar_dense", TORCH_FN(ItemOf));
  m.impl("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&Queue>());
  m.impl("convolution_backward_overrideable", torch::CppFunction::makeFromBoxedFunction<&Queue>());
}
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&Queue>()); }

}  // namespace

Stream& stream_of(const c10::Stream& stream) {
  if (stream.id() == 0) return default_stream(stream.device_index());
  return *reinterpret_cast<Stream*>(
      static_cast<std::intptr_t>(stream.id()));  // NOLINT: what torch_stream made
}
c10::Stream torch_stream(Stream& stream) {
  const c10::Device on = device(stream.device());
  if (&stream == &default_stream(stream.device())) return c10::Stream(c10::Stream::DEFAULT, on);
  return c10::Stream(c10::Stream::UNSAFE, on, reinterpret_cast<std::intptr_t>(&stream));
}

}  // namespace dtrun::fake
