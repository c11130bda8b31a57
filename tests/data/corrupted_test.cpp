#include "gala/data/corrupted.h"

#include "gala/data/corruption/corruption_writer.h"
#include "gala/data/npy.h"
#include "support.h"

namespace gala {
namespace {

using test::message_of;
using test::open_at;
using test::TemporaryFolder;

std::filesystem::path sample() {
  return std::filesystem::path(GALA_TEST_SOURCE_DIR) / "assets/cifar10_test_2000.png";
}

/// `rows` pictures whose every byte is the row number, and labels that repeat after `period`.
void write_arrays(const TemporaryFolder& folder, const std::string& name, std::int64_t rows,
                  std::int64_t period) {
  write_npy(folder / (name + ".npy"), "|u1", std::vector<std::int64_t>{rows, 32, 32, 3},
            [&](std::ostream& out) {
              for (std::int64_t i = 0; i < rows; ++i) {
                out << std::string(3072, static_cast<char>(i));
              }
            });
  if (period == 0) return;
  write_npy(folder / "labels.npy", "|u1", std::vector<std::int64_t>{rows}, [&](std::ostream& out) {
    for (std::int64_t i = 0; i < rows; ++i) out << static_cast<char>(i % period % 10);
  });
}

int first_byte(const Domain& domain, std::int64_t index) {
  Image image;
  domain.data->read(index, image);
  return image.pixels.at(0);
}

TEST(CorruptedCifar, FindsASeverityInTheRowsOfFive) {
  const TemporaryFolder folder;
  write_arrays(folder, "fog", 60, 12);
  const DataSource five = open_at("cifar10c:corruption=fog,severity=5", folder.path());
  ASSERT_EQ(five.domains.size(), 1u);
  EXPECT_EQ(five.domains[0].name, "fog");
  EXPECT_EQ(five.domains[0].data->size(), 12);
  EXPECT_EQ(first_byte(five.domains[0], 0), 48);
  EXPECT_EQ(five.domains[0].data->label(11), 1);
  const DataSource all = open_at("cifar10c:corruption=fog,severity=all", folder.path());
  ASSERT_EQ(all.domains.size(), 5u);
  EXPECT_EQ(all.domains[2].name, "fog_3");
  EXPECT_EQ(all.domains[2].family, "fog");
  EXPECT_EQ(all.domains[2].severity, 3);
  EXPECT_EQ(first_byte(all.domains[2], 1), 25);
}

TEST(CorruptedCifar, TakesAnArrayOfOneSeverityWhole) {
  const TemporaryFolder folder;
  write_arrays(folder, "snow", 20, 7);
  const DataSource one = open_at("cifar10c:corruption=snow,severity=3", folder.path());
  EXPECT_EQ(one.domains[0].data->size(), 20);
  EXPECT_CONTAINS(message_of<ConfigError>(
                      [&] { open_at("cifar10c:corruption=snow,severity=all", folder.path()); }),
                  "holds one severity, 5 are asked for");
  const DataSource five = open_at("cifar10c:corruption=snow,severity=2,layout=five", folder.path());
  EXPECT_EQ(five.domains[0].data->size(), 4);
  EXPECT_EQ(first_byte(five.domains[0], 0), 4);
}

TEST(CorruptedCifar, NeedsToBeToldWithoutLabels) {
  const TemporaryFolder folder;
  write_arrays(folder, "snow", 20, 0);
  EXPECT_CONTAINS(
      message_of<ConfigError>([&] { open_at("cifar10c:corruption=snow", folder.path()); }),
      "layout=one or layout=five");
  EXPECT_EQ(open_at("cifar10c:corruption=snow,layout=one", folder.path()).domains[0].data->label(0),
            -1);
}

TEST(CorruptedCifar, NamesWhatIsWrong) {
  const TemporaryFolder folder;
  write_arrays(folder, "fog", 20, 4);
  const auto refusal = [&](const std::string& spec) {
    return message_of<ConfigError>([&] { open_at(spec, folder.path()); });
  };
  EXPECT_CONTAINS(refusal("cifar10c:corruption=smog"), "smog");
  EXPECT_CONTAINS(refusal("cifar10c:corruption=smog"), "fog");
  EXPECT_CONTAINS(refusal("cifar10c:corruption=fog,severity=6"), "severity cannot be \"6\"");
  EXPECT_CONTAINS(refusal("cifar10c:corruption=fog,severity=0"), "severity cannot be \"0\"");
  EXPECT_CONTAINS(refusal("cifar10c:corruption=snow"), "snow.npy: is missing");
  write_arrays(folder, "snow", 15, 0);
  EXPECT_CONTAINS(refusal("cifar10c:corruption=\"fog,snow\""), "20 labels for 15 pictures");
}

TEST(CorruptedCifar, KnowsTheGroups) {
  EXPECT_EQ(parse_corruptions("all").size(), 15u);
  EXPECT_EQ(parse_corruptions("all").front(), Corruption::kGaussianNoise);
  EXPECT_EQ(parse_corruptions("all").back(), Corruption::kJpegCompression);
  EXPECT_EQ(parse_corruptions("extra").size(), 4u);
  EXPECT_EQ(parse_corruptions("fog, snow"),
            (std::vector<Corruption>{Corruption::kFog, Corruption::kSnow}));
  EXPECT_EQ(parse_severities("5,1"), (std::vector<int>{5, 1}));
}

TEST(CorruptedCifar, MadeOnTheFlyEqualsWhatIsWritten) {
  const TemporaryFolder folder;
  const DataSource made = open_at(
      "cifar10c:generate=yes,corruption=\"shot_noise,frost\",severity=\"2,5\",seed=7", sample());
  ASSERT_EQ(made.domains.size(), 4u);
  EXPECT_EQ(made.domains[1].name, "shot_noise_5");
  const DataSource clean = open_at("cifar10", sample());
  std::vector<std::int64_t> few = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const Subset small(clean.domains[0].data, few);
  CorruptionWriterOptions options;
  options.seed = 7;
  write_labels(folder / "labels.npy", small, 5);
  for (Corruption corruption : {Corruption::kShotNoise, Corruption::kFrost}) {
    write_corrupted(folder / fmt::format("{}.npy", corruption_name(corruption)), small, corruption,
                    options);
  }
  const DataSource written =
      open_at("cifar10c:corruption=\"shot_noise,frost\",severity=\"2,5\"", folder.path());
  Image a, b;
  for (std::size_t domain = 0; domain < 4; ++domain) {
    ASSERT_EQ(written.domains[domain].data->size(), 10);
    for (std::int64_t i = 0; i < 10; ++i) {
      made.domains[domain].data->read(i, a);
      written.domains[domain].data->read(i, b);
      EXPECT_EQ(a.pixels, b.pixels) << made.domains[domain].name << " " << i;
      EXPECT_EQ(made.domains[domain].data->label(i), written.domains[domain].data->label(i));
    }
  }
}

TEST(CorruptedCifar, HashTellsSeedAndSeverityApart) {
  const auto hash = [](const std::string& spec) {
    const DataSource source = open_at("cifar10c:generate=yes,corruption=fog," + spec, sample());
    Sha256 sum;
    source.domains[0].data->hash_item(0, sum);
    return sum.hex();
  };
  EXPECT_EQ(hash("severity=1"), hash("severity=1"));
  EXPECT_NE(hash("severity=1"), hash("severity=2"));
  EXPECT_NE(hash("severity=1"), hash("severity=1,seed=1"));
}

}  // namespace
}  // namespace gala
