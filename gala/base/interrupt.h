#pragma once

namespace gala {

/// Turns SIGINT and SIGTERM into a flag that long work asks between two steps. A second signal ends
/// the program at once.
void catch_interrupts();
/// True after a signal came.
bool interrupted();

}  // namespace gala
