#pragma once

namespace gala {

/// Turns SIGINT, SIGTERM and SIGHUP into a flag that long work asks between two steps. A second SIGINT
/// or SIGTERM ends the program at once. SIGHUP stays ignored where it is, as under nohup.
void catch_interrupts();
/// True after a signal came.
bool interrupted();

}  // namespace gala
