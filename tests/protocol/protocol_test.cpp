#include "gala/protocol/protocol.h"

#include <gtest/gtest.h>

#include "gala/protocol/domainbed.h"
#include "tests/data/support.h"
#include "tests/protocol/miniature.h"

namespace gala {
namespace {

using test::message_of;
using test::TemporaryFolder;

const std::string kAsset = std::string(GALA_TEST_SOURCE_DIR) + "/assets/cifar10_test_2000.png";

TestBed open(const std::string& text) {
  return make_protocol(Spec::parse(text))->open();
}

TEST(DomainBedProtocol, OpensEveryEnvironmentOfTheFourSets) {
  const TemporaryFolder folder;
  for (const auto& [set, environments] : test::domainbed_sets()) {
    test::write_miniature(folder / set, environments);
    std::vector<std::string> hashes;
    for (std::size_t e = 0; e < environments.size(); ++e) {
      const TestBed bed = open(fmt::format("domainbed:path={},env={}", (folder / set).string(), e));
      EXPECT_EQ(bed.dataset, set);
      EXPECT_EQ(bed.environment, environments[e]);
      // 15 pictures: int(0.2 * 15) = 3 held out.
      ASSERT_EQ(bed.target.domains.size(), 1u);
      EXPECT_EQ(bed.target.domains[0].data->size(), 12);
      EXPECT_EQ(bed.held_out->domains[0].data->size(), 3);
      ASSERT_EQ(bed.source->domains.size(), 3u);
      for (const Domain& domain : bed.source->domains) {
        EXPECT_NE(domain.name, bed.environment);
        EXPECT_EQ(domain.data->size(), 3);
      }
      EXPECT_TRUE(bed.validates);
      EXPECT_FALSE(bed.augmented);
      hashes.push_back(bed.hash());
    }
    std::sort(hashes.begin(), hashes.end());
    EXPECT_EQ(std::unique(hashes.begin(), hashes.end()), hashes.end());
  }
}

TEST(DomainBedProtocol, RefusesATargetWithOtherClasses) {
  const TemporaryFolder folder;
  test::write_miniature(folder / "PACS", {"art_painting", "cartoon"});
  const std::filesystem::path target = folder / "PACS/cartoon";
  const std::filesystem::path first = *std::filesystem::directory_iterator(target);
  std::filesystem::rename(first, target / "other");
  try {
    open("domainbed:env=cartoon,path=" + (folder / "PACS").string());
    ADD_FAILURE() << "it was opened";
  } catch (const ConfigError& error) {
    EXPECT_CONTAINS(std::string(error.what()), "the classes of cartoon");
  }
}

TEST(DomainBedProtocol, IsTheSameWhereverItLiesAndHoweverItIsNamed) {
  const TemporaryFolder folder;
  const std::vector<std::string> environments = {"art_painting", "cartoon", "photo", "sketch"};
  test::write_miniature(folder / "here/PACS", environments);
  test::write_miniature(folder / "there/PACS", environments);
  const TestBed one = open("domainbed:env=1,path=" + (folder / "here/PACS").string());
  const TestBed two = open("domainbed:env=cartoon,path=" + (folder / "there/PACS").string());
  EXPECT_EQ(one.hash(), two.hash());
  EXPECT_EQ(one.protocol, two.protocol);
  EXPECT_EQ(one.data, two.data);
  EXPECT_EQ(one.protocol.find("path"), nullptr);
  const TestBed other = open("domainbed:env=1,trial=1,path=" + (folder / "here/PACS").string());
  EXPECT_NE(one.hash(), other.hash()) << "another trial splits otherwise";
}

TEST(DomainBedProtocol, HasT3asDefaults) {
  const RunDefaults defaults = make_protocol(Spec::parse("domainbed"))->defaults();
  EXPECT_EQ(defaults.batch_size, 32);
  EXPECT_EQ(defaults.method.norm, "source");
  EXPECT_EQ(defaults.stream, "single:order=shuffled");
  EXPECT_EQ(defaults.method.optimizer, "adam:rate=5e-05");
}

TEST(DomainBedProtocol, NamesTheSetsAsPapersDo) {
  EXPECT_EQ(domainbed_name("data/terra_incognita/"), "TerraIncognita");
  EXPECT_EQ(domainbed_name("data/office_home"), "OfficeHome");
  EXPECT_EQ(domainbed_name("PACS"), "PACS");
  EXPECT_EQ(domainbed_name("data/mine"), "mine");
}

TEST(DomainBedProtocol, RefusesWhatIsNotThere) {
  const TemporaryFolder folder;
  EXPECT_CONTAINS(message_of<ConfigError>([&] { open("domainbed"); }), "path");
  EXPECT_NE(message_of<ConfigError>([&] { open("domainbed:path=" + (folder / "PACS").string()); }),
            "no error");
  test::write_miniature(folder / "PACS", {"a", "b"});
  EXPECT_CONTAINS(
      message_of<ConfigError>([&] { open("domainbed:env=7,path=" + (folder / "PACS").string()); }),
      "no environment \"7\"");
  EXPECT_CONTAINS(message_of<ConfigError>(
                      [&] { open("domainbed:env=\"a,b\",path=" + (folder / "PACS").string()); }),
                  "must name one environment");
}

TEST(TinyDomainBedProtocol, HasTheSixNamedShifts) {
  const TemporaryFolder folder;
  for (const auto& [set, environments] : test::domainbed_sets()) {
    test::write_miniature(folder / set, environments);
  }
  const std::vector<std::array<std::string, 3>> shifts = {
      {"terra_l100", "TerraIncognita", "location_100"},
      {"terra_l38", "TerraIncognita", "location_38"},
      {"terra_l43", "TerraIncognita", "location_43"},
      {"pacs_cartoon", "PACS", "cartoon"},
      {"pacs_sketch", "PACS", "sketch"},
      {"vlcs_sun09", "VLCS", "SUN09"}};
  for (const auto& [shift, set, environment] : shifts) {
    const TestBed bed =
        open(fmt::format("tiny_domainbed:root={},shift={}", folder.path().string(), shift));
    EXPECT_EQ(bed.dataset, set);
    EXPECT_EQ(bed.environment, environment);
    const TestBed whole =
        open(fmt::format("domainbed:path={},env={}", (folder / set).string(), environment));
    EXPECT_EQ(bed.protocol, whole.protocol) << "its runs are DomainBed runs";
    EXPECT_EQ(bed.hash(), whole.hash());
  }
  EXPECT_EQ(make_protocol(Spec::parse("tiny_domainbed"))->defaults().method.partition,
            Granularity::kBlock);
}

TEST(TinyDomainBedProtocol, SaysWhichFolderIsMissing) {
  const TemporaryFolder folder;
  test::write_miniature(folder / "VLCS", {"Caltech101", "VOC2007"});
  const auto message = [&](const std::string& shift) {
    return message_of<ConfigError>(
        [&] { open("tiny_domainbed:shift=" + shift + ",root=" + folder.path().string()); });
  };
  EXPECT_CONTAINS(message("pacs_sketch"), "has no folder for PACS (there: VLCS)");
  EXPECT_CONTAINS(message("vlcs_sun09"), "the environment SUN09 (there: Caltech101, VOC2007)");
}

TEST(ContinualProtocol, MakesTheFifteenCorruptionsFromCleanImages) {
  const TestBed bed = open("continual:generate=yes,images=8,path=" + kAsset);
  ASSERT_EQ(bed.target.domains.size(), 15u);
  EXPECT_EQ(bed.target.domains[0].name, "gaussian_noise");
  EXPECT_EQ(bed.target.domains[14].name, "jpeg_compression");
  EXPECT_EQ(bed.target.domains[3].data->size(), 8);
  EXPECT_FALSE(bed.held_out);
  EXPECT_EQ(bed.source->domains[0].data->size(), 8);
  EXPECT_EQ(bed.dataset, "CIFAR-10-C");
  const RunDefaults defaults = make_protocol(Spec::parse("continual"))->defaults();
  EXPECT_EQ(defaults.batch_size, 200);
  EXPECT_EQ(defaults.method.norm, "batch");
  EXPECT_EQ(defaults.method.optimizer, "adam:rate=0.001");
}

TEST(ContinualProtocol, MeasuresNoForgettingWithoutCleanImages) {
  const TemporaryFolder folder;
  EXPECT_CONTAINS(
      message_of<ConfigError>([&] { open("continual:path=" + (folder / "CIFAR-10-C").string()); }),
      "CIFAR-10-C is missing; the published arrays go there, or make them: gala corrupt "
      "--data cifar10:path=CLEAN");
  // Two pictures of one severity, as `gala corrupt` writes them.
  std::string array("\x93NUMPY\x01\x00\x76\x00", 10);
  std::string heading = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 32, 32, 3), }";
  heading.resize(117, ' ');
  array += heading + "\n" + std::string(2 * 32 * 32 * 3, '\x40');
  test::write_text(folder / "CIFAR-10-C/fog.npy", array);
  std::string labels("\x93NUMPY\x01\x00\x76\x00", 10);
  heading = "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }";
  heading.resize(117, ' ');
  labels += heading + "\n" + std::string("\x01\x02", 2);
  test::write_text(folder / "CIFAR-10-C/labels.npy", labels);
  const TestBed bed = open("continual:corruption=fog,path=" + (folder / "CIFAR-10-C").string());
  EXPECT_FALSE(bed.source);
  EXPECT_EQ(bed.target.domains[0].data->size(), 2);
  const TestBed with = open("continual:corruption=fog,clean=" + kAsset +
                            ",path=" + (folder / "CIFAR-10-C").string());
  EXPECT_EQ(with.source->domains[0].name, "clean");
  EXPECT_NE(bed.hash(), with.hash());
}

