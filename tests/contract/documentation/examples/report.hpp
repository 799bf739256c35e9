// ---- charts.hpp
void example(std::string& page, const mr::run_report& r) {
EXAMPLE
}

// ---- html_report.hpp
void write(const std::string& page);

void example(const mr::flow_statistics& window, mr::timeline events) {
EXAMPLE
}

// ---- json_report.hpp
void example(const mr::flow_statistics& window) {
EXAMPLE
}

// ---- text_report.hpp
#include <cstdio>

// block 2 is a report's first lines
void example(const mr::flow_statistics& window) {
EXAMPLE 1
}

// ---- write_reports.hpp
#include <millrace/millrace.hpp>
#include <millrace/report/session_report.hpp>

struct row {
  std::int32_t label;
};

void example(const mr::session<&row::label>& run) {
EXAMPLE
}

// ---- run_report.hpp
#include <millrace/report/print/text_report.hpp>

#include <cstdio>

void example(const mr::flow_statistics& window, mr::timeline events) {
EXAMPLE
}

// ---- saved_predictions.hpp
#include <millrace/millrace.hpp>
#include <millrace/report.hpp>

struct row {
  std::int32_t label;
};

void example(const mr::session<&row::label>& run) {
EXAMPLE
}

// ---- session_report.hpp
#include <millrace/millrace.hpp>
#include <millrace/report/print/text_report.hpp>

struct row {
  std::int32_t label;
};

void example(const mr::session<&row::label>& run) {
EXAMPLE
}

// ---- pipeline_model.hpp
#include <millrace/report/simulate/what_if.hpp>

void example(const mr::flow_statistics& window) {
EXAMPLE
}

// ---- what_if.hpp
void example(const mr::flow_statistics& window) {
EXAMPLE
}

// ---- knobs.hpp
#include <cstdio>

void example(const mr::flow_statistics& statistics) {
EXAMPLE
}

// ---- limits.hpp
// block 2 is a table of the limits
void example(const mr::flow_statistics& statistics) {
EXAMPLE 1
}

// ---- verdict.hpp
#include <millrace/report/verdict/knobs.hpp>

#include <cstdio>

void example(const mr::flow_statistics& statistics) {
EXAMPLE
}
