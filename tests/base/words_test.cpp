#include "gala/base/words.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <vector>

#include "gala/base/error.h"
#include "gala/base/spec.h"

namespace gala {
namespace {

/// What is said of what `work` throws.
template <class Work>
std::string said(Work&& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return in_words(error);
  }
  return "nothing was thrown";
}

TEST(Words, AnErrorKeepsItsOwn) {
  EXPECT_EQ(said([] { fail<ConfigError>("--flag: no"); }), "--flag: no");
  EXPECT_EQ(said([] { throw FormatError("file", "is cut off"); }), "file: is cut off");
}

TEST(Words, OtherExceptionsSpeakPlainly) {
  EXPECT_EQ(said([] { (void)std::vector<int>{}.at(3); }), "a value is missing or out of range");
  EXPECT_EQ(said([] { (void)std::map<int, int>{}.at(3); }), "a value is missing or out of range");
  EXPECT_EQ(said([] { throw std::bad_alloc(); }), "there is not enough memory");
  EXPECT_EQ(said([] { throw std::system_error(EAGAIN, std::generic_category(), "f"); }),
            "the system refused: Resource temporarily unavailable");
  EXPECT_EQ(said([] { (void)std::filesystem::file_size("/there/is/none"); }),
            "/there/is/none: No such file or directory");
  const nlohmann::json json = {{"a", 1}};
  EXPECT_EQ(said([&] { (void)json.at("settings"); }), "the value \"settings\" is missing");
  EXPECT_EQ(said([&] { (void)json.at("a").get<std::string>(); }),
            "a value is not of the kind that it should be");
  EXPECT_EQ(said([] { return nlohmann::json::parse("[1,"); }),
            "it cannot be parsed as JSON (byte 4)");
}

TEST(Words, TheAllocatorsTextBecomesANumber) {
  EXPECT_EQ(said([] {
              C10_THROW_ERROR(Error,
                              "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: "
                              "can't allocate memory: you tried to allocate 4096000000000 bytes. "
                              "Error code 12 (Cannot allocate memory)");
            }),
            "there is not enough memory: 4.1e+03 GB were asked for at once");
  EXPECT_EQ(said([] { C10_THROW_ERROR(Error, "sizes differ\nException raised from f"); }),
            "LibTorch: sizes differ");
}

TEST(Words, AGpuThatFailedIsToldFromOtherErrors) {
  const auto of_torch = [](const char* text) { return c10::Error({"f", "f.cpp", 1}, text); };
  const c10::Error lost = of_torch(
      "CUDA error: an illegal memory access was encountered\nSearch for `cudaErrorIllegalAddress' "
      "in ...");
  EXPECT_EQ(in_words(lost), "the GPU failed: an illegal memory access was encountered");
  EXPECT_TRUE(is_of_the_gpu(lost));
  EXPECT_TRUE(is_of_the_gpu(of_torch("CUDA driver error: unknown error")));
  EXPECT_TRUE(
      is_of_the_gpu(of_torch("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `f`")));
  EXPECT_EQ(in_words(of_torch("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED")),
            "the GPU failed: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED");
  EXPECT_FALSE(is_of_the_gpu(of_torch("sizes differ")));
  EXPECT_FALSE(is_of_the_gpu(Error("a file says: CUDA error: none")));
  // Full memory is no failure.
  for (const char* full :
       {"CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation' in ...",
        "CUDA driver error: out of memory",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"}) {
    EXPECT_EQ(in_words(of_torch(full)), "the device has not enough memory for this") << full;
    EXPECT_FALSE(is_of_the_gpu(of_torch(full))) << full;
    EXPECT_TRUE(is_of_a_full_device(of_torch(full))) << full;
  }
  EXPECT_FALSE(is_of_a_full_device(lost));
}

TEST(Words, WhatIsTheUsersIsToldFromWhatIsNot) {
  const auto of_file = [](int code) {
    return std::filesystem::filesystem_error("f", "x", {code, std::generic_category()});
  };
  EXPECT_TRUE(is_users_mistake(ConfigError("x")));
  EXPECT_TRUE(is_users_mistake(FormatError("x", "y")));
  EXPECT_TRUE(is_users_mistake(of_file(ELOOP)));
  EXPECT_FALSE(is_users_mistake(of_file(ENOSPC)));
  EXPECT_FALSE(is_users_mistake(Error("x")));
  EXPECT_FALSE(is_users_mistake(std::bad_alloc()));
}

TEST(Words, LongTextsLoseTheirMiddle) {
  EXPECT_EQ(in_brief("short"), "short");
  const std::string text = "begin" + std::string(100'000, 'x') + "end";
  const std::string brief = in_brief(text);
  EXPECT_LT(brief.size(), 450U);
  EXPECT_TRUE(brief.starts_with("begin"));
  EXPECT_TRUE(brief.ends_with("end"));
  EXPECT_NE(brief.find(" characters ...]"), std::string::npos);
  // A character of two bytes stays whole wherever the cut falls.
  std::string wide;
  for (int i = 0; i < 50; ++i) wide += "é";
  for (std::size_t most = 10; most < 16; ++most) {
    const std::string cut = in_brief(wide, most);
    EXPECT_NO_THROW((void)nlohmann::json(cut).dump()) << cut;
  }
}

TEST(Words, OfAMessageOnlyWordsAndLinesWithoutEndAreCut) {
  const std::string list = "known: " + std::string(300, 'a') + ", " + std::string(300, 'b');
  EXPECT_EQ(readable(list), list);
  EXPECT_EQ(readable("two\nlines "), "two\nlines ");
  EXPECT_LT(readable(fmt::format("x: {}: no", std::string(100'000, 'a'))).size(), 700U);
  std::string many;
  for (int i = 0; i < 50'000; ++i) many += "a ";
  EXPECT_LT(readable(many).size(), 4100U);
}

TEST(Words, ASpecWithoutEndIsNotQuotedWhole) {
  const std::string end(100'000, 'a');
  for (const std::string& text :
       {end + ":", "x:" + end, "x:a=\"" + end, "x:" + end + "=1," + end}) {
    EXPECT_LT(said([&] { (void)Spec::parse(text); }).size(), 600U);
  }
}

}  // namespace
}  // namespace gala
