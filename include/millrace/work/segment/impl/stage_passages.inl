// Definitions for stage_passages.hpp.
#pragma once

#include <millrace/work/segment/stage_passages.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns a number with commas: 50,000.
MILLRACE_RARE std::string with_commas(std::uint64_t n) {
  const std::string digits = std::to_string(n);
  std::string text;   // grows at its end: g++ 12 warns of text.insert() at -O3
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

MILLRACE_INLINE void stage_passage::end_pass() {
  const std::lock_guard lock(mutex_);
  passes_.push_back(std::exchange(now_, {}));
}

MILLRACE_INLINE stage_passage& stage_passages::add(const std::string& kind, stage_traits traits) {
  const auto before = std::count_if(stages_.begin(), stages_.end(),
                                    [&](const stage_passage& s) { return s.name_.starts_with(kind + " "); });
  return stages_.emplace_back(kind + " " + std::to_string(before + 1), traits.may_buffer);
}

MILLRACE_RARE stage_passages::pass stage_passages::close_pass(bool describe) {
  pass result;
  for (stage_passage& s : stages_) {
    stage_passage::counts c;
    {
      const std::lock_guard lock(s.mutex_);
      if (s.passes_.empty()) continue;
      c = s.passes_.front();
      s.passes_.pop_front();
    }
    if (!describe || !result.stage.empty()) continue;
    const bool filters = s.name_.starts_with("filter") || s.name_.starts_with("take");
    const std::string inputs = with_commas(c.inputs), outputs = with_commas(c.outputs);
    const std::string text = filters ? outputs + " of " + inputs + " samples passed " + s.name_
                                     : s.name_ + " emitted " + outputs + " items for " + inputs + " samples";
    if (c.outputs == 0) {
      result = pass{.text = text, .stage = s.name_, .nothing = c.inputs > 0 && !s.may_buffer_};
    } else {
      result.text += (result.text.empty() ? "" : ", ") + text;
    }
  }
  return result;
}

MILLRACE_RARE setup_error too_few_rows_error(const pass_rows& of, const stage_passages::pass& pass) {
  const std::string counts = pass.text.empty() ? "" : ": " + pass.text;
  if (of.rows > 0)
    return {"an epoch has only " + std::to_string(of.rows) + " samples, fewer than the batch size of " +
                std::to_string(of.batch) + ", and drop_last drops them" + counts,
            "Use a smaller batch, more data, or batch({.drop_last = false})"};
  if (!pass.stage.empty())
    return {"no sample of a pass reaches batch()" + counts,
            "Check what " + pass.stage + " drops, and whether each rank's share of the data has samples for it"};
  return {"an epoch has no samples, and batch() needs at least one" + counts,
          "Check the data set and the stages before batch"};
}

MILLRACE_INLINE stage_passage::stage_passage(std::string name, bool may_buffer)
    : name_(std::move(name)), may_buffer_(may_buffer) {}

MILLRACE_INLINE stage_passage::~stage_passage() = default;

MILLRACE_INLINE stage_passages::stage_passages() = default;

MILLRACE_INLINE stage_passages::~stage_passages() = default;

}}}   // namespace millrace::detail
