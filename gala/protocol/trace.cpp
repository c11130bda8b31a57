#include "gala/protocol/trace.h"

#include <zlib.h>

#include <cmath>

#include "gala/base/error.h"
#include "gala/protocol/record.h"

namespace gala {
namespace {

/// zlib's window, with 16 added for the gzip format.
constexpr int kGzip = 15 + 16;
/// Of an unpacked text: some hundred times what `Trace` writes. A small file may unpack to a thousand
/// times its size.
constexpr std::size_t kLongestText = 256u << 20;

}  // namespace

std::string gzip(const std::string& text) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzip, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
    fail("zlib cannot begin");
  }
  std::string packed(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int status = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) fail("zlib could not pack {} bytes", text.size());
  return packed;
}

std::string gunzip(const std::string& packed) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzip) != Z_OK) fail("zlib cannot begin");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string text;
  std::vector<char> buffer(1 << 16);
  int status = Z_OK;
  while (status == Z_OK && text.size() <= kLongestText) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    status = inflate(&stream, Z_NO_FLUSH);
    text.append(buffer.data(), buffer.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (text.size() > kLongestText) fail("unpacks to more than {} bytes", kLongestText);
  if (status != Z_STREAM_END) fail("is not a whole gzip file");
  return text;
}

void Trace::add(const StepRecord& step) {
  // Written by hand: three digits a number keep the file small.
  std::string line = fmt::format(
      "{{\"step\":{},\"window_step\":{},\"loss\":{},\"confident\":{},\"distance\":[", step.step,
      step.window_step, std::isfinite(step.loss) ? fmt::format("{:.4g}", step.loss) : "null",
      step.confident);
  for (std::size_t l = 0; l < step.layers.size(); ++l) {
    line += fmt::format("{}{:.3g}", l == 0 ? "" : ",", 1 - step.layers[l].cosine);
  }
  lines_.push_back(line + "]}\n");
}

std::string Trace::compressed(const std::string& key, const LayerPartition& layers) const {
  nlohmann::ordered_json heading = {{"schema", kRecordSchema}, {"key", key}};
  heading["layers"] = nlohmann::json::array();
  for (const Layer& layer : layers.layers) heading["layers"].push_back(layer.name);
  for (std::size_t every = 1;; every *= 2) {
    heading["every"] = every;
    std::string text = heading.dump() + "\n";
    for (std::size_t i = 0; i < lines_.size(); i += every) text += lines_[i];
    std::string packed = gzip(text);
    if (packed.size() <= kLargest || every >= lines_.size()) return packed;
  }
}

}  // namespace gala
