#pragma once
#include "cli/line_file.h"
#include "gala/adapt/adapter.h"
#include "gala/data/loader.h"

namespace gala {

/// The file of `--predictions`: a line per image, with its label where labels are known and its name
/// where images are files.
class PredictionFile {
 public:
  /// The stream must outlive it.
  PredictionFile(const DataSource& source, const Stream& stream);

  /// To be opened, flushed and taken up again; nothing is written before it is open.
  LineFile& lines() { return lines_; }
  const LineFile& lines() const { return lines_; }
  /// Names the columns, in a file that holds nothing yet.
  void begin();
  void write(const Batch& batch, const Answer& answer);

 private:
  const Stream& stream_;
  bool with_labels_, with_files_;
  LineFile lines_;
};

}  // namespace gala
