#include "gala/report/printers.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gala::test {
namespace {

/// A small table whose numbers are easy to print by hand.
TableSet sample() {
  static const Record record = [] {
    Record made;
    made.key = "0123abcd";
    return made;
  }();
  Table table;
  table.id = "sample_table";
  table.title = "Sample <1>";
  table.caption = "Made up_numbers.";
  table.heads = {"TTA", "Method"};
  table.of_paper = true;
  table.norm = "batch";
  table.columns = {{.name = "A|B", .over = "Set & 1"},
                   {.name = "Error", .over = "Set & 1", .higher_is_better = false, .digits = 1}};
  Cell value{.state = Cell::State::kValue, .value = 82.125, .deviation = 0.64};
  value.interval = Interval{81.5, 83};
  value.samples = 3;
  value.paper = 83.5;
  value.paper_deviation = 0.5;
  value.runs = {&record, &record};
  value.best = true;
  Cell partial{.state = Cell::State::kPartial, .value = 20.25, .note = "PACS only"};
  partial.paper = 20;
  partial.runs = {&record};
  Cell missing;
  missing.paper = 70;
  const Cell none{.state = Cell::State::kNotApplicable};
  table.rows = {{{"PL", "All_layers"}, {value, partial}, true},
                {{"PL", "GALA"}, {missing, none}, false},
                {{"SHOT", "\"x\",y"},
                 {Cell{.state = Cell::State::kValue, .value = std::nan("")},
                  Cell{.state = Cell::State::kValue, .value = -1.5}},
                 true}};
  table.notes = {"One trial."};
  return {"sample_table", {table}};
}

TEST(Printers, Markdown) {
  EXPECT_EQ(to_markdown({sample()}), R"(### Sample &lt;1&gt;

Made up\_numbers. In brackets: the paper's numbers. Norm mode of the adapting runs: batch.

| TTA | Method | Set &amp; 1: A\|B ↑ | Set &amp; 1: Error ↓ |
| --- | --- | ---: | ---: |
| PL | All\_layers | **82.12** ±0.6 [83.50] | 20.2 *PACS only* [20.0] |
| PL | GALA | not run [70.00] | N/A |
| SHOT | "x",y | NaN | -1.5 |

- One trial.
)");
}

TEST(Printers, Latex) {
  EXPECT_EQ(to_latex({sample()}), R"(% \usepackage{booktabs}

\begin{table}
\centering
\begin{tabular}{llcc}
\toprule
& & \multicolumn{2}{c}{\textbf{Set \& 1}} \\
\cmidrule(lr){3-4}
\textbf{TTA} & \textbf{Method} & \textbf{A\textbar{}B} $\uparrow$ & \textbf{Error} $\downarrow$ \\
\midrule
PL & All\_layers & \textbf{82.12~($\pm 0.6$)} & 20.2~{\scriptsize PACS only} \\
 & GALA & \textit{not run} & N/A \\
\midrule
SHOT & {\char34}x{\char34},y & NaN & $-1.5$ \\
\bottomrule
\end{tabular}
\caption{Made up\_numbers. Norm mode: batch. One trial.}
\label{tab:sample-table}
\end{table}
)");
}

TEST(Printers, Csv) {
  EXPECT_EQ(
      to_csv({sample()}),
      "table,rule,norm,heads,column,state,value,deviation,low,high,samples,unit,best,paper,"
      "paper_deviation,difference,hyper,note,runs\r\n"
      "\"sample_table\",\"\",\"batch\",\"PL / All_layers\",\"Set & 1: A|B\",\"value\",82.125,0.64,"
      "81.5,83,3,\"%\",1,83.5,0.5,-1.375,\"\",\"\",\"0123abcd 0123abcd\"\r\n"
      "\"sample_table\",\"\",\"batch\",\"PL / All_layers\",\"Set & 1: "
      "Error\",\"partial\",20.25,,,,0,"
      "\"%\",0,20,,,\"\",\"PACS only\",\"0123abcd\"\r\n"
      "\"sample_table\",\"\",\"batch\",\"PL / GALA\",\"Set & 1: A|B\",\"not "
      "run\",,,,,0,\"%\",0,70,,,"
      "\"\",\"\",\"\"\r\n"
      "\"sample_table\",\"\",\"batch\",\"PL / GALA\",\"Set & 1: Error\",\"not applicable\",,,,,0,"
      "\"%\",0,,,,\"\",\"\",\"\"\r\n"
      "\"sample_table\",\"\",\"batch\",\"SHOT / \"\"x\"\",y\",\"Set & 1: "
      "A|B\",\"value\",,,,,0,\"%\",0,"
      ",,,\"\",\"\",\"\"\r\n"
      "\"sample_table\",\"\",\"batch\",\"SHOT / \"\"x\"\",y\",\"Set & 1: "
      "Error\",\"value\",-1.5,,,,0,"
      "\"%\",0,,,,\"\",\"\",\"\"\r\n");
}

TEST(Printers, JsonKeepsNumbersAndReasons) {
  const auto json = to_json({sample()});
  const auto& rows = json["tables"][0]["rows"];
  EXPECT_EQ(rows[0]["cells"][0]["value"].get<double>(), 82.125);
  EXPECT_EQ(rows[0]["cells"][0]["difference"].get<double>(), -1.375);
  EXPECT_EQ(rows[0]["cells"][1]["note"].get<std::string>(), "PACS only");
  EXPECT_FALSE(rows[0]["cells"][1].contains("difference"));
  EXPECT_EQ(rows[1]["cells"][0]["state"].get<std::string>(), "not run");
  EXPECT_FALSE(rows[1]["cells"][0].contains("value"));
  EXPECT_TRUE(rows[2]["cells"][0]["value"].is_null());
}

TEST(Printers, TablesThatWereNotRunAreOneLine) {
  TableSet set = sample();
  for (Row& row : set.variants[0].rows) row.cells = {Cell{}, Cell{}};
  EXPECT_EQ(to_markdown({set}), "### Sample &lt;1&gt;\n\nNot run.\n");
  EXPECT_EQ(to_latex({set}),
            "% \\usepackage{booktabs}\n\n% Sample \\textless{}1\\textgreater{}: not run\n");
}

TEST(Printers, TextIsCleanedOfWhatIsNoText) {
  EXPECT_EQ(clean_text("a\nb\tc"), "a b c");
  EXPECT_EQ(clean_text(std::string("a\0b", 3)), "a�b");
  EXPECT_EQ(clean_text("\xff\xc0\x80"), "���");
  EXPECT_EQ(clean_text("\u202eabc"), "�abc");
  EXPECT_EQ(clean_text("日本 é"), "日本 é");
  EXPECT_EQ(clean_text("\xed\xa0\x80"), "���");  // half a surrogate pair
  EXPECT_EQ(escape_html("<a href='x'>&\""), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;");
  EXPECT_EQ(escape_latex("50% of $x_1 \\ {~^} 日"),
            "50\\% of \\$x\\_1 \\textbackslash{} \\{\\textasciitilde{}\\textasciicircum{}\\} ?");
}

TEST(Table, MarksTheBestOfEachBlock) {
  Table table;
  table.heads = {"row"};
  table.columns = {{.name = "up"}, {.name = "down", .higher_is_better = false}};
  const auto row = [](double up, double down) {
    return Row{{"x"},
               {Cell{.state = Cell::State::kValue, .value = up},
                Cell{.state = Cell::State::kValue, .value = down}},
               false};
  };
  table.rows = {row(1, 1), row(3, 2), row(2, 3), row(9, 0)};
  table.rows[2].cells[1].state = Cell::State::kNotRun;
  mark_best(table, {0, 0, 0, 1});
  EXPECT_TRUE(table.rows[1].cells[0].best);
  EXPECT_TRUE(table.rows[2].cells[0].second);
  EXPECT_TRUE(table.rows[0].cells[1].best);
  EXPECT_FALSE(table.rows[3].cells[0].best);  // alone in its block
}

}  // namespace
}  // namespace gala::test
