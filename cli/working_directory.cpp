// Without a folder to be in, a library of LibTorch's ends the program from its static constructor, in words
// that name the wrong thing. So this one case is looked at before any library begins, by the one means that
// there is; nothing of C++ and nothing that a sanitizer watches is there yet.
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

namespace {

constexpr int kUsersMistake = 2;

__attribute__((no_sanitize_address, no_sanitize_thread)) void check_working_directory() {
  char here[PATH_MAX];
  if (::getcwd(here, sizeof here) || errno != ENOENT) return;
  // Its name by the system, which knows what it was. PWD may be of another folder, where whoever began the
  // program changed into this one by itself.
  constexpr char kDeleted[] = " (deleted)";
  constexpr ssize_t kBehind = sizeof kDeleted - 1;
  const ssize_t length = ::readlink("/proc/self/cwd", here, sizeof here - 1);
  here[length > 0 ? length : 0] = '\0';
  if (length > kBehind && std::strcmp(here + length - kBehind, kDeleted) == 0) {
    here[length - kBehind] = '\0';
  }
  ::dprintf(STDERR_FILENO,
            "error: the working directory%s%s was deleted, and maybe made anew: change into one "
            "that is there\n",
            *here ? " " : "", here);
  ::_exit(kUsersMistake);
}

}  // namespace

__attribute__((section(".preinit_array"),
               used)) static void (*const kBeforeLibraries)() = &check_working_directory;
