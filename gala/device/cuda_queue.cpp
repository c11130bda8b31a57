#include "gala/device/cuda_queue.h"

#include <ATen/ATen.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/GradMode.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <array>
#include <exception>
#include <map>
#include <mutex>
#include <vector>

#include "gala/base/cuda_check.h"
#include "gala/base/error.h"
#include "gala/device/capture_gate.h"
#include "gala/device/cuda_bring.h"

namespace gala {
namespace {

/// No graph goes away while another is captured: LibTorch's allocator is shared by all of them.
std::mutex& capture_lock() {
  static std::mutex lock;
  return lock;
}

using Graph = std::unique_ptr<at::cuda::CUDAGraph>;

/// Memory of what is captured.
struct Room {
  c10::MempoolId_t pool = {};
  /// Never replayed: the pool would end with the last graph in it. Null before anything is captured.
  Graph keeper = {};
};

/// A stream, and the memory of what is captured on it.
struct Lane {
  c10::cuda::CUDAStream stream;
  std::array<Room, WorkQueue::kRooms> rooms = {};
};

/// Lanes that no queue has now. The streams are our own: those of LibTorch's pool come round again, and
/// what one adapter queues on the stream of another would be captured into its graph. Lanes are used
/// again and never destroyed: LibTorch keeps free memory by stream, and what the graphs of one adapter
/// needed serves those of the next. With a pool for each graph a process that makes one adapter after
/// the other would fill the GPU.
class Shelf {
 public:
  static Lane take(at::Device where) {
    const c10::cuda::CUDAGuard guard(where);
    const c10::DeviceIndex device = c10::cuda::current_device();
    Shelf& shelf = instance();
    const std::lock_guard<std::mutex> lock(shelf.mutex_);
    std::vector<Lane>& lanes = shelf.lanes_[device];
    if (lanes.empty()) return make(device);
    Lane lane = std::move(lanes.back());
    lanes.pop_back();
    return lane;
  }
  static void put_back(Lane lane) {
    Shelf& shelf = instance();
    const std::lock_guard<std::mutex> lock(shelf.mutex_);
    shelf.lanes_[lane.stream.device_index()].push_back(std::move(lane));
  }

 private:
  static Shelf& instance() {
    static auto* shelf = new Shelf;  // CUDA may be gone before the end of the process
    return *shelf;
  }
  static Lane make(c10::DeviceIndex device) {
    cudaStream_t stream = nullptr;
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return {c10::cuda::getStreamFromExternal(stream, device)};
  }

