#pragma once

#include <millrace/train/metrics.hpp>

#include <vector>

/// Receives the rows of a log.
class row_list final : public millrace::sink {
 public:
  explicit row_list(std::vector<millrace::row>& rows) : rows_(&rows) {}
  const char* name() const noexcept override { return "list"; }
  void write(const millrace::row& r) override { rows_->push_back(r); }

 private:
  std::vector<millrace::row>* rows_;
};
