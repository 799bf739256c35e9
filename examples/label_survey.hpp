// The number of samples and classes of shards, in one pass over the labels.
//
//   const label_survey survey = survey_labels("my-{000..009}.tar");
//   survey.samples;     // 2400
//   survey.classes;     // 10: the largest label of the field cls, plus one
//
// Errors: those of reading, and data_error if a cls is not an integer.
#pragma once

#include <millrace/millrace.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

struct label_survey {
  std::uint64_t samples = 0;
  std::size_t classes = 0;
};

namespace label_survey_detail {

struct labelled {
  std::int32_t label;
};

}  // namespace label_survey_detail

inline label_survey survey_labels(const std::string& pattern) {
  namespace mr = millrace;
  using label_survey_detail::labelled;
  auto flow = mr::shards(pattern, {.fields = {"cls"}})
            | mr::map([](const mr::record& r) { return labelled{r["cls"].as<std::int32_t>()}; })
            | mr::batch<&labelled::label>({.size = 256, .drop_last = false});
  label_survey survey;
  // Each rank of a launcher counts all samples.
  for (auto& b : mr::session{std::move(flow), {.notice = mr::quiet, .world = mr::single_process}})
    for (const std::int32_t label : b.get<&labelled::label>()) {
      ++survey.samples;
      survey.classes = std::max(survey.classes, static_cast<std::size_t>(std::max(label, 0)) + 1);
    }
  return survey;
}