  std::mutex mutex_;
  std::map<c10::DeviceIndex, std::vector<Lane>> lanes_;
};

/// Cleaning up behind something that broke must not break in its turn: what it has to say is lost.
template <class Step>
void try_to(const Step& step) {
  try {
    step();
  } catch (const std::exception&) {
    // There was nothing to clean up, or the next call says what is wrong.
  }
}

/// LibTorch goes backward in a thread of the device, the same one for all adapters, and CUDA keeps the
/// last error of every thread until somebody asks for it. Left there it would be taken for one of the
/// next adapter's.
void forget_error_of_backward(at::Device device) {
  const c10::AutoGradMode with_gradients(true);
  const at::Tensor leaf = at::empty({1}, at::TensorOptions(device)).requires_grad_();
  const at::Tensor result = leaf.view({1});
  result.register_hook([](const at::Tensor&) { cudaGetLastError(); });
  result.backward(at::empty_like(result));  // no kernel before the hook: it would find the error
}

/// Not every version of LibTorch has pools in host memory.
template <class Allocator>
void leave_host_pool(Allocator* allocator, c10::MempoolId_t pool) {
  if constexpr (requires { allocator->end_allocate_to_pool(pool); }) {
    allocator->end_allocate_to_pool(pool);
    allocator->release_pool(pool);
  }
}

/// Throws where there is no such pool, and where the allocator is not LibTorch's own.
int holders_of(const Lane& lane, const Room& room) {
  return c10::cuda::CUDACachingAllocator::getPoolUseCount(lane.stream.device_index(), room.pool);
}

/// What broke the capture is what the caller must hear of, so nothing here may throw. A capture that
/// cannot be ended leaves LibTorch's allocators in the belief that it goes on.
void abandon(Graph graph, const Lane& lane, const Room& room, int holders) {
  const c10::DeviceIndex device = lane.stream.device_index();
  try_to([&] { graph->capture_end(); });
  try_to([&] { c10::cuda::CUDACachingAllocator::endAllocateToPool(device, room.pool); });
  try_to([&] { leave_host_pool(at::getHostAllocator(at::kCUDA), room.pool); });
  graph.reset();
  try_to([&] {
    if (holders_of(lane, room) > holders) {
      c10::cuda::CUDACachingAllocator::releasePool(device, room.pool);
    }
  });
  cudaGetLastError();
  try_to([&] { forget_error_of_backward(lane.stream.device()); });
}

Graph capture(const Lane& lane, const Room& room, const std::function<void()>& body) {
  auto graph = std::make_unique<at::cuda::CUDAGraph>();
  int holders = 0;
  try_to([&] { holders = holders_of(lane, room); });
  try {
    graph->capture_begin(room.pool, cudaStreamCaptureModeThreadLocal);
    body();
    graph->capture_end();
  } catch (...) {
    abandon(std::move(graph), lane, room, holders);
    throw;
  }
  return graph;
}

/// A pool that nothing lies in yet. What was in the one before goes with its graphs.
void renew_pool(const Lane& lane, Room& room) {
  room.keeper.reset();
  room.pool = at::cuda::graph_pool_handle();
  room.keeper = capture(lane, room, [&] { queue_copies({}, lane.stream.stream()); });
}

class CudaGraph : public CapturedWork {
 public:
  /// One at a time in a process. Other threads may replay on their own streams meanwhile.
  CudaGraph(const Lane& lane, Room& room, const std::function<void()>& body) {
    const Capturing alone;
    const std::lock_guard<std::mutex> none_destroyed(capture_lock());
    if (!room.keeper) renew_pool(lane, room);
    try {
      graph_ = capture(lane, room, body);
      // The first replay would do it otherwise, too late to go on without a capture if it fails.
      check_cuda(cudaGraphUpload(graph_->raw_cuda_graph_exec(), lane.stream.stream()));
    } catch (...) {
      graph_.reset();
      // Whoever is short of memory can have what this one had got. And LibTorch's random generator
      // may believe that the capture goes on, until one has ended well.
      try_to([&] { renew_pool(lane, room); });
      throw;
    }
  }
  ~CudaGraph() override {
    const std::lock_guard<std::mutex> not_while_others_capture(capture_lock());
    graph_.reset();
  }
  void replay() override { graph_->replay(); }

 private:
  Graph graph_;
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
  explicit CudaQueue(at::Device device) : lane_(Shelf::take(device)) {
    const c10::cuda::CUDAGuard guard(lane_.stream.device());  // events belong to the current one
    try {
      check_cuda(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming));
      check_cuda(cudaEventCreateWithFlags(&order_, cudaEventDisableTiming));
    } catch (...) {
      Shelf::put_back(std::move(lane_));
      throw;
    }
  }
  ~CudaQueue() override {
    cudaEventDestroy(done_);
    cudaEventDestroy(order_);
    for (cudaEvent_t mark : marks_) {
      if (mark) cudaEventDestroy(mark);
    }
    Shelf::put_back(std::move(lane_));
  }

  std::unique_ptr<Scope> enter() override {
    return std::make_unique<CudaScope>(lane_.stream, order_);
  }
  bool captures() const override { return true; }
  std::unique_ptr<CapturedWork> capture(const std::function<void()>& body, int room) override {
    return std::make_unique<CudaGraph>(lane_, lane_.rooms.at(static_cast<std::size_t>(room)), body);
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
    queue_copies(copies, lane_.stream.stream());
  }
  void wait() override {
    check_cuda(cudaEventRecord(done_, lane_.stream.stream()));
    check_cuda(cudaEventSynchronize(done_));
  }

  void mark(int phase) override {
    if (!timed_) return;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    check_cuda(cudaStreamIsCapturing(lane_.stream.stream(), &status));
    const unsigned flags =
        status == cudaStreamCaptureStatusNone ? cudaEventRecordDefault : cudaEventRecordExternal;
    check_cuda(cudaEventRecordWithFlags(marks_[static_cast<std::size_t>(phase)],
                                        lane_.stream.stream(), flags));
  }
  void time_phases(bool on) override {
    timed_ = on;
    const c10::cuda::CUDAGuard guard(lane_.stream.device());
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
  Lane lane_;
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

void* current_stream(at::Device device) {
  if (!device.is_cuda()) return nullptr;
  return c10::cuda::getCurrentCUDAStream(device.index()).stream();
}

bool built_with_cuda() {
  return true;
}

}  // namespace gala
