#include "gala/report/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gala/report/printers.h"

namespace gala {
namespace {

// Middle tones: four times as bright as black and four times darker than white, or nearly so.
constexpr char kInk[] = "#7d8590";
constexpr char kChosen[] = "#0f9a8e";
constexpr char kSeveral[] = "#e0992a";
constexpr char kRefused[] = "#d9542b";

constexpr double kLeft = 58, kWidth = 660, kErrorHeight = 190, kLineHeight = 15;
constexpr std::size_t kMostPoints = 80;

/// Places on the page, and what has been drawn.
struct Canvas {
  double batches = 0, steps = 0;  ///< over the whole width
  double top = 0;                 ///< of the part that is being drawn
  double right = 0;               ///< where the words beside the parts end
  std::string svg = {};

  double batch_x(double batch) const { return kLeft + kWidth * batch / batches; }
  double step_x(double step) const { return kLeft + kWidth * step / steps; }
  double error_y(double error) const { return top + kErrorHeight * (1 - error / 100); }

  void text(double x, double y, const std::string& words, const std::string& attributes = "") {
    // Letters of 12 are about 6.6 wide.
    if (x > kLeft + kWidth) right = std::max(right, x + 6.6 * static_cast<double>(words.size()));
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", x, y, attributes,
                       escape_html(words));
  }
  void path(const std::string& d, const std::string& colour, const std::string& attributes) {
    if (d.empty()) return;
    svg += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\"{}/>\n", d, colour, attributes);
  }
  void fill(const std::string& d, const std::string& colour, double opacity) {
    if (d.empty()) return;
    svg += fmt::format("<path d=\"{}\" fill=\"{}\" fill-opacity=\"{}\"/>\n", d, colour, opacity);
  }
  void heading(const std::string& words) {
    text(kLeft, top, words, " font-size=\"13\" font-weight=\"600\"");
  }
};

struct Point {
  double batch, error;
};

/// Error in % over stretches of batches that never cross a border.
std::vector<Point> points_of(const OverTime& time) {
  const std::size_t count = std::min(time.images.size(), time.correct.size());
  const std::size_t stretch = std::max<std::size_t>(1, (count + kMostPoints - 1) / kMostPoints);
  std::vector<Point> points;
  for (std::size_t begin = 0; begin < count;) {
    std::size_t end = std::min(begin + stretch, count);
    for (const auto& [border, name] : time.borders) {
      const auto start = static_cast<std::size_t>(std::max<std::int64_t>(border, 0));
      if (start > begin) end = std::min(end, start);
    }
    double images = 0, correct = 0;
    for (std::size_t i = begin; i < end; ++i) {
      images += static_cast<double>(time.images[i]);
      correct += static_cast<double>(time.correct[i]);
    }
    if (images > 0) {
      points.push_back({static_cast<double>(begin + end) / 2, 100 * (1 - correct / images)});
    }
    begin = end;
  }
  return points;
}

using BorderList = std::vector<std::pair<std::int64_t, std::string>>;

/// The borders of a stream; where it recurs, those between its visits.
BorderList main_borders(const OverTime& time) {
  BorderList visits;
  for (const auto& [start, name] : time.borders) {
    const std::size_t begin = name.rfind(" (visit ");
    if (begin == std::string::npos || !name.ends_with(')')) return time.borders;
    const std::string visit = name.substr(begin + 2, name.size() - begin - 3);
    if (visits.empty() || visits.back().second != visit) visits.emplace_back(start, visit);
  }
  return visits;
}

/// Names of the domains above the part, and lines between them.
void draw_borders(Canvas& canvas, const BorderList& borders) {
  if (borders.size() < 2) return;
  std::string rules;
  const double room = kWidth / static_cast<double>(borders.size());
  for (std::size_t i = 0; i < borders.size(); ++i) {
    const auto& [start, name] = borders[i];
    const double begin = static_cast<double>(start);
    const double end =
        i + 1 < borders.size() ? static_cast<double>(borders[i + 1].first) : canvas.batches;
    if (i > 0) {
      rules +=
          fmt::format("M{:.1f} {:.1f}v{:.1f}", canvas.batch_x(begin), canvas.top, kErrorHeight);
    }
    if (room < 14) continue;  // names would lie upon each other
    const double x = canvas.batch_x((begin + end) / 2) - 4, y = canvas.top - 7;
    std::string words = name;
    std::replace(words.begin(), words.end(), '_', ' ');
    canvas.svg += fmt::format(
        "<text transform=\"translate({:.1f} {:.1f}) rotate(-35)\" font-size=\"11\">{}</text>\n", x,
        y, escape_html(words));
  }
  canvas.path(rules, kInk, " stroke-opacity=\".4\" stroke-dasharray=\"2 3\"");
}

