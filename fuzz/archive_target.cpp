// Zip archives, which checkpoints and exported networks are.
#include "fuzz/scratch.h"
#include "gala/model/zip_reader.h"

namespace gala::fuzz {

void zip(Bytes bytes) {
  static const Scratch scratch;
  const auto path = scratch.write("archive.zip", as_text(bytes));
  accepted([&] {
    const ZipReader reader(FileContent::read(path));
    for (const auto& entry : reader.entries()) {
      accepted([&] {
        require(reader.read(entry.first).bytes.size() == entry.second.size,
                "an entry of another size");
      });
    }
  });
}

}  // namespace gala::fuzz
