#include "gala/data/dataset.h"

#include "gala/data/array_dataset.h"
#include "gala/data/npy.h"
#include "support.h"

namespace gala {
namespace {

using test::fixture;
using test::message_of;
using test::read_text;
using test::TemporaryFolder;
using test::write_text;

template <class T>
void write_array(const std::filesystem::path& path, std::string_view type,
                 const std::vector<std::int64_t>& shape, const std::vector<T>& values) {
  write_npy(path, type, shape, [&](std::ostream& out) {
    out.write(reinterpret_cast<const char*>(values.data()),
              static_cast<std::streamsize>(values.size() * sizeof(T)));
  });
}

DataSource open_arrays_at(const TemporaryFolder& folder, bool labels = true) {
  Spec spec{"arrays", {{"images", (folder / "x.npy").string()}}};
  if (labels) spec.set("labels", (folder / "y.npy").string());
  return open_data(spec);
}

TEST(Arrays, GiveRgbAsItLies) {
  const TemporaryFolder folder;
  std::vector<std::uint8_t> pixels(2 * 2 * 3 * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i);
  write_array(folder / "x.npy", "|u1", {2, 2, 3, 3}, pixels);
  write_array<std::int64_t>(folder / "y.npy", "<i8", {2}, {4, 1});
  const DataSource source = open_arrays_at(folder);
  const Dataset& data = *source.domains.at(0).data;
  EXPECT_EQ(data.size(), 2);
  EXPECT_EQ(data.label(0), 4);
  EXPECT_EQ(source.classes(), 5);
  Image image;
  data.read(1, image);
  EXPECT_EQ(image.height, 2);
  EXPECT_EQ(image.width, 3);
  EXPECT_EQ(image.pixels, std::vector<std::uint8_t>(pixels.begin() + 18, pixels.end()));
  EXPECT_EQ(data.item_name(1), (folder / "x.npy").string() + "[1]");
}

TEST(Arrays, RepeatGreyToThreeChannels) {
  const TemporaryFolder folder;
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{1, 1, 2, 1}, std::vector<std::int64_t>{1, 1, 2}}) {
    write_array<std::uint8_t>(folder / "x.npy", "|u1", shape, {7, 9});
    Image image;
    const DataSource source = open_arrays_at(folder, false);
    source.domains[0].data->read(0, image);
    EXPECT_EQ(image.pixels, (std::vector<std::uint8_t>{7, 7, 7, 9, 9, 9}));
    EXPECT_EQ(source.domains[0].data->label(0), -1);
    EXPECT_FALSE(source.domains[0].data->labelled());
  }
}