/// The end of a line, and where its name stands.
struct LineEnd {
  const PictureLine* line;
  Point point;
  double y;
};

/// Names beside the ends of their lines, pushed apart where they would touch.
void draw_names(Canvas& canvas, const Record* mover, std::vector<LineEnd> ends) {
  std::stable_sort(ends.begin(), ends.end(),
                   [](const LineEnd& a, const LineEnd& b) { return a.y < b.y; });
  for (std::size_t i = 1; i < ends.size(); ++i) {
    ends[i].y = std::max(ends[i].y, ends[i - 1].y + kLineHeight);
  }
  double lowest = canvas.top + kErrorHeight;
  for (std::size_t i = ends.size(); i-- > 0; lowest = ends[i].y - kLineHeight) {
    ends[i].y = std::min(ends[i].y, lowest);
  }
  const double x = kLeft + kWidth + 10;
  for (const LineEnd& end : ends) {
    const std::string& colour = end.line->colour;
    canvas.path(fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", canvas.batch_x(end.point.batch) + 2,
                            canvas.error_y(end.point.error), x, end.y),
                colour, " stroke-opacity=\".6\" stroke-dasharray=\"1 2\"");
    canvas.path(fmt::format("M{:.1f} {:.1f}h12", x, end.y), colour, " stroke-width=\"3\"");
    canvas.text(x + 18, end.y + 4,
                fmt::format("{} {:.1f}", end.line->label, 100 * end.line->run->error()),
                end.line->run == mover ? " font-weight=\"600\"" : "");
  }
}

void draw_errors(Canvas& canvas, const Picture& picture,
                 const std::vector<const PictureLine*>& lines) {
  canvas.top = 16;
  canvas.heading(picture.title + ": error in % while the stream passes, its mean beside each name");
  std::size_t longest = 0;
  const BorderList borders = main_borders(lines.front()->run->over_time);
  for (const auto& [batch, name] : borders) {
    longest = std::max(longest, name.size());
  }
  canvas.top += 18 + std::min(90.0, 3.6 * static_cast<double>(longest));
  std::string grid;
  for (const int error : {0, 25, 50, 75, 100}) {
    grid += fmt::format("M{:.1f} {:.1f}h{:.1f}", kLeft, canvas.error_y(error), kWidth);
    canvas.text(kLeft - 7, canvas.error_y(error) + 4, fmt::format("{}", error),
                " text-anchor=\"end\"");
  }
  canvas.path(grid, kInk, " stroke-opacity=\".25\"");
  draw_borders(canvas, borders);
  std::vector<LineEnd> ends;
  for (const PictureLine* line : lines) {
    const std::vector<Point> points = points_of(line->run->over_time);
    std::string d;
    for (const Point& point : points) {
      d += fmt::format("{}{:.1f} {:.1f}", d.empty() ? "M" : "L", canvas.batch_x(point.batch),
                       canvas.error_y(point.error));
    }
    canvas.path(d, line->colour,
                fmt::format(" stroke-width=\"{}\" stroke-linejoin=\"round\"",
                            line->run == picture.choices ? "2.6" : "1.5"));
    ends.push_back({line, points.back(), canvas.error_y(points.back().error)});
  }
  draw_names(canvas, picture.choices, std::move(ends));
  canvas.top += kErrorHeight;
}

/// Steps between the numbers below an axis: 1, 2 or 5 times a power of ten.
double tick_distance(double steps) {
  const double least = std::max(1.0, steps / 8);
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double times : {1.0, 2.0, 5.0}) {
    if (times * power >= least) return times * power;
  }
  return 10 * power;
}

