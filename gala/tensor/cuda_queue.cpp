#include "gala/tensor/cuda_queue.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <array>
#include <exception>
#include <map>
#include <mutex>
#include <vector>

#include "gala/base/error.h"
#include "gala/tensor/cuda_bring.h"
#include "gala/tensor/cuda_check.h"
#include "gala/tensor/recording.h"

namespace gala {
namespace {

/// No graph goes away while another is captured: LibTorch's allocator is shared by all of them.
std::mutex& capture_lock() {
  static std::mutex lock;
  return lock;
}

/// Streams that no queue has now. They are our own: those of LibTorch's pool come round again, and what
/// one adapter queues on the stream of another would be captured into its graph. They are used again
/// and never destroyed, since LibTorch keeps free memory by stream.
class Shelf {
 public:
  static c10::cuda::CUDAStream take(at::Device where) {
    const c10::cuda::CUDAGuard guard(where);
    const c10::DeviceIndex device = c10::cuda::current_device();
    Shelf& shelf = instance();
    const std::lock_guard<std::mutex> lock(shelf.mutex_);
    std::vector<cudaStream_t>& streams = shelf.streams_[device];
    cudaStream_t stream = nullptr;
    if (streams.empty()) {
      check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    } else {
      stream = streams.back();
      streams.pop_back();
    }
    return c10::cuda::getStreamFromExternal(stream, device);
  }
  static void put_back(const c10::cuda::CUDAStream& stream) {
    Shelf& shelf = instance();
    const std::lock_guard<std::mutex> lock(shelf.mutex_);
    shelf.streams_[stream.device_index()].push_back(stream.stream());
  }

 private:
  static Shelf& instance() {
    static Shelf shelf;
    return shelf;
  }

  std::mutex mutex_;
  std::map<c10::DeviceIndex, std::vector<cudaStream_t>> streams_;
};

/// Makes an allocator forget a capture that broke off; it says so by an exception when it knows of none.
template <class Leave>
void leave_pool(const Leave& leave) {
  try {
    leave();
  } catch (const std::exception&) {
    // The capture ended well enough for LibTorch to have done it.
  }
}

class CudaGraph : public RecordedWork {
 public:
  /// One at a time in a process. Other threads may replay on their own streams meanwhile.
  explicit CudaGraph(const std::function<void()>& body) {
    const Recording alone;
    const std::lock_guard<std::mutex> none_destroyed(capture_lock());
    const c10::MempoolId_t pool = at::cuda::graph_pool_handle();
    try {
      graph_->capture_begin(pool, cudaStreamCaptureModeThreadLocal);
      body();
      graph_->capture_end();
    } catch (...) {
      abandon(pool);
      throw;
    }
  }
  ~CudaGraph() override {
    const std::lock_guard<std::mutex> not_while_others_capture(capture_lock());
    graph_.reset();
  }
  void replay() override { graph_->replay(); }

 private:
  /// What broke the capture is what the caller must hear of, so nothing here may throw.
  void abandon(c10::MempoolId_t pool) {
    leave_pool([&] { graph_->capture_end(); });
    // A capture that cannot be ended leaves LibTorch's allocators in the belief that it goes on.
    leave_pool([&] {
      const c10::DeviceIndex device = c10::cuda::current_device();
      c10::cuda::CUDACachingAllocator::endAllocateToPool(device, pool);
      c10::cuda::CUDACachingAllocator::releasePool(device, pool);
    });
    leave_pool([&] { leave_host_pool(at::getHostAllocator(at::kCUDA), pool); });
    graph_.reset();
    cudaGetLastError();
  }
  /// Not every version of LibTorch has pools in host memory.
  template <class Allocator>
  static void leave_host_pool(Allocator* allocator, c10::MempoolId_t pool) {
    if constexpr (requires { allocator->end_allocate_to_pool(pool); }) {
      allocator->end_allocate_to_pool(pool);
      allocator->release_pool(pool);
    }
  }

  std::unique_ptr<at::cuda::CUDAGraph> graph_ = std::make_unique<at::cuda::CUDAGraph>();
};

class CudaScope : public WorkQueue::Scope {
 public:
  /// `event` is the queue's own, free to be used: a queue is entered by one thread at a time.
  CudaScope(c10::cuda::CUDAStream stream, cudaEvent_t event)
      : outside_(c10::cuda::getCurrentCUDAStream(stream.device_index())),
        guard_(stream),
        event_(event) {
    check_cuda(order(outside_, stream));
  }
  void hand_over(const at::Tensor& tensor) override { tensor.record_stream(outside_.unwrap()); }
  ~CudaScope() override {
    // A device that is broken says so at the next call; a destructor cannot.
    const auto stream = c10::cuda::getCurrentCUDAStream(outside_.device_index());
    order(stream, outside_);
    if (std::uncaught_exceptions() > exceptions_) cudaStreamSynchronize(stream.stream());
  }

 private:
  /// What is queued on `second` from now on waits for what is on `first` already.
  cudaError_t order(c10::cuda::CUDAStream first, c10::cuda::CUDAStream second) const {
    if (first == second) return cudaSuccess;
    const cudaError_t error = cudaEventRecord(event_, first.stream());
    return error == cudaSuccess ? cudaStreamWaitEvent(second.stream(), event_, 0) : error;
  }

  c10::cuda::CUDAStream outside_;
  c10::cuda::CUDAStreamGuard guard_;
  cudaEvent_t event_;
  int exceptions_ = std::uncaught_exceptions();
};

class CudaQueue : public WorkQueue {
 public:
  explicit CudaQueue(at::Device device) : stream_(Shelf::take(device)) {
    const c10::cuda::CUDAGuard guard(stream_.device());  // events belong to the current one
    check_cuda(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming));
    check_cuda(cudaEventCreateWithFlags(&order_, cudaEventDisableTiming));
  }
  ~CudaQueue() override {
    cudaEventDestroy(done_);
    cudaEventDestroy(order_);
    for (cudaEvent_t mark : marks_) {
      if (mark) cudaEventDestroy(mark);
    }
    Shelf::put_back(stream_);
  }

  std::unique_ptr<Scope> enter() override { return std::make_unique<CudaScope>(stream_, order_); }
  bool records() const override { return true; }
  std::unique_ptr<RecordedWork> record(const std::function<void()>& body) override {
    return std::make_unique<CudaGraph>(body);
  }
  void bring(std::span<const Brought> parts) override {
    static_assert(kMostBrought == CudaCopies::kMost);
    if (parts.size() > kMostBrought) fail("{} copies at once are too many", parts.size());
    CudaCopies copies{};
    for (const auto& [device, host] : parts) {
      // A kernel would not notice.
      if (device.nbytes() != host.nbytes()) {
        fail("{} bytes cannot be brought to a place for {}", device.nbytes(), host.nbytes());
      }
      copies.from[copies.count] = static_cast<const std::uint32_t*>(device.const_data_ptr());
      copies.to[copies.count] = static_cast<std::uint32_t*>(host.mutable_data_ptr());
      copies.words[copies.count] =
          static_cast<std::int64_t>(device.nbytes() / sizeof(std::uint32_t));
      ++copies.count;
    }
    queue_copies(copies, stream_.stream());
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
    const c10::cuda::CUDAGuard guard(stream_.device());
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
