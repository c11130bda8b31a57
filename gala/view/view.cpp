#include "gala/view/view.h"

namespace gala {

void View::attach(at::Device, const Preprocessing&) {}

}  // namespace gala
