#include <zlib.h>

#include <algorithm>
#include <fstream>

#include "gala/base/words.h"
#include "gala/data/array_dataset.h"
#include "gala/data/data_paths.h"
#include "gala/data/idx.h"
#include "gala/data/npy.h"
#include "support.h"

namespace gala {
namespace {

using test::fixture;
using test::message_of;
using test::open_at;
using test::read_text;
using test::TemporaryFolder;
using test::write_text;

/// `labels` then the three planes of a picture whose channel c at pixel i is (seed + i + 50 c) mod 256.
std::string cifar_record(const std::string& labels, int seed) {
  std::string record = labels;
  for (int c = 0; c < 3; ++c) {
    for (int i = 0; i < 1024; ++i) record += static_cast<char>(seed + i + 50 * c);
  }
  return record;
}

TEST(Cifar, ReadsTheOfficialFiles) {
  const TemporaryFolder folder;
  write_text(folder / "cifar-10-batches-bin/test_batch.bin",
             cifar_record("\x03", 7) + cifar_record("\x09", 100));
  const DataSource source = open_at("cifar10", folder.path());
  const Dataset& data = *source.domains.at(0).data;
  ASSERT_EQ(data.size(), 2);
  EXPECT_EQ(data.label(0), 3);
  EXPECT_EQ(data.label(1), 9);
  EXPECT_EQ(data.class_names().at(9), "truck");
  Image image;
  data.read(1, image);
  for (int i = 0; i < 1024; i += 37) {
    for (int c = 0; c < 3; ++c) {
      EXPECT_EQ(image.pixels[static_cast<std::size_t>(3 * i + c)],
                static_cast<std::uint8_t>(100 + i + 50 * c));
    }
  }
}

TEST(Cifar, JoinsTheFiveTrainingFiles) {
  const TemporaryFolder folder;
  for (int i = 1; i <= 5; ++i) {
    write_text(folder / fmt::format("data_batch_{}.bin", i),
               cifar_record(std::string(1, static_cast<char>(i)), i));
  }
  const DataSource source = open_at("cifar10:split=train", folder.path());
  ASSERT_EQ(source.domains[0].data->size(), 5);
  EXPECT_EQ(source.domains[0].data->label(4), 5);
}

TEST(Cifar, TakesTheFineLabelOfCifar100) {
  const TemporaryFolder folder;
  write_text(folder / "test.bin", cifar_record("\x05\x63", 0));
  const DataSource source = open_at("cifar100", folder.path());
  EXPECT_EQ(source.domains[0].data->label(0), 99);
  EXPECT_EQ(source.classes(), 100);
  EXPECT_EQ(source.class_names().at(23), "cloud");
  EXPECT_TRUE(std::is_sorted(source.class_names().begin(), source.class_names().end()));
}

TEST(Cifar, ReadsClassFolders) {
  const TemporaryFolder folder;
  for (int i = 0; i < 100; ++i) {
    write_text(folder / fmt::format("test/class{:02}/a.png", i), read_text(fixture("grey8.png")));
  }
  const DataSource source = open_at("cifar100", folder.path());
  const Dataset& data = *source.domains[0].data;
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < data.size(); ++i) {
    labels.push_back(data.label(i));
    EXPECT_CONTAINS(data.item_name(i), fmt::format("class{:02}", labels.back()));
  }
  EXPECT_FALSE(std::is_sorted(labels.begin(), labels.end())) << "batches of one class";
  std::sort(labels.begin(), labels.end());
  for (std::int64_t i = 0; i < 100; ++i) EXPECT_EQ(labels[static_cast<std::size_t>(i)], i);
  EXPECT_CONTAINS(message_of<ConfigError>([&] { open_at("cifar10", folder.path()); }),
                  "100 class folders, expected 10");
}

TEST(Cifar, ReadsOnePngABatch) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(fixture("batch.png"), folder / "test_batch.png");
  write_text(folder / "test_lables.json", "[4, 0, 9]");
  const DataSource source = open_at("cifar10", folder.path());
  const Dataset& data = *source.domains[0].data;
  ASSERT_EQ(data.size(), 3);
  EXPECT_EQ(data.label(2), 9);
  const NpyArray expected = read_npy(fixture("batch.png.npy"));
  Image image;
  for (std::int64_t i = 0; i < 3; ++i) {
    data.read(i, image);
    EXPECT_EQ(image.height, 32);
    EXPECT_TRUE(std::equal(image.pixels.begin(), image.pixels.end(),
                           reinterpret_cast<const std::uint8_t*>(expected.data.data()) + i * 3072));
  }
  write_text(folder / "test_lables.json", "[4, 0]");
  EXPECT_CONTAINS(message_of<ConfigError>([&] { open_at("cifar10", folder.path()); }),
                  "2 labels for 3 pictures");
  write_text(folder / "test_lables.json", "[4, 0, 10]");
  EXPECT_CONTAINS(message_of<ConfigError>([&] { open_at("cifar10", folder.path()); }),
                  "label 10 is out of range");
  write_text(folder / "test_lables.json", "{");
  EXPECT_CONTAINS(message_of<FormatError>([&] { open_at("cifar10", folder.path()); }),
                  "expected a list");
}

