#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <span>
#include <string>

namespace gala {

/// Work that was captured once and can be queued again as one piece. It reads and writes the memory
/// it was captured with.
class CapturedWork {
 public:
  virtual ~CapturedWork() = default;
  virtual void replay() = 0;
};

/// Where the work of one adapter goes: a stream of its own on a GPU, so that many adapters can share
/// one; on the CPU everything runs at once and there is nothing to queue.
class WorkQueue {
 public:
  /// The queue is current for this thread while it lives: what is begun before is waited for by the
  /// work inside, and what comes behind waits for that. When an exception leaves it, the host waits
  /// too, so that memory which the work reads or writes is free again.
  class Scope {
   public:
    virtual ~Scope() = default;
    /// Lets a tensor that was made inside be used outside.
    virtual void hand_over(const at::Tensor& tensor) = 0;
  };

  /// A copy to the host.
  struct Brought {
    at::Tensor device, host;
  };
  static constexpr std::size_t kMostBrought = 6;

  static std::unique_ptr<WorkQueue> make(at::Device device);
  virtual ~WorkQueue() = default;

  virtual std::unique_ptr<Scope> enter() = 0;
  /// Whether `capture` can be called.
  virtual bool captures() const = 0;
  /// Calls `body` once to learn what it queues, without running any of that. Inside an entered
  /// scope; `body` must not wait for the device, nor may anybody else for all of it (see
  /// gala/device/capture_gate.h). Memory that it keeps is shared with everything else that was captured
  /// by this queue in the same room: a replay may overwrite what others of them left there.
  virtual std::unique_ptr<CapturedWork> capture(const std::function<void()>& body,
                                                int room = 0) = 0;
  /// Queues copies of device memory into pinned memory of the same type and size, all contiguous and
  /// of whole words of four bytes; `kMostBrought` at most.
  virtual void bring(std::span<const Brought> parts) = 0;
  /// Waits until all queued work is done.
  virtual void wait() = 0;

  /// Marks the end of a phase; part of captured work too.
  virtual void mark(int phase) = 0;
  /// Marks cost a little on a GPU: there they are only set where this asked for them before.
  virtual void time_phases(bool on) = 0;
  /// Whether marks are set.
  virtual bool times_phases() const = 0;
  /// Milliseconds between the marks `phase - 1` and `phase` that were passed last, after `wait`.
  virtual double phase_time(int phase) const = 0;

  static constexpr int kMarks = 8;
  /// Rooms of memory for what is captured.
  static constexpr int kRooms = 2;
};

/// What a GPU calls itself; empty for other devices, or where this library was built without CUDA.
std::string gpu_name(at::Device device);

/// The stream of a GPU that LibTorch queues this thread's work on (a cudaStream_t); null for other
/// devices, or where this library was built without CUDA.
void* current_stream(at::Device device);

/// Whether this library was built with CUDA kernels and graphs of its own.
bool built_with_cuda();

}  // namespace gala