TEST(ContinualProtocol, CanAdaptToTheCleanTestSetAlone) {
  const TestBed bed = open("continual:corruption=none,images=8,clean=" + kAsset);
  ASSERT_EQ(bed.target.domains.size(), 1u);
  EXPECT_EQ(bed.target.domains[0].name, "clean");
  EXPECT_EQ(bed.target.domains[0].data->size(), 8);
  EXPECT_EQ(bed.dataset, "CIFAR-10");
  EXPECT_EQ(bed.data.to_string(), "cifar10:split=test");
  EXPECT_EQ(content_hash(bed.target), content_hash(*bed.source));
  // Where pictures would be made of it, the path is that of the clean set.
  EXPECT_EQ(open("continual:corruption=none,generate=yes,images=8,path=" + kAsset).hash(),
            bed.hash());
  EXPECT_CONTAINS(message_of<ConfigError>([] { open("continual:corruption=none"); }),
                  "corruption=none needs the clean test set");
}

TEST(Protocols, AreListedWithTheNearest) {
  EXPECT_CONTAINS(message_of<ConfigError>([] { make_protocol(Spec::parse("domainbad")); }),
                  "did you mean \"domainbed\"");
  EXPECT_CONTAINS(message_of<ConfigError>([] { make_protocol(Spec::parse("continual:imags=3")); }),
                  "has no option \"imags\"");
}