// The first labels of the test set, as its readers publish them.
TEST(Cifar, ReadsTheSampleThatIsShipped) {
  const DataSource source = open_at(
      "cifar10", std::filesystem::path(GALA_TEST_SOURCE_DIR) / "assets/cifar10_test_2000.png");
  const Dataset& data = *source.domains[0].data;
  ASSERT_EQ(data.size(), 2000);
  const std::vector<std::int64_t> first = {3, 8, 8, 0, 6, 6, 1, 6, 3, 1};
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(data.label(static_cast<std::int64_t>(i)), first[i]);
  }
}

TEST(Cifar, SaysWhatItLookedFor) {
  const TemporaryFolder folder;
  EXPECT_CONTAINS(message_of<ConfigError>([&] { open_at("cifar10", folder.path()); }),
                  "found neither test_batch.bin nor test_batch.png nor the folder test/");
  write_text(folder / "test_batch.bin", std::string(3074, 'x'));
  EXPECT_CONTAINS(message_of<FormatError>([&] { open_at("cifar10", folder.path()); }),
                  "3074 bytes are not a whole number of records of 3073");
}

const std::string kIdxImages("\0\0\x08\x03\0\0\0\2\0\0\0\1\0\0\0\3abcdef", 22);
const std::string kIdxLabels("\0\0\x08\x01\0\0\0\2\7\1", 10);

void write_gzip(const std::filesystem::path& path, const std::string& text) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
}

TEST(Idx, IsReadPlainAndPacked) {
  const TemporaryFolder plain, packed;
  write_text(plain / "t10k-images-idx3-ubyte", kIdxImages);
  write_text(plain / "t10k-labels.idx1-ubyte", kIdxLabels);
  write_gzip(packed / "t10k-images-idx3-ubyte.gz", kIdxImages);
  write_gzip(packed / "t10k-labels-idx1-ubyte.gz", kIdxLabels);
  for (const auto* folder : {&plain, &packed}) {
    const DataSource source = open_at("fashion_mnist", folder->path());
    const Dataset& data = *source.domains[0].data;
    ASSERT_EQ(data.size(), 2);
    EXPECT_EQ(data.label(0), 7);
    EXPECT_EQ(data.class_names().at(7), "Sneaker");
    Image image;
    data.read(1, image);
    EXPECT_EQ(image.width, 3);
    EXPECT_EQ(image.pixels,
              (std::vector<std::uint8_t>{'d', 'd', 'd', 'e', 'e', 'e', 'f', 'f', 'f'}));
  }
}

