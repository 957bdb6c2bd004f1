// A second device whose memory is the CPU's: every operation is done by the CPU, and none takes tensors of both devices.
//
// What PyTorch calls a backend out of tree ("PrivateUse1"): https://docs.pytorch.org/tutorials/advanced/privateuseone.html
#include <ATen/EmptyTensor.h>
#include <ATen/autocast_mode.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/as_strided_cpu_dispatch.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/extension.h>

using at::Device, at::Layout, at::MemoryFormat, at::Scalar, at::ScalarType, at::Tensor;
using Sizes = c10::SymIntArrayRef;
using std::optional;

namespace {

constexpr auto KIND = c10::DeviceType::PrivateUse1;
const c10::Device HERE(KIND, 0);

// One device, one stream, nothing to wait for.
struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return KIND; }
  c10::Device exchangeDevice(c10::Device) const override { return HERE; }
  c10::Device getDevice() const override { return HERE; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override { return c10::Stream(c10::Stream::DEFAULT, HERE); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

struct Hooks final : at::PrivateUse1HooksInterface {
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  bool isAvailable() const override { return true; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override { return at::detail::getDefaultCPUGenerator(); }
};

struct Memory final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* at = bytes ? malloc(bytes) : nullptr;
    return {at, at, &free, HERE};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { memcpy(to, from, bytes); }
};
Memory memory;
REGISTER_ALLOCATOR(KIND, &memory);
const c10::DispatchKeySet KEYS(c10::DispatchKey::PrivateUse1);

Tensor on_cpu(const Tensor& t) {
  return t.device() == HERE ? at::from_blob(t.data_ptr(), t.sizes(), t.strides(), t.options().device(at::kCPU)) : t;
}

c10::IntArrayRef plain(Sizes sizes) { return C10_AS_INTARRAYREF_SLOW(sizes); }

Tensor make(Sizes size, optional<ScalarType> type, optional<Layout>, optional<Device>, optional<bool>,
            optional<MemoryFormat> format) {
  return at::detail::empty_generic(plain(size), &memory, KEYS, c10::dtype_or_default(type), format);
}

Tensor make_strided(Sizes size, Sizes stride, optional<ScalarType> type, optional<Layout>, optional<Device>,
                    optional<bool>) {
  return at::detail::empty_strided_generic(plain(size), plain(stride), &memory, KEYS, c10::dtype_or_default(type));
}

Tensor copy_over(const Tensor& from, const Tensor& to, bool) {
  on_cpu(to).copy_(on_cpu(from));
  return to;
}

Tensor copy_and_resize(const Tensor& from, const Tensor& to) {
  at::native::resize_(to, from.sizes(), {});
  return copy_over(from, to, false);
}

Tensor strided(const Tensor& t, Sizes size, Sizes stride, optional<c10::SymInt> offset) {
  return at::cpu::as_strided(t, plain(size), plain(stride), offset ? optional<int64_t>(offset->expect_int()) : std::nullopt);
}

Tensor viewed(const Tensor& t, Sizes size) { return at::native::view(t, plain(size)); }

Tensor alias(const Tensor& t, Sizes size, Sizes stride) { return at::native::_reshape_alias(t, plain(size), plain(stride)); }

const Tensor& resized(const Tensor& t, Sizes size, optional<MemoryFormat> format) {
  return at::native::resize_(t, plain(size), format);
}

Tensor& filled(Tensor& t, const Scalar& value) {
  on_cpu(t).fill_(value);
  return t;
}

Tensor& zeroed(Tensor& t) {
  on_cpu(t).zero_();
  return t;
}

Scalar number(const Tensor& t) { return on_cpu(t).item(); }

Tensor& with_storage(Tensor& t, at::Storage storage, c10::SymInt offset, Sizes size, Sizes stride) {
  return at::native::set_storage_cpu_(t, storage, offset.expect_int(), plain(size), plain(stride));
}

// As a GPU's operations: tensors of both devices are refused, but for single numbers, and for indices.
void by_the_cpu(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  bool here = false, there = false;
  auto look = [&](const Tensor& t) {
    if (t.defined() && t.dim()) (t.device() == HERE ? here : there) = true;
  };
  for (const auto& value : torch::jit::last(stack, operation.schema().arguments().size())) {
    if (value.isTensor()) look(value.toTensor());
    if (value.isTensorList())
      for (const Tensor& t : value.toTensorVector()) look(t);
  }
  const auto& name = operation.schema().name();
  TORCH_CHECK(!(here && there) || name.find("index") != std::string::npos,
              "Expected all tensors to be on the same device, but found at least two devices, second:0 and cpu! (", name, ")");
  at::native::cpu_fallback(operation, stack);
}

}  // namespace

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&by_the_cpu>()); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &make);
  m.impl("empty_strided", &make_strided);
  m.impl("_copy_from", &copy_over);
  m.impl("_copy_from_and_resize", &copy_and_resize);
  m.impl("as_strided", &strided);
  m.impl("view", &viewed);
  m.impl("_reshape_alias", &alias);
  m.impl("resize_", &resized);
  m.impl("fill_.Scalar", &filled);
  m.impl("zero_", &zeroed);
  m.impl("_local_scalar_dense", &number);
  m.impl("set_.source_Storage_storage_offset", &with_storage);
}

// Mixed precision for the operations that CUDA has it for.
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define WIDER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define WIDER_UNLESS_ASKED(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define WIDEST(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_LOWER_PRECISION_FP(LOWER)
  AT_FORALL_FP32(WIDER)
  AT_FORALL_FP32_SET_OPT_DTYPE(WIDER_UNLESS_ASKED)
  AT_FORALL_PROMOTE(WIDEST)
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("start", [] { at::RegisterPrivateUse1HooksInterface(new Hooks()); });
}
