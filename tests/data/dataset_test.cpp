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
  write_array<float>(folder / "y.npy", "<f4", {2}, {0, 1});
  EXPECT_CONTAINS(refusal(FormatError("", ""), true), "expected integers");
  write_array<std::uint8_t>(folder / "x.npy", "|u1", {1, 1, 1, 4}, {1, 2, 3, 4});
  EXPECT_CONTAINS(refusal(FormatError("", ""), false), "found |u1 of shape (1, 1, 1, 4)");
  write_array<std::uint8_t>(folder / "x.npy", "|u1", {0, 2, 2, 3}, {});
  EXPECT_CONTAINS(refusal(ConfigError(""), false), "holds no pictures");
  EXPECT_CONTAINS(message_of<ConfigError>([] { open_data(Spec::parse("array")); }),
                  "unknown data set \"array\" (did you mean \"arrays\"?");
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
