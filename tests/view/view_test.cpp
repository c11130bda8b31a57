#include "gala/view/view.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "gala/base/error.h"

namespace gala {
namespace {

std::string message_of(const std::string& spec) {
  try {
    make_view(Spec::parse(spec));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Views, RefuseWhatIsNoOption) {
  EXPECT_EQ(
      message_of("augmen"),
      "unknown view \"augmen\" (did you mean \"augment\"? known: augment, augmix, patches, flip)");
  EXPECT_EQ(message_of("augment:noise=-1"), "view augment: noise must lie in [0, 1], not -1");
  EXPECT_EQ(message_of("augment:padding=zeros"),
            "view augment: option padding cannot be \"zeros\" (expected edge|reflect)");
  EXPECT_EQ(message_of("augmix:severity=0"), "view augmix: severity must lie in [0.1, 10], not 0");
  EXPECT_EQ(message_of("patches:grid=1"), "view patches: grid must lie in [2, 32], not 1");
  EXPECT_EQ(message_of("patches:grid=33"), "view patches: grid must lie in [2, 32], not 33");
  EXPECT_NE(message_of("flip:grid=4"), "no error");
  EXPECT_EQ(message_of("augment:padding=reflect,blur=no,noise=0,soft=yes"), "no error");
}

TEST(Views, RefuseWhatIsNoBatchOfImages) {
  for (const auto& entry : view_registry()) {
    const auto view = make_view(std::string(entry.name));
    view->attach(at::kCPU, {});
    view->draw(1, 1);
    EXPECT_NO_THROW(view->look(at::rand({2, 3, 8, 8}))) << entry.name;
    EXPECT_THROW(view->look(at::rand({3, 8, 8})), Error) << entry.name;
    EXPECT_THROW(view->look(at::rand({2, 1, 8, 8})), Error) << entry.name;
    EXPECT_THROW(view->look(at::rand({2, 3, 8, 8}, at::kDouble)), Error) << entry.name;
  }
}

TEST(Views, RefuseLooksThatWereNotDrawn) {
  for (const char* spec : {"augment", "augmix", "patches"}) {
    const auto view = make_view(spec);
    EXPECT_THROW(view->draw(1, 1), Error) << "before it was attached";
    view->attach(at::kCPU, {});
    EXPECT_THROW(view->look(at::rand({2, 3, 8, 8})), Error);
    view->draw(1, 1, 2);
    EXPECT_NO_THROW(view->look(at::rand({2, 3, 8, 8}), 1));
    EXPECT_THROW(view->look(at::rand({2, 3, 8, 8}), 2), Error);
    EXPECT_THROW(view->draw(1, 1, 0), Error);
    EXPECT_THROW(view->draw(1, 1, View::kMostLooks + 1), Error);
  }
}

TEST(Flip, MirrorsEveryImage) {
  const auto view = make_view("flip");
  view->attach(at::kCPU, {});
  view->draw(1, 1, 3);
  const at::Tensor images = at::rand({2, 3, 4, 5});
  const at::Tensor result = view->look(images, 2);
  for (std::int64_t column = 0; column < 5; ++column) {
    EXPECT_TRUE(result.select(3, column).equal(images.select(3, 4 - column)));
  }
  const at::Tensor last = view->look(images.contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(last.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(last.equal(result));
}

}  // namespace
}  // namespace gala
