#pragma once

namespace gala {

/// Has the C library keep what this process frees, up to two gigabytes, for what it asks for next. A pass through a
/// network frees maps of many megabytes and asks for others at once; left alone, glibc gives each back to
/// the system, which clears it page by page before it lends it again. For a program to call at
/// its beginning: a policy of the whole process. What MALLOC_ variables of the environment say stays.
void keep_freed_memory();

}  // namespace gala
