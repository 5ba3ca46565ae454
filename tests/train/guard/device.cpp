// A CUDA device that does nothing, so that autograd of a CPU build of torch takes fake CUDA tensors.
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace at::detail {
struct CUDAHooks : CUDAHooksInterface {
    explicit CUDAHooks(CUDAHooksArgs) {}
    void init() const override {}
    bool hasPrimaryContext(DeviceIndex) const override { return false; }
};
REGISTER_CUDA_HOOKS(CUDAHooks);
}

namespace {
using namespace c10;

struct Pretended : impl::NoOpDeviceGuardImpl<DeviceType::CUDA> {
    Device only() const { return Device(DeviceType::CUDA, 0); }
    Device exchangeDevice(Device) const override { return only(); }
    Device getDevice() const override { return only(); }
    Stream getStream(Device) const noexcept override { return Stream(Stream::DEFAULT, only()); }
    Stream getDefaultStream(Device) const override { return Stream(Stream::DEFAULT, only()); }
    Stream exchangeStream(Stream) const noexcept override { return Stream(Stream::DEFAULT, only()); }
    void record(void **, const Stream &, const DeviceIndex, const EventFlag) const override {}
    void block(void *, const Stream &) const override {}
    bool queryEvent(void *) const override { return true; }
    void synchronizeEvent(void *) const override {}
    void recordDataPtrOnStream(const DataPtr &, const Stream &) const override {}
};

struct Install {
    Install()
    {
        if (!impl::hasDeviceGuardImpl(DeviceType::CUDA)) impl::registerDeviceGuard(DeviceType::CUDA, new Pretended());
    }
} install;
}
