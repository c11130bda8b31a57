#include "gala/data/npy.h"

#include <cstring>
#include <random>

#include "support.h"

namespace gala {
namespace {

using test::message_of;
using test::TemporaryFolder;
using test::write_text;

std::string with_header(const std::string& header, const std::string& data, int version = 1) {
  std::string text = "\x93NUMPY";
  text += static_cast<char>(version);
  text += '\0';
  text += static_cast<char>(header.size() & 255);
  text += static_cast<char>(header.size() >> 8);
  if (version > 1) text += std::string(2, '\0');
  return text + header + data;
}

std::string refusal(const std::string& content) {
  const TemporaryFolder folder;
  write_text(folder / "a.npy", content);
  return message_of<FormatError>([&] { read_npy(folder / "a.npy"); });
}

TEST(Npy, ReadsAllThreeVersions) {
  const TemporaryFolder folder;
  for (int version : {1, 2, 3}) {
    write_text(folder / "a.npy",
               with_header("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 1), }\n",
                           std::string("\x01\x00\xfe\xff", 4), version));
    const NpyArray array = read_npy(folder / "a.npy");
    EXPECT_EQ(array.shape, (std::vector<std::int64_t>{2, 1}));
    EXPECT_EQ(array.type, "<i2");
    EXPECT_EQ(array.count(), 2);
    EXPECT_EQ(std::to_integer<int>(array.data[2]), 0xfe);
  }
}

TEST(Npy, ReadsWhatItWrote) {
  const TemporaryFolder folder;
  const std::vector<std::int64_t> shape = {3};
  write_npy(folder / "a.npy", "<u4", shape,
            [](std::ostream& out) { out.write("\1\0\0\0\2\0\0\0\xff\xff\xff\xff", 12); });
  const NpyArray array = read_npy(folder / "a.npy");
  EXPECT_EQ(read_npy_integers(array, "a"), (std::vector<std::int64_t>{1, 2, 4294967295}));
  EXPECT_EQ(test::read_text(folder / "a.npy").size() % 64, 12u);
}

TEST(Npy, ReadsNumbersOfEveryWidth) {
  const TemporaryFolder folder;
  for (const auto& [type, bytes, value] : std::vector<std::tuple<std::string, std::string, int>>{
           {"|i1", "\xfd", -3},
           {"|u1", "\xfd", 253},
           {"<i2", "\xfd\xff", -3},
           {"<u2", "\xfd\xff", 65533},
           {"<i4", "\xfd\xff\xff\xff", -3},
           {"<i8", "\xfd\xff\xff\xff\xff\xff\xff\xff", -3}}) {
    write_text(folder / "a.npy",
               with_header("{\"shape\":(1,),'descr':'" + type + "','fortran_order':False}", bytes));
    EXPECT_EQ(read_npy_integers(read_npy(folder / "a.npy"), "a").at(0), value) << type;
  }
}

TEST(Npy, RefusesHostileHeaders) {
  const auto header = [](std::string_view type, std::string_view order, std::string_view shape) {
    return with_header(
        fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}}}", type, order, shape),
        "1234");
  };
  EXPECT_EQ(refusal(header("|u1", "False", "(4,)")), "no error");
  EXPECT_CONTAINS(refusal(""), "not a .npy file");
  EXPECT_CONTAINS(refusal("\x93NUMPX\x01\x00\x00\x00"), "not a .npy file");
  EXPECT_CONTAINS(refusal(header("|u1", "Maybe", "(4,)")), "neither True nor False");
  EXPECT_CONTAINS(refusal(header(">c4", "False", "(1,)")), "type >c4");
  EXPECT_CONTAINS(refusal(header("|O", "False", "(1,)")), "type |O");
  EXPECT_CONTAINS(refusal(header("|u1", "False", "(5,)")), "does not fit the 4 bytes");
  EXPECT_CONTAINS(refusal(header("|u1", "False", "(3,)")), "does not fit the 4 bytes");
  EXPECT_CONTAINS(refusal(header("|u1", "False", "(-4,)")), "expected a size");
  EXPECT_CONTAINS(refusal(header("<i8", "False", "(4611686018427387904, 4)")), "does not fit");
  EXPECT_CONTAINS(refusal(header("|u1", "False", "(99999999999999999999999,)")), "too large");
  EXPECT_CONTAINS(refusal(header("|u1", "False", "(4")), "expected");
  EXPECT_CONTAINS(refusal(header("|u1", "False", "(4,), 'shape': (4,)")), "repeated key");
  EXPECT_CONTAINS(refusal(with_header("{'descr': '|u1', 'shape': (4,)}", "1234")), "lacks one of");
  EXPECT_CONTAINS(refusal(with_header("{'descr': [('a', '|u1')], 'fortran_order': False, 'shape': "
                                      "(4,)}",
                                      "1234")),
                  "structured");
  EXPECT_CONTAINS(refusal(std::string("\x93NUMPY\x01\x00\xff\xff{}", 12)), "claims 65535 bytes");
  EXPECT_CONTAINS(refusal(std::string("\x93NUMPY\x09\x00\x02\x00{}", 12)), "version 9");
  std::string many = "(";
  for (int i = 0; i < 40; ++i) many += "1,";
  EXPECT_CONTAINS(refusal(header("|u1", "False", many + ")")), "more than 32 dimensions");
}

