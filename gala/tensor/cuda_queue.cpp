#include "gala/tensor/cuda_queue.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <array>
#include <mutex>

#include "gala/tensor/cuda_check.h"

namespace gala {
namespace {

/// One capture at a time in a process: LibTorch's allocator and cuDNN are shared by all of them.
std::mutex& capture_lock() {
  static std::mutex lock;
  return lock;
}

class CudaGraph : public RecordedWork {
 public:
  /// The lock is only for capturing: other threads may go on with their own streams meanwhile.
  explicit CudaGraph(const std::function<void()>& body) {
    const std::lock_guard<std::mutex> one_at_a_time(capture_lock());
    graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    try {
      body();
    } catch (...) {
      abandon();
      throw;
    }
    graph_.capture_end();
  }
  void replay() override { graph_.replay(); }

 private:
  void abandon() {
    try {
      graph_.capture_end();
    } catch (const std::exception&) {
      // The capture was broken by what `body` threw; that is what the caller must hear of.
    }
  }

  at::cuda::CUDAGraph graph_;
};

class CudaScope : public WorkQueue::Scope {
 public:
  /// `event` is the queue's own, free to be used: a queue is entered by one thread at a time.
  CudaScope(c10::cuda::CUDAStream stream, cudaEvent_t event)
      : outside_(c10::cuda::getCurrentCUDAStream(stream.device_index())),
        guard_(stream),
        event_(event) {
    order(outside_, stream);
  }
  void hand_over(const at::Tensor& tensor) override { tensor.record_stream(outside_.unwrap()); }
  ~CudaScope() override {
    order(c10::cuda::getCurrentCUDAStream(outside_.device_index()), outside_);
  }

 private:
  /// What is queued on `second` from now on waits for what is on `first` already.
  void order(c10::cuda::CUDAStream first, c10::cuda::CUDAStream second) const {
    if (first == second) return;
    check_cuda(cudaEventRecord(event_, first.stream()));
    check_cuda(cudaStreamWaitEvent(second.stream(), event_, 0));
  }

  c10::cuda::CUDAStream outside_;
  c10::cuda::CUDAStreamGuard guard_;
  cudaEvent_t event_;
};

class CudaQueue : public WorkQueue {
 public:
  explicit CudaQueue(at::Device device)
      : stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index())) {
    check_cuda(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming));
    check_cuda(cudaEventCreateWithFlags(&order_, cudaEventDisableTiming));
  }
  ~CudaQueue() override {
    cudaEventDestroy(done_);
    cudaEventDestroy(order_);
    for (cudaEvent_t mark : marks_) {
      if (mark) cudaEventDestroy(mark);
    }
  }

  std::unique_ptr<Scope> enter() override { return std::make_unique<CudaScope>(stream_, order_); }
  bool records() const override { return true; }
  std::unique_ptr<RecordedWork> record(const std::function<void()>& body) override {
    return std::make_unique<CudaGraph>(body);
  }
  void bring(const at::Tensor& device, const at::Tensor& host) override {
    check_cuda(cudaMemcpyAsync(host.mutable_data_ptr(), device.const_data_ptr(), device.nbytes(),
                               cudaMemcpyDeviceToHost, stream_.stream()));
  }
  void wait() override {
    check_cuda(cudaEventRecord(done_, stream_.stream()));
    check_cuda(cudaEventSynchronize(done_));
  }

  void mark(int phase) override {
    if (!timed_) return;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    check_cuda(cudaStreamIsCapturing(stream_.stream(), &status));
    const unsigned flags =
        status == cudaStreamCaptureStatusNone ? cudaEventRecordDefault : cudaEventRecordExternal;
    check_cuda(
        cudaEventRecordWithFlags(marks_[static_cast<std::size_t>(phase)], stream_.stream(), flags));
  }
  void time_phases(bool on) override {
    timed_ = on;
    for (cudaEvent_t& mark : marks_) {
      if (on && !mark) check_cuda(cudaEventCreate(&mark));
    }
  }
  bool times_phases() const override { return timed_; }
  double phase_time(int phase) const override {
    const auto i = static_cast<std::size_t>(phase);
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, marks_[i - 1], marks_[i]));
    return milliseconds;
  }

 private:
  c10::cuda::CUDAStream stream_;
  cudaEvent_t done_ = nullptr, order_ = nullptr;
  std::array<cudaEvent_t, kMarks> marks_{};
  bool timed_ = false;
};

}  // namespace

std::unique_ptr<WorkQueue> make_cuda_queue(at::Device device) {
  if (!device.is_cuda()) return nullptr;
  return std::make_unique<CudaQueue>(device);
}

std::string gpu_name(at::Device device) {
  if (!device.is_cuda()) return "";
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device.has_index() ? device.index() : 0));
  return properties.name;
}

bool built_with_cuda() {
  return true;
}

}  // namespace gala