TEST(Idx, RefusesDamage) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& text) {
    write_text(folder / "x", text);
    return message_of<FormatError>([&] { read_idx(folder / "x"); });
  };
  EXPECT_EQ(refusal(kIdxImages), "no error");
  EXPECT_CONTAINS(refusal(""), "ends early");
  EXPECT_CONTAINS(refusal(kIdxImages.substr(0, 20)), "ends early");
  EXPECT_CONTAINS(refusal(kIdxImages + "x"), "more than its shape needs");
  EXPECT_CONTAINS(refusal(std::string("\0\0\x0d\x01\0\0\0\1", 8)), "not an IDX file");
  EXPECT_CONTAINS(
      refusal(std::string("\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16)),
      "above 2^30");
  EXPECT_CONTAINS(refusal(std::string("\0\0\x08\x01\x3f\xff\xff\xff", 8)), "ends early");
  EXPECT_CONTAINS(message_of<ConfigError>([&] { open_at("mnist", folder.path()); }),
                  "has no t10k-images-idx3-ubyte");
  write_text(folder / "t10k-images-idx3-ubyte", kIdxImages);
  write_text(folder / "t10k-labels-idx1-ubyte", std::string("\0\0\x08\x01\0\0\0\1\7", 9));
  EXPECT_CONTAINS(message_of<ConfigError>([&] { open_at("mnist", folder.path()); }),
                  "1 labels for 2 pictures");
}

TEST(TinyImageNet, TakesValFromItsAnnotations) {
  const TemporaryFolder folder;
  const std::string png = read_text(fixture("grey8.png"));
  write_text(folder / "wnids.txt", "n2\nn1\nn3\n");
  write_text(folder / "val/val_annotations.txt",
             "val_0.JPEG\tn3\t0\t0\t1\t1\nval_1.JPEG\tn1\t0\t0\t1\t1\n");
  write_text(folder / "val/images/val_0.JPEG", png);
  write_text(folder / "val/images/val_1.JPEG", png);
  write_text(folder / "train/n1/images/a.JPEG", png);
  write_text(folder / "train/n2/images/a.JPEG", png);
  const DataSource val = open_at("tiny_imagenet", folder.path());
  ASSERT_EQ(val.domains[0].data->size(), 2);
  EXPECT_EQ(val.domains[0].data->label(0), 2);
  EXPECT_EQ(val.domains[0].data->label(1), 0);
  EXPECT_EQ(val.domains[0].data->item_name(1), (folder / "val/images/val_1.JPEG").string());
  const DataSource train = open_at("tiny_imagenet:split=train", folder.path());
  EXPECT_EQ(train.domains[0].data->label(1), 1);
  write_text(folder / "val/val_annotations.txt", "val_0.JPEG\tn9\n");
  EXPECT_CONTAINS(message_of<FormatError>([&] { open_at("tiny_imagenet", folder.path()); }),
                  "line 1: unknown class code \"n9\"");
}

TEST(DataPaths, AreAskedOfTheSetAndTheOption) {
  const auto respelled = [](const char* spec) {
    return with_canonical_paths(Spec::parse(spec)).to_string();
  };
  const std::string here = std::filesystem::canonical(".").string() + "/";
  EXPECT_EQ(respelled("folder:path=p,labels=none"), "folder:path=" + here + "p,labels=none");
  EXPECT_EQ(respelled("folder:path=p,classes=c"),
            "folder:path=" + here + "p,classes=" + here + "c");
  EXPECT_EQ(respelled("arrays:images=i,labels=none"),
            "arrays:images=" + here + "i,labels=" + here + "none");
  EXPECT_EQ(respelled("cifar10c:path=p,severity=5,frost=f"),
            "cifar10c:path=" + here + "p,severity=5,frost=" + here + "f");
  EXPECT_EQ(respelled("unknown:path=p"), "unknown:path=p");
}

TEST(DataPaths, AreOptionsThatTheSetHas) {
  for (const auto& entry : data_registry()) {
    const auto options = entry.options();
    EXPECT_FALSE(data_paths(entry.name).empty()) << entry.name;
    for (const std::string_view path : data_paths(entry.name)) {
      const auto is_it = [&](const OptionInfo& option) {
        return option.name == path && option.type == "text";
      };
      EXPECT_TRUE(std::any_of(options.begin(), options.end(), is_it)) << entry.name << " " << path;
    }
  }
}

TEST(DataPaths, ThatLeadToThemselvesAreNamed) {
  const TemporaryFolder folder;
  const std::string loop = (folder / "loop").string();
  std::filesystem::create_symlink("loop", loop);
  const std::vector<std::int64_t> shape = {1, 1, 1, 3};
  write_npy(folder / "x.npy", "|u1", shape, [](std::ostream& out) { out << "rgb"; });
  std::vector<Spec> specs = {
      {"arrays", {{"images", (folder / "x.npy").string()}, {"labels", loop}}},
      {"cifar10c", {{"path", loop}, {"generate", "yes"}, {"corruption", "fog"}}}};
  for (const auto& entry : data_registry()) {
    specs.push_back({std::string(entry.name), {}});
    specs.back().set(data_paths(entry.name).front(), loop);
  }
  for (const Spec& spec : specs) {
    try {
      open_data(spec);
      ADD_FAILURE() << spec.to_string() << " was opened";
    } catch (const std::exception& problem) {
      EXPECT_TRUE(is_users_mistake(problem)) << problem.what();
      EXPECT_CONTAINS(in_words(problem), "loop");
      EXPECT_EQ(in_words(problem).find("filesystem error"), std::string::npos) << problem.what();
    }
  }
}

}  // namespace
}  // namespace gala
