#pragma once

namespace gala {

/// Turns SIGINT, SIGTERM, SIGHUP and SIGPIPE (nobody reads what is printed) into a flag that long work asks
/// between two steps. A second SIGINT or SIGTERM ends the program at once. SIGHUP and SIGPIPE stay ignored
/// where they are, as under nohup.
void catch_interrupts();
/// True after a signal came.
bool interrupted();

}  // namespace gala
