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

__attribute__((no_sanitize_address, no_sanitize_thread)) void check_working_directory(
    int /*argc*/, char** /*argv*/, char** environment) {
  char here[PATH_MAX];
  if (::getcwd(here, sizeof here) || errno != ENOENT) return;
  const char* name = "";
  for (char** entry = environment; *entry; ++entry) {
    if (std::strncmp(*entry, "PWD=/", 5) == 0) name = *entry + 4;
  }
  ::dprintf(STDERR_FILENO,
            "error: the working directory%s%s was deleted, and maybe made anew: change into one "
            "that is there\n",
            *name ? " " : "", name);
  ::_exit(kUsersMistake);
}

}  // namespace

__attribute__((section(".preinit_array"),
               used)) static void (*const kBeforeLibraries)(int, char**,
                                                            char**) = &check_working_directory;