TEST(Npy, TurnsFortranOrderAndForeignBytes) {
  const TemporaryFolder folder;
  // [[1, 2, 3], [4, 5, 6]], column by column, the higher byte first.
  write_text(folder / "a.npy",
             with_header("{'descr': '>u2', 'fortran_order': True, 'shape': (2, 3), }\n",
                         std::string("\0\1\0\4\0\2\0\5\0\3\0\6", 12)));
  const NpyArray array = read_npy(folder / "a.npy");
  EXPECT_EQ(array.type, "<u2");
  std::vector<std::uint16_t> values(6);
  ASSERT_EQ(array.data.size(), 12u);
  std::memcpy(values.data(), array.data.data(), 12);
  EXPECT_EQ(values, (std::vector<std::uint16_t>{1, 2, 3, 4, 5, 6}));
}

TEST(Npy, ThatBecomesShorterIsAnError) {
  const TemporaryFolder folder;
  const std::vector<std::int64_t> shape = {1 << 20};
  write_npy(folder / "a.npy", "|u1", shape,
            [](std::ostream& out) { out << std::string(1 << 20, 'x'); });
  const NpyFile file = open_npy(folder / "a.npy");
  std::vector<std::byte> values(100);
  file.read((1 << 20) - 100, values);
  EXPECT_EQ(values[99], std::byte{'x'});
  std::filesystem::resize_file(folder / "a.npy", 200);
  const std::string said = message_of<FormatError>([&] { file.read((1 << 20) - 100, values); });
  EXPECT_CONTAINS(said, "a.npy: the file became shorter while it was read");
  file.read(0, std::span(values).first(10));  // what is left can be read
}

TEST(Npy, SurvivesDamagedHeaders) {
  const TemporaryFolder folder;
  const std::string whole =
      with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }          \n",
                  std::string(24, 'x'));
  std::mt19937 random(11);
  int read = 0;
  for (int trial = 0; trial < 500; ++trial) {
    std::string text = whole;
    for (int i = 0; i < 1 + trial % 3; ++i)
      text[random() % text.size()] = static_cast<char>(random());
    if (trial % 5 == 0) text.resize(random() % text.size());
    write_text(folder / "a.npy", text);
    try {
      const NpyArray array = read_npy(folder / "a.npy");
      EXPECT_EQ(static_cast<std::size_t>(array.count() * array.element_size()), array.data.size());
      ++read;
    } catch (const FormatError&) {
    }
  }
  EXPECT_LT(read, 499);
}

}  // namespace
}  // namespace gala