TEST(Arrays, GiveFloatPlanesAsTheyAre) {
  const TemporaryFolder folder;
  write_array<float>(folder / "x.npy", "<f4", {2, 3, 1, 2},
                     {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  Image image;
  const DataSource source = open_arrays_at(folder, false);
  source.domains[0].data->read(1, image);
  EXPECT_EQ(image.planes, (std::vector<float>{7, 8, 9, 10, 11, 12}));
  EXPECT_TRUE(image.pixels.empty());
  EXPECT_EQ(source.domains[0].data->plane_size(), (std::array<std::int64_t, 2>{1, 2}));
}

TEST(Arrays, RefuseWhatDoesNotFit) {
  const TemporaryFolder folder;
  const auto refusal = [&](auto error, bool labels) {
    return message_of<decltype(error)>([&] { open_arrays_at(folder, labels); });
  };
  EXPECT_CONTAINS(message_of<ConfigError>([] { open_data(Spec::parse("arrays")); }),
                  "needs images=PATH");
  write_array<std::uint8_t>(folder / "x.npy", "|u1", {2, 1, 1, 3}, {1, 2, 3, 4, 5, 6});
  write_array<std::int64_t>(folder / "y.npy", "<i8", {3}, {0, 1, 2});
  EXPECT_CONTAINS(refusal(ConfigError(""), true), "y.npy: 3 labels for 2 pictures");
  write_array<std::int64_t>(folder / "y.npy", "<i8", {2}, {0, -1});
  EXPECT_CONTAINS(refusal(ConfigError(""), true), "label -1 at row 1 is out of range");
  write_array<std::int64_t>(folder / "y.npy", "<i8", {2}, {2147483648, 0});
  EXPECT_CONTAINS(refusal(ConfigError(""), true), "label 2147483648 at row 0");
  write_array<std::uint64_t>(folder / "y.npy", "<u8", {2}, {~0ull, 0});
  EXPECT_CONTAINS(refusal(FormatError("", ""), true), "too large");
  write_array<float>(folder / "y.npy", "<f4", {2}, {0, 0.5});
  EXPECT_CONTAINS(refusal(FormatError("", ""), true), "expected integers, found 0.5");
  write_array<std::uint8_t>(folder / "x.npy", "|u1", {1, 1, 1, 4}, {1, 2, 3, 4});
  EXPECT_CONTAINS(refusal(FormatError("", ""), false), "found |u1 of shape (1, 1, 1, 4)");
  write_array<std::uint8_t>(folder / "x.npy", "|u1", {0, 2, 2, 3}, {});
  EXPECT_CONTAINS(refusal(ConfigError(""), false), "holds no pictures");
  EXPECT_CONTAINS(message_of<ConfigError>([] { open_data(Spec::parse("array")); }),
                  "unknown data set \"array\" (did you mean \"arrays\"?");
}

TEST(Arrays, RefuseWhatMayBeOnePictureOrMany) {
  const TemporaryFolder folder;
  const auto said = [&](const std::vector<std::int64_t>& shape, std::string_view type = "|u1") {
    std::size_t count = type == "<i8" ? 8 : type == "<f4" ? 4 : 1;
    for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
    write_array(folder / "x.npy", type, shape, std::vector<std::uint8_t>(count));
    return message_of<FormatError>([&] { open_arrays_at(folder, false); });
  };
  EXPECT_CONTAINS(said({32, 32, 3}),
                  "shape (32, 32, 3) may be one picture or 32 grey ones of 3 x 32");
  EXPECT_CONTAINS(said({32, 32, 3}), "save one picture with shape (1, H, W, 3) (a[None])");
  EXPECT_CONTAINS(said({32, 32, 1}), "shape (1, H, W, 1) (a[None])");
  EXPECT_CONTAINS(said({3, 32, 32}), "(a.transpose(1, 2, 0)[None])");
  EXPECT_CONTAINS(said({3, 32, 32}), "grey ones with shape (N, H, W, 1) (a[..., None])");
  EXPECT_EQ(said({5, 32, 32}), "no error");
  EXPECT_EQ(said({1, 32, 32, 3}), "no error");
  EXPECT_CONTAINS(said({2, 3, 32, 32}), "a.transpose(0, 2, 3, 1) makes it so");
  EXPECT_CONTAINS(said({2, 32, 32, 3}, "<f4"), "a.transpose(0, 3, 1, 2) makes it so");
  EXPECT_CONTAINS(said({3, 32, 32}, "<f4"), "a[None] makes one picture of it");
  EXPECT_CONTAINS(said({2, 32, 32, 3}, "<i8"), ".astype(np.uint8)");
}

TEST(Arrays, ThatBecomeShorterAreAnErrorOfTheirPicture) {
  const TemporaryFolder folder;
  write_array(folder / "x.npy", "|u1", {40, 64, 64, 3},
              std::vector<std::uint8_t>(40 * 64 * 64 * 3, 9));
  const DataSource source = open_arrays_at(folder, false);
  const Dataset& data = *source.domains[0].data;
  Image image;
  data.read(39, image);
  std::filesystem::resize_file(folder / "x.npy", 64 * 64 * 3 * 5);
  data.read(3, image);
  EXPECT_EQ(image.pixels, std::vector<std::uint8_t>(64 * 64 * 3, 9));
  EXPECT_CONTAINS(message_of<FormatError>([&] { data.read(39, image); }),
                  "x.npy: the file became shorter while it was read");
  EXPECT_CONTAINS(message_of<FormatError>([&] { content_hash(source); }), "became shorter");
}

/// A folder tree of the same small picture.
void plant(const TemporaryFolder& folder, const std::vector<std::string>& files) {
  const std::string png = read_text(fixture("grey8.png"));
  for (const std::string& file : files) write_text(folder / file, png);
}

DataSource open_folder_at(const TemporaryFolder& folder) {
  return open_data(Spec{"folder", {{"path", folder.path().string()}}});
}

TEST(Folder, SortsClassesAndFilesByTheirBytes) {
  const TemporaryFolder folder;
  plant(folder, {"b/2.png", "b/10.PNG", "Z/x.jpeg", "a/z.JPG", "a/A.png", "b/.hidden/y.png",
                 "b/c/1.png", "b/readme.txt", ".git/x.png", "a/noext"});
  const DataSource source = open_folder_at(folder);
  const Dataset& data = *source.domains.at(0).data;
  EXPECT_EQ(data.class_names(), (std::vector<std::string>{"Z", "a", "b"}));
  std::vector<std::string> found;
  for (std::int64_t i = 0; i < data.size(); ++i) {
    found.push_back(
        fmt::format("{} {}", std::filesystem::relative(data.item_name(i), folder.path()).string(),
                    data.label(i)));
  }
  EXPECT_EQ(found, (std::vector<std::string>{"Z/x.jpeg 0", "a/A.png 1", "a/z.JPG 1", "b/10.PNG 2",
                                             "b/2.png 2", "b/.hidden/y.png 2", "b/c/1.png 2"}));
  Image image;
  data.read(0, image);  // told by content, not by name
  EXPECT_EQ(image.height, 13);
}

TEST(Folder, WithoutClassFoldersIsUnlabelled) {
  const TemporaryFolder folder;
  plant(folder, {"b.png", "a.png"});
  const DataSource source = open_folder_at(folder);
  EXPECT_EQ(source.domains[0].data->size(), 2);
  EXPECT_EQ(source.domains[0].data->label(0), -1);
  EXPECT_EQ(source.classes(), 0);
  EXPECT_EQ(source.domains[0].data->item_name(0), (folder / "a.png").string());
}

TEST(Folder, RefusesClassesThatDifferOnlyInCase) {
  const TemporaryFolder folder;
  plant(folder, {"Dog/1.png", "dog/1.png"});
  EXPECT_CONTAINS(message_of<ConfigError>([&] { open_folder_at(folder); }),
                  "the classes \"Dog\" and \"dog\" differ only in case");
}

TEST(Folder, RefusesNothingAndConfusion) {
  const TemporaryFolder empty, mixed;
  EXPECT_CONTAINS(message_of<ConfigError>([&] { open_folder_at(empty); }), "holds no pictures");
  plant(mixed, {"a.png", "dog/1.png"});
  EXPECT_CONTAINS(message_of<ConfigError>([&] { open_folder_at(mixed); }), "beside class folders");
  EXPECT_CONTAINS(message_of<ConfigError>([&] { open_data(Spec::parse("folder:path=/nowhere")); }),
                  "/nowhere: cannot be listed");
}

DataSource open_folder_with(const TemporaryFolder& folder, const std::string& labels,
                            const std::string& classes = "",
                            const std::vector<std::string>& known = {}) {
  Spec spec{"folder", {{"path", folder.path().string()}}};
  if (!labels.empty()) spec.set("labels", labels);
  if (!classes.empty()) spec.set("classes", classes);
  return open_data(spec, known);
}

std::vector<std::int64_t> labels_of(const DataSource& source) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < source.domains[0].data->size(); ++i) {
    labels.push_back(source.domains[0].data->label(i));
  }
  return labels;
}

