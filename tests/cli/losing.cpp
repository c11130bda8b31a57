// Loaded before everything else (LD_PRELOAD), this takes a device away in the middle of a program: the call of a
// number fails, and so does every call behind it, as on a GPU that has fallen off its bus. tests/cli/losing.py
// uses it; nothing of the library is linked here.
//
//   GALA_LOSE=FUNCTION:N    the N-th call of the function is the first that fails; no N: none
//   GALA_LOSE_ERROR=700     what CUDA's functions say then (cudaErrorIllegalAddress)
//   GALA_LOSE_TRAP=1        nothing is pretended: a kernel of our own breaks the GPU's context, and what fails then is CUDA's
//   GALA_LOSE_REPORT=FILE   gets a line "FUNCTION calls" for each function at the end, and "lost FUNCTION" where it came to it
//
// For a machine without a GPU there is a disk that breaks, by the functions write, writev and fsync (EIO).
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

// CUDA's, as far as they are passed on: no header of CUDA is needed to build this.
struct Dim3 {
  unsigned x, y, z;
};
using Handle = void*;

enum class Kind { kGpu, kDisk };

/// A function that is looked at. Made before any code runs: the first call comes from wherever it likes.
struct Function {
  const char* name;
  Kind kind;
  std::atomic<long> calls = 0;
  std::atomic<void*> real = nullptr;
  Function* next = nullptr;

  constexpr Function(const char* a_name, Kind a_kind) : name(a_name), kind(a_kind) {}
  template <class Signature>
  Signature* find() {
    void* found = real.load(std::memory_order_relaxed);
    if (!found) {
      found = dlsym(RTLD_NEXT, name);
      real.store(found, std::memory_order_relaxed);
    }
    return reinterpret_cast<Signature*>(found);
  }
  inline long count();
};

std::atomic<Function*> called = nullptr;  ///< the newest of a list of those that were

long Function::count() {
  const long number = ++calls;
  if (number == 1) {
    next = called.load();
    while (!called.compare_exchange_weak(next, this)) {
    }
  }
  return number;
}

/// What the environment asks for. Read at the first call, which may come before our own constructors ran.
struct Wish {
  char function[64] = {};
  long number = 0;
  int error = 700;
  bool trap = false;

  Wish() {
    if (const char* text = getenv("GALA_LOSE")) {
      const char* colon = strchr(text, ':');
      const size_t size = colon ? static_cast<size_t>(colon - text) : strlen(text);
      if (size < sizeof function) memcpy(function, text, size);
      if (colon) number = atol(colon + 1);
    }
    if (const char* text = getenv("GALA_LOSE_ERROR")) error = atoi(text);
    trap = getenv("GALA_LOSE_TRAP") != nullptr;
  }
};
const Wish& wish() {
  static const Wish kept;
  return kept;
}

std::atomic<const Function*> lost = nullptr;

/// A kernel that ends in a trap, made ready while all is well and started when it is time.
class Trap {
 public:
  void make_ready() {
    if (!wish().trap || tried_.exchange(true)) return;
    static const char kText[] =
        ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry lose() { trap; ret; }\n";
    Handle driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) return complain("there is no libcuda.so.1");
    const auto load = find<int(Handle*, const void*)>(driver, "cuModuleLoadData");
    const auto get = find<int(Handle*, Handle, const char*)>(driver, "cuModuleGetFunction");
    const auto stream = find<int(Handle*, unsigned)>(driver, "cuStreamCreate");
    start_ = find<Start>(driver, "cuLaunchKernel");
    Handle module = nullptr;
    if (!load || !get || !stream || !start_) return complain("libcuda.so.1 is another");
    if (load(&module, kText) != 0) return complain("the kernel was not taken");
    if (get(&kernel_, module, "lose") != 0) return complain("the kernel was not found");
    if (stream(&stream_, 1) != 0) return complain("there is no stream for it");
    ready_ = true;
  }
  void spring() {
    if (!ready_) return complain("it was not ready");
    if (start_(kernel_, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr) != 0)
      return complain("it did not start");
    usleep(50'000);  // nothing waits for it that a capture would forbid
  }

 private:
  using Start = int(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                    Handle, void**, void**);

  template <class Signature>
  static Signature* find(Handle library, const char* name) {
    return reinterpret_cast<Signature*>(dlsym(library, name));
  }
  static void complain(const char* why) { fprintf(stderr, "losing: no trap: %s\n", why); }

  std::atomic<bool> tried_ = false, ready_ = false;
  Handle kernel_ = nullptr, stream_ = nullptr;
  Start* start_ = nullptr;
};
Trap& trap() {
  static Trap kept;
  return kept;
}

/// Counts a call; true where it is to fail.
bool fails(Function& function) {
  const long number = function.count();
  const Function* gone = lost.load();
  if (gone == nullptr) {
    if (number != wish().number || strcmp(function.name, wish().function) != 0) return false;
    lost = gone = &function;
    if (wish().trap) trap().spring();
  }
  return !wish().trap && gone->kind == function.kind;
}

void write_report() {
  const char* path = getenv("GALA_LOSE_REPORT");
  FILE* file = path ? fopen(path, "w") : nullptr;
  if (!file) return;
  if (const Function* gone = lost.load()) fprintf(file, "lost %s\n", gone->name);
  for (const Function* each = called; each; each = each->next) {
    fprintf(file, "%s %ld\n", each->name, each->calls.load());
  }
  fclose(file);
}