TEST(ContinualProtocol, CorruptsImageNetOnTheWay) {
  const TemporaryFolder folder;
  // The fixture is a few grey pixels; what they show does not matter here.
  const std::string png = test::read_text(test::fixture("grey8.png"));
  for (const int label : {3, 12, 999}) {
    for (int i = 0; i < 2; ++i) {
      test::write_text(folder / fmt::format("val/{}/val_{}.png", label, 1000 * i + label), png);
    }
  }
  const std::string path = (folder / "val").string();
  const TestBed bed = open("continual:set=imagenet,generate=yes,path=" + path);
  EXPECT_EQ(bed.dataset, "ImageNet-C");
  ASSERT_EQ(bed.target.domains.size(), 15u);
  EXPECT_EQ(bed.target.domains[2].name, "impulse_noise");
  const Dataset& data = *bed.target.domains[2].data;
  ASSERT_EQ(data.size(), 6);
  EXPECT_EQ(data.classes(), 1000);
  // val_1003, val_1012, val_12, val_1999, val_3, val_999: byte order.
  constexpr int kLabels[] = {3, 12, 12, 999, 3, 999};
  for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(data.label(i), kLabels[i]);
  EXPECT_EQ(bed.source->domains.at(0).name, "clean");
  EXPECT_EQ(bed.source->domains[0].data->size(), 6);
  // No folder stands in what names a run.
  EXPECT_EQ(bed.protocol.to_string().find(path), std::string::npos);
  EXPECT_EQ(bed.data.to_string().find(path), std::string::npos);

  const RunDefaults defaults = make_protocol(Spec::parse("continual:set=imagenet"))->defaults();
  EXPECT_EQ(defaults.batch_size, 64);
  EXPECT_EQ(defaults.method.optimizer, "sgd:rate=0.00025,momentum=0.9,nesterov=yes");
  EXPECT_EQ(defaults.method.norm, "batch");
  EXPECT_EQ(open("continual:set=imagenet,corruption=none,clean=" + path).dataset, "ImageNet");
  EXPECT_CONTAINS(message_of<ConfigError>(
                      [&] { open("continual:set=imagenet,path=" + (folder / "none").string()); }),
                  "generate=yes");
  EXPECT_CONTAINS(message_of<ConfigError>([&] { open("continual:set=imagenet,path=" + path); }),
                  "generate=yes");
}

}  // namespace
}  // namespace gala