/// Every choice in its place: dots for single layers, lines for what is not one layer.
void draw_choices(Canvas& canvas, const Record& run, double row) {
  const double height = row * static_cast<double>(run.layers.size());
  const double step_width = kWidth / canvas.steps;
  std::string chosen, several, none, refused;
  double step = 0;
  for (const auto& [choice, times] : run.choices) {
    const double length = static_cast<double>(times);
    if (choice >= static_cast<std::int64_t>(run.layers.size())) {
      // Of no layer that the run names.
    } else if (choice >= 0) {
      // A dot with round ends: its path is shorter than the steps by one.
      chosen += fmt::format("M{:.1f} {:.1f}h{:.1f}", canvas.step_x(step + 0.5),
                            canvas.top + row * (static_cast<double>(choice) + 0.5),
                            step_width * (length - 1));
    } else {
      std::string& lines = choice == Record::kSeveral   ? several
                           : choice == Record::kRefused ? refused
                                                        : none;
      lines += fmt::format("M{:.1f} {:.1f}h{:.1f}v{:.1f}h{:.1f}z", canvas.step_x(step), canvas.top,
                           step_width * length, height, -step_width * length);
    }
    step += length;
  }
  canvas.fill(several, kSeveral, .6);
  canvas.fill(none, kInk, .6);
  canvas.fill(refused, kRefused, .8);
  const double size = std::min(row, 5.0) * 0.95;
  canvas.path(chosen, kChosen,
              fmt::format(" stroke-width=\"{:.1f}\" stroke-linecap=\"round\"", size));

  double y = canvas.top + 9;
  const double x = kLeft + kWidth + 10;
  const auto explain = [&](const std::string& drawn, const char* colour, const char* words) {
    if (drawn.empty()) return;
    canvas.fill(fmt::format("M{:.1f} {:.1f}h12v6h-12z", x, y - 7), colour, 1);
    canvas.text(x + 18, y, words);
    y += kLineHeight;
  };
  explain(chosen, kChosen, "one layer");
  explain(several, kSeveral, "several layers");
  explain(none, kInk, "none");
  explain(refused, kRefused, "refused step");
}

void draw_layers(Canvas& canvas, const Picture& picture) {
  const Record& run = *picture.choices;
  const double row = std::clamp(212 / static_cast<double>(run.layers.size()), 3.0, 14.0);
  const double height = row * static_cast<double>(run.layers.size());
  canvas.top += canvas.top > 0 ? 34 : 16;
  canvas.heading(fmt::format("The layers that {}moved, step by step",
                             picture.mover.empty() ? "" : picture.mover + " "));
  canvas.top += 10;
  canvas.fill(fmt::format("M{:.1f} {:.1f}h{:.1f}v{:.1f}h{:.1f}z", kLeft, canvas.top, kWidth, height,
                          -kWidth),
              kInk, .08);
  draw_choices(canvas, run, row);
  canvas.text(kLeft - 7, canvas.top + 9, "input", " text-anchor=\"end\"");
  canvas.text(kLeft - 7, canvas.top + height, "output", " text-anchor=\"end\"");
  canvas.top += height + 17;
  const double distance = tick_distance(canvas.steps);
  for (double step = 0; step <= canvas.steps; step += distance) {
    canvas.text(canvas.step_x(step), canvas.top, fmt::format("{:.0f}", step),
                " text-anchor=\"middle\"");
  }
  canvas.text(kLeft + kWidth + 28, canvas.top, "steps");
}

}  // namespace

std::string to_svg(const Picture& picture) {
  std::vector<const PictureLine*> lines;
  Canvas canvas;
  for (const PictureLine& line : picture.lines) {
    if (points_of(line.run->over_time).empty()) continue;
    lines.push_back(&line);
    canvas.batches =
        std::max(canvas.batches, static_cast<double>(line.run->over_time.correct.size()));
  }
  // The run whose layers are shown lies above the others.
  std::stable_partition(lines.begin(), lines.end(),
                        [&](const PictureLine* line) { return line->run != picture.choices; });
  if (!lines.empty()) draw_errors(canvas, picture, lines);
  if (picture.choices != nullptr && picture.choices->steps > 0 &&
      !picture.choices->layers.empty()) {
    canvas.steps = static_cast<double>(picture.choices->steps);
    draw_layers(canvas, picture);
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" "
      "font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"{}\">\n<title>{}</title>\n{}"
      "</svg>\n",
      std::max(canvas.right, kLeft + kWidth) + 8, canvas.top + 10, kInk, escape_html(picture.title),
      canvas.svg);
}

}  // namespace gala