struct AtTheEnd {
  ~AtTheEnd() { write_report(); }
} at_the_end;

/// A program that leaves without ceremony runs no destructor.
[[noreturn]] void leave(const char* name, int code) {
  write_report();
  reinterpret_cast<void (*)(int)>(dlsym(RTLD_NEXT, name))(code);
  __builtin_unreachable();
}

}  // namespace

// A CUDA function: its parameters, and the names by which they are passed on.
#define GALA_EXPORTED extern "C" __attribute__((visibility("default")))
#define GALA_LOSING(name, parameters, names)       \
  namespace {                                      \
  constinit Function of_##name(#name, Kind::kGpu); \
  }                                                \
  GALA_EXPORTED int name parameters {              \
    if (fails(of_##name)) return wish().error;     \
    return of_##name.find<int parameters>() names; \
  }

GALA_LOSING(cudaLaunchKernel, (const void* f, Dim3 g, Dim3 b, void** a, size_t m, Handle s),
            (f, g, b, a, m, s))
// What CUDA 13 makes of <<<>>>.
GALA_LOSING(__cudaLaunchKernel, (const void* f, Dim3 g, Dim3 b, void** a, size_t m, Handle s),
            (f, g, b, a, m, s))
GALA_LOSING(cudaLaunchKernelExC, (const void* c, const void* f, void** a), (c, f, a))
GALA_LOSING(cudaGraphLaunch, (Handle g, Handle s), (g, s))
GALA_LOSING(cudaGraphUpload, (Handle g, Handle s), (g, s))
GALA_LOSING(cudaStreamSynchronize, (Handle s), (s))
GALA_LOSING(cudaStreamQuery, (Handle s), (s))
GALA_LOSING(cudaStreamWaitEvent, (Handle s, Handle e, unsigned f), (s, e, f))
GALA_LOSING(cudaStreamBeginCapture, (Handle s, int m), (s, m))
GALA_LOSING(cudaStreamEndCapture, (Handle s, Handle* g), (s, g))
GALA_LOSING(cudaEventCreateWithFlags, (Handle * e, unsigned f), (e, f))
GALA_LOSING(cudaEventDestroy, (Handle e), (e))
GALA_LOSING(cudaEventRecord, (Handle e, Handle s), (e, s))
GALA_LOSING(cudaEventRecordWithFlags, (Handle e, Handle s, unsigned f), (e, s, f))
GALA_LOSING(cudaEventSynchronize, (Handle e), (e))
GALA_LOSING(cudaEventQuery, (Handle e), (e))
GALA_LOSING(cudaMemcpyAsync, (void* t, const void* f, size_t n, int k, Handle s), (t, f, n, k, s))
GALA_LOSING(cudaMemsetAsync, (void* p, int v, size_t n, Handle s), (p, v, n, s))
GALA_LOSING(cudaFree, (void* p), (p))
GALA_LOSING(cudaHostAlloc, (void** p, size_t n, unsigned f), (p, n, f))
GALA_LOSING(cudaFreeHost, (void* p), (p))
GALA_LOSING(cudaDeviceSynchronize, (), ())

namespace {
constinit Function of_cudaMalloc("cudaMalloc", Kind::kGpu);
constinit Function of_cudaGetLastError("cudaGetLastError", Kind::kGpu);
constinit Function of_cudaPeekAtLastError("cudaPeekAtLastError", Kind::kGpu);
constinit Function of_write("write", Kind::kDisk);
constinit Function of_writev("writev", Kind::kDisk);
constinit Function of_fsync("fsync", Kind::kDisk);

/// Of a device that is gone the error stays, however often it is asked for.
bool stays() {
  const Function* gone = lost.load();
  return gone && gone->kind == Kind::kGpu && !wish().trap;
}
bool is_terminal(int file) {
  return file <= 2;
}
}  // namespace

GALA_EXPORTED int cudaMalloc(void** pointer, size_t size) {
  if (fails(of_cudaMalloc)) return wish().error;
  const int error = of_cudaMalloc.find<int(void**, size_t)>()(pointer, size);
  if (error == 0) trap().make_ready();  // there is a context now
  return error;
}
GALA_EXPORTED int cudaGetLastError() {
  of_cudaGetLastError.count();
  return stays() ? wish().error : of_cudaGetLastError.find<int()>()();
}
GALA_EXPORTED int cudaPeekAtLastError() {
  of_cudaPeekAtLastError.count();
  return stays() ? wish().error : of_cudaPeekAtLastError.find<int()>()();
}

GALA_EXPORTED ssize_t write(int file, const void* data, size_t size) {
  if (!is_terminal(file) && fails(of_write)) return errno = EIO, -1;
  return of_write.find<ssize_t(int, const void*, size_t)>()(file, data, size);
}
GALA_EXPORTED ssize_t writev(int file, const iovec* parts, int count) {
  if (!is_terminal(file) && fails(of_writev)) return errno = EIO, -1;
  return of_writev.find<ssize_t(int, const iovec*, int)>()(file, parts, count);
}
GALA_EXPORTED int fsync(int file) {
  if (fails(of_fsync)) return errno = EIO, -1;
  return of_fsync.find<int(int)>()(file);
}

GALA_EXPORTED [[noreturn]] void _exit(int code) {
  leave("_exit", code);
}
GALA_EXPORTED [[noreturn]] void _Exit(int code) {
  leave("_Exit", code);
}