using Labels = std::vector<std::int64_t>;

TEST(Folder, WithoutAPictureIsNoClass) {
  const TemporaryFolder folder;
  plant(folder, {"cat/1.png", "dog/1.png"});
  std::filesystem::create_directories(folder / "__pycache__/deeper");
  write_text(folder / "notes/readme.txt", "no picture");
  const DataSource source = open_folder_at(folder);
  EXPECT_EQ(source.class_names(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(labels_of(source), (Labels{0, 1}));
  ASSERT_EQ(source.notes().size(), 1u);
  EXPECT_CONTAINS(source.notes()[0], "since they hold no picture: __pycache__, notes");
  // Nor does it make classes of pictures that have none.
  const TemporaryFolder flat;
  plant(flat, {"a.png", "b.png"});
  std::filesystem::create_directories(flat / "__pycache__");
  EXPECT_EQ(labels_of(open_folder_at(flat)), (Labels{-1, -1}));
}

TEST(Folder, TakesEveryPictureWithoutLabels) {
  const TemporaryFolder folder;
  plant(folder, {"top.png", "cat/2.png", "cat/inner/1.png", "dog/1.png", ".trash/1.png"});
  const DataSource source = open_folder_with(folder, "none");
  EXPECT_EQ(source.classes(), 0);
  EXPECT_EQ(labels_of(source), (Labels{-1, -1, -1, -1}));
  EXPECT_EQ(source.domains[0].data->item_name(0), (folder / "top.png").string());
  EXPECT_EQ(source.domains[0].data->item_name(2), (folder / "cat/inner/1.png").string());
  EXPECT_TRUE(source.domains[0].data->in_files());
  EXPECT_CONTAINS(message_of<ConfigError>([&] { open_folder_with(folder, "none", "c.txt"); }),
                  "no use with labels=none");
  EXPECT_CONTAINS(message_of<ConfigError>([&] { open_folder_with(folder, "names", "c.txt"); }),
                  "classes=c.txt has no use with labels=names");
}

TEST(Folder, FindsItsClassesByTheNamesOfTheWeights) {
  const TemporaryFolder folder;
  plant(folder, {"cat/1.png", "dog/1.png", "dog/2.png"});
  const std::vector<std::string> known = {"bird", "dog", "horse", "cat"};
  const DataSource source = open_folder_with(folder, "names", "", known);
  EXPECT_EQ(labels_of(source), (Labels{3, 1, 1}));
  EXPECT_EQ(source.classes(), 4);
  EXPECT_EQ(source.class_names(), known);
  const std::string unknown = message_of<ConfigError>([&] {
    open_folder_with(folder, "names", "", {"bird", "cats"});
  });
  EXPECT_CONTAINS(unknown,
                  "2 of 2 class folders are not among the 2 classes of the weights: cat, dog");
  EXPECT_CONTAINS(unknown, "is \"cats\" meant?");
  EXPECT_CONTAINS(message_of<ConfigError>([&] { open_folder_with(folder, "names"); }),
                  "needs weights that name their classes");
}

TEST(Folder, FindsItsClassesInAFile) {
  const TemporaryFolder folder, files;
  plant(folder, {"cat/1.png", "n02/1.png"});
  const auto open = [&](const std::string& content) {
    write_text(files / "classes", content);
    return open_folder_with(folder, "", (files / "classes").string());
  };
  for (
      const char* content :
      {"bird\nn02\r\nhorse\ncat\n", R"(["bird", "n02", "horse", "cat"])",
       R"({"0": ["n01", "bird"], "1": ["n02", "dog"], "2": ["n03", "horse"], "3": ["n04", "cat"]})",
       R"({"0": "bird", "1": "n02", "2": "horse", "3": "cat"})"}) {
    const DataSource source = open(content);
    EXPECT_EQ(labels_of(source), (Labels{3, 1})) << content;
    EXPECT_EQ(source.class_names().size(), 4u) << content;
    EXPECT_EQ(source.classes(), 4) << content;
  }
  // A map of a few folders leaves the other classes without a name.
  const DataSource few = open(R"({"cat": 281, "n02": 207})");
  EXPECT_EQ(labels_of(few), (Labels{281, 207}));
  EXPECT_EQ(few.classes(), 282);
  EXPECT_TRUE(few.class_names().empty());
  const auto refused = [&](const std::string& content) {
    return message_of<Error>([&] { open(content); });
  };
  EXPECT_CONTAINS(refused("bird\ncat\n"), "1 of 2 class folders are not among the 2 classes of");
  EXPECT_CONTAINS(refused(R"({"cat": 1, "n02": 1})"), "cat and n02 are both class 1");
  EXPECT_CONTAINS(refused(R"({"cat": -1, "n02": 1})"), "cannot have the number -1");
  EXPECT_CONTAINS(refused("[1, 2]"), "class 0 is not a name");
  EXPECT_CONTAINS(refused("{\"cat\": "), "is not JSON");
  EXPECT_CONTAINS(refused(""), "names no classes");
  EXPECT_CONTAINS(refused("cat\n\nn02\n"), "class 1 has an empty name");
}

TEST(Folder, IsCalledAsBeforeWhereNothingNewIsAsked) {
  const TemporaryFolder folder;
  plant(folder, {"cat/1.png"});
  EXPECT_EQ(open_folder_at(folder).spec.options.size(), 1u);
  const Spec spec = open_folder_with(folder, "none").spec;
  ASSERT_NE(spec.find("labels"), nullptr);
  EXPECT_EQ(*spec.find("labels"), "none");
}

TEST(Folder, StepsOverALinkThatLeadsToItself) {
  const TemporaryFolder folder;
  plant(folder, {"cat/1.png", "dog/1.png"});
  std::filesystem::create_symlink("loop", folder / "loop");
  std::filesystem::create_symlink("loop", folder / "cat/loop");
  EXPECT_EQ(labels_of(open_folder_at(folder)), (Labels{0, 1}));
}

TEST(ContentHash, ChangesWithBytesLabelsAndNamesButNotWithThePlace) {
  const TemporaryFolder a, b;
  plant(a, {"x/1.png", "y/2.png"});
  plant(b, {"x/1.png", "y/2.png"});
  const std::string first = content_hash(open_folder_at(a));
  EXPECT_EQ(content_hash(open_folder_at(b)), first);
  write_text(b / "y/2.png", read_text(fixture("grey1.png")));
  EXPECT_NE(content_hash(open_folder_at(b)), first);
  plant(b, {"y/2.png"});
  EXPECT_EQ(content_hash(open_folder_at(b)), first);
  std::filesystem::rename(b / "y/2.png", b / "y/3.png");
  EXPECT_NE(content_hash(open_folder_at(b)), first);
}

TEST(Registry, ListsEveryDataSetWithItsOptions) {
  const auto infos = describe_registry(data_registry());
  ASSERT_GE(infos.size(), 2u);
  EXPECT_EQ(infos[0].name, "arrays");
  EXPECT_EQ(infos[0].options.at(0).name, "images");
}

}  // namespace
}  // namespace gala
